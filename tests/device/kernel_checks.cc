#include "tests/device/kernel_checks.h"

#include <array>
#include <functional>

#include "base/error.h"
#include "tests/kernels/products.h"

namespace stepcast::device_check {
namespace {

using kernels::FastCase;
using program::DType;
using program::OpKind;

std::vector<FastCase> all_cases() {
  std::vector<FastCase> cases;
  for (const auto& some :
       {kernels::norm_cases(), kernels::activation_cases(), kernels::elementwise_cases(), kernels::rotary_cases(),
        kernels::cross_entropy_cases(), kernels::optimizer_cases(), kernels::attention_cases(),
        kernels::share_attention_cases(), kernels::unfused_attention_cases(), kernels::memory_cases(),
        kernels::embedding_cases(), kernels::position_cases(), kernels::token_cases(), kernels::dropout_cases(),
        kernels::softmax_cases(), kernels::qk_norm_cases(), kernels::row_copy_cases(), kernels::scalar_cases(),
        kernels::large_row_cases()}) {
    cases.insert(cases.end(), some.begin(), some.end());
  }
  return cases;
}

// Takes a check's verdict: nothing, or what is wrong. What the device refuses is wrong too.
void judge(Outcome& outcome, const std::string& name, const std::function<std::optional<std::string>()>& check) {
  try {
    if (const std::optional<std::string> wrong = check()) {
      outcome.failures.push_back(name + ": " + *wrong);
    } else {
      ++outcome.passed;
    }
  } catch (const Error& error) {
    outcome.failures.push_back(name + ": " + error.problems().front().message);
  }
}

void check_case(Machine& machine, const FastCase& c, Outcome& outcome) {
  const auto run = [&](const kernels::KernelContext& context) { machine.run(context); };
  const std::vector<kernels::Buffer> exact =
      kernels::run_fast_case(c, DType::kF64, kernels::reference_kernel(c.kind), nullptr);
  for (const DType storage : {DType::kF32, DType::kBf16}) {
    judge(outcome, std::string(to_string(c.kind)) + ", " + c.name + ", " + std::string(to_string(storage)),
          [&] { return kernels::difference(c, storage, kernels::run_fast_case(c, storage, run, nullptr), exact); });
  }
}

void check_products(Machine& machine, const Budget& budget, Outcome& outcome) {
  const auto run = [&](const kernels::KernelContext& context) { machine.run(context); };
  for (const kernels::ProductSize& p : kernels::product_sizes()) {
    for (const kernels::ProductForm& f : kernels::product_forms()) {
      if (budget.is_over()) {
        outcome.skipped.emplace_back("the other matmuls: out of time");
        return;
      }
      const std::string name = "matmul " + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
      judge(outcome, name, [&] { return kernels::product_difference(p, f, run, nullptr); });
    }
  }
}

}  // namespace

Outcome check_kernels(Machine& machine, const Budget& budget) {
  Outcome outcome{.section = "kernels"};
  std::array<bool, program::kOpKindCount> covered = {};
  if (machine.has_kernel(OpKind::kMatmul)) {
    covered[static_cast<std::size_t>(OpKind::kMatmul)] = true;
    check_products(machine, budget.part(0.5), outcome);
  }
  const std::vector<FastCase> cases = all_cases();
  for (const FastCase& c : cases) {
    if (budget.is_over()) {
      outcome.skipped.emplace_back("the cases from '" + c.name + "' on: out of time");
      break;
    }
    if (!machine.has_kernel(c.kind)) continue;
    covered[static_cast<std::size_t>(c.kind)] = true;
    check_case(machine, c, outcome);
  }
  for (std::size_t i = 0; i < covered.size(); ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (covered[i] || kernels::reference_kernel(kind) == nullptr) continue;
    const std::string why = machine.has_kernel(kind) ? ": not checked" : ": this machine has no kernel";
    outcome.skipped.push_back(std::string(to_string(kind)) + why);
  }
  return outcome;
}

}  // namespace stepcast::device_check
