// What is known of the software behind a published table, by who published it: the framework, what its recipes set
// beyond that framework's defaults, and the group whose error is stated together.
//
// Of a row's settings these are what the table's columns do not say. Each carries what it assumes; the measured time of
// no row entered. Sources: the recipes and launchers that the tables' locators name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "calibrate/published_row.h"

namespace stepcast::calibrate {

enum class Stack : std::uint8_t {
  kNvidia,  // NeMo, Megatron-Bridge, MLPerf: Megatron-Core with Transformer Engine
  kMaxText,
  kMosaic,  // llm-foundry: FSDP
  kTorchtitan,
  kSc21,         // Megatron-LM of 2021
  kKorthikanti,  // and of 2022
  kBloom,        // Megatron-DeepSpeed
  kInternEvo,
  kKwai,  // Megatron-LM
  kSimuMax,
  kNanotron,
  kFms,
  kSwiftMegatron,
  kDeepSpeed,  // of Hugging Face models
  kStated,     // by the row's own `framework`
};

// One field of a scenario, as --set takes it; `assumption` is empty where the source states it.
struct StackSetting {
  std::string_view field;
  std::string_view value;
  std::string_view assumption;
};

struct StackPreset {
  Stack stack = Stack::kStated;
  std::string_view framework;
  std::string_view group;  // "*": by the row's accelerator
  std::span<const StackSetting> settings;
};

// Null for a source that is not known and a row that states no framework.
const StackPreset* stack_of(const PublishedRow& row);

// "NVIDIA dense on H100", "BLOOM", ...; "other" without a stack.
std::string group_of(const PublishedRow& row);

}  // namespace stepcast::calibrate
