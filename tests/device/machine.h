// What is checked: kernels, speeds, steps and communication of one machine. The one with a GPU is cuda_machine.cc; the
// CPU in its place (host_machine.cc) shows that the check itself works.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/check.h"
#include "tests/device/section.h"
#include "tests/kernels/fast_cases.h"

namespace stepcast::device_check {

// The best that this machine has been seen to do.
struct Ceilings {
  double copy_bytes_per_s = 0;    // bytes read plus bytes written
  double matmul_flops_per_s = 0;  // bf16 operands, sums in f32
};

class Machine {
 public:
  virtual ~Machine() = default;
  // One line: device, versions.
  virtual std::string name() const = 0;
  // Steps through work sizes that suit the machine: 1 is a layer of an 8-billion-parameter model.
  virtual std::int64_t work_divisor() const = 0;

  virtual bool has_kernel(program::OpKind kind) const = 0;
  // Runs a kernel on operands in the host's memory: they go to the device as they are, poison too, and come back whole.
  // Throws Error (kExecution) where the device refuses, or where bytes beside an operand have changed.
  virtual void run(const kernels::KernelContext& context) = 0;
  // The median of `repeats` runs on operands that stay where they are.
  virtual double seconds_of(const kernels::FastCase& work, program::DType storage, int repeats) = 0;
  virtual Ceilings measure_ceilings() = 0;

  // Losses of so many steps of the Program; or why they cannot be had here.
  struct Steps {
    std::vector<double> losses;
    std::vector<double> seconds;
    std::string why_not;
  };
  virtual Steps run_steps(const program::CheckedProgram& p, int steps) = 0;

  // Collectives and messages of two ranks.
  virtual void check_communication(Outcome& outcome) = 0;
};

// The machine that this program has been linked with. Throws Error (kEnvironment) where it is not there.
std::unique_ptr<Machine> open_machine();

}  // namespace stepcast::device_check
