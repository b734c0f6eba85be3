// Tags of the calls that move parameters and gradients.
#pragma once

#include <cstdint>

#include "plan/stage_parameters.h"
#include "program/program.h"

namespace stepcast::plan {

inline program::Tag step_tag(program::Pass pass) {
  program::Tag t;
  t.pass = pass;
  return t;
}

// Of a flat, outside any microbatch.
inline program::Tag flat_tag(program::Pass pass, std::uint32_t flat) {
  program::Tag t = step_tag(pass);
  t.layer = flat;
  return t;
}

inline program::Tag unit_tag(const Unit& unit, std::uint32_t microbatch) {
  program::Tag t = step_tag(program::Pass::kComm);
  t.layer = unit.layer;
  t.chunk = unit.chunk;
  t.microbatch = microbatch;
  return t;
}

}  // namespace stepcast::plan
