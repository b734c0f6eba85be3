// Parameters of one layer of each kind, in integers wide enough for any sizes that problems_of() lets pass.
//
// Used by the rules of a shape and by its accounting; callers outside models/ want count_parameters().
#pragma once

#include "models/architecture.h"

namespace stepcast::models {

// Products of three sizes and a component's exceed 64 bits: an absurd shape is refused rather than wrapped.
__extension__ using Wide = __int128;

// `matmul` of `all` are weights of matrix products; of experts, only top_k work for a token.
struct Weights {
  Wide all = 0;
  Wide matmul = 0;
};

struct LayerParameters {
  Weights mixer;
  Weights feed_forward;  // MLP, router and shared experts
  Weights expert;        // one routed expert
  Wide experts = 0;      // how many there are
  Wide active_experts = 0;
  Wide norms = 0;

  Wide total() const { return mixer.all + feed_forward.all + experts * expert.all + norms; }
  Wide active() const { return mixer.all + feed_forward.all + active_experts * expert.all + norms; }
  Wide matmul() const { return mixer.matmul + feed_forward.matmul + active_experts * expert.matmul; }
};

// One layer of `kind`. The components that `kind` needs are there (problems_of).
LayerParameters layer_parameters(const Architecture& a, const LayerKind& kind);
// One norm over the hidden size.
Wide norm_parameters(const Architecture& a);
Wide total_parameters(const Architecture& a);
// All prediction layers beyond the model's own; tables and head are the model's.
Wide mtp_parameters(const Architecture& a);

}  // namespace stepcast::models
