// What a viewer shows for an op id: its path, category and place in the model. Traces hold op ids only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "program/program.h"
#include "trace/trace.h"

namespace stepcast::report {

struct OpLabel {
  std::string name;      // the op's path, F.c0.m3.L12.attn.qkv
  std::string category;  // matmul, attention, ...
  std::string pass;      // F, I, W, R, comm, opt
  std::optional<std::uint32_t> layer;
  std::optional<std::uint32_t> microbatch;
};

// Label of an op of a rank. The trace must be of the Program the function was made from.
using Labeler = std::function<OpLabel(std::uint32_t rank, trace::OpId id)>;

// Keeps a reference to `p`.
Labeler labels_of(const program::Program& p);

std::string_view to_string(program::OpCategory category);

}  // namespace stepcast::report
