// The fast kernels by name, and the state they share.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernels/cpu_fast/onednn.h"
#include "kernels/kernel.h"
#include "kernels/share.h"

namespace stepcast::kernels::cpu_fast {

// Which turns a table of rotary holds.
struct RotaryKey {
  double theta = 0;
  std::int64_t turned = 0;  // columns of a head
  std::int64_t index = 0;   // of the share
  std::int64_t members = 1;
  std::int64_t positions = 0;

  auto operator<=>(const RotaryKey&) const = default;
};

// By position of the share: cosine, then sine of each pair's angle.
struct RotaryTable {
  std::vector<float> cosine;
  std::vector<float> sine;
};

class FastState final : public StreamState {
 public:
  explicit FastState(int threads) : threads_(threads) {}

  void begin_thread() override;
  MatmulCache& matmuls() { return matmuls_; }
  std::map<RotaryKey, RotaryTable>& rotary_tables() { return rotary_tables_; }

 private:
  int threads_;
  MatmulCache matmuls_;
  std::map<RotaryKey, RotaryTable> rotary_tables_;
};

// The state of `context`, which must be one of ours.
FastState& state_of(const KernelContext& context);

void cast(const KernelContext& context);
void add(const KernelContext& context);
void accumulate(const KernelContext& context);
void rms_norm_forward(const KernelContext& context);
void rms_norm_backward_input(const KernelContext& context);
void rms_norm_backward_weight(const KernelContext& context);
void layer_norm_forward(const KernelContext& context);
void layer_norm_backward_input(const KernelContext& context);
void layer_norm_backward_weight(const KernelContext& context);
void bias_backward(const KernelContext& context);
void matmul(const KernelContext& context);
void rotary_forward(const KernelContext& context);
void rotary_backward(const KernelContext& context);
void attention_forward(const KernelContext& context);
void attention_backward(const KernelContext& context);
void share_attention_forward(const KernelContext& context);
void share_attention_backward(const KernelContext& context);
void swiglu_forward(const KernelContext& context);
void swiglu_backward(const KernelContext& context);
void gelu_forward(const KernelContext& context);
void gelu_backward(const KernelContext& context);
void squared_relu_forward(const KernelContext& context);
void squared_relu_backward(const KernelContext& context);
void cross_entropy_max(const KernelContext& context);
void cross_entropy_sum(const KernelContext& context);
void cross_entropy_backward(const KernelContext& context);
void sum_squares(const KernelContext& context);
void adam(const KernelContext& context);

}  // namespace stepcast::kernels::cpu_fast
