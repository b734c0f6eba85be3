// What a reader should know beside the numbers: what is taken for granted, what is left out, what others measured.
#include <fmt/format.h>

#include <tuple>

#include "models/architecture.h"
#include "report/cluster_text.h"
#include "report/simulation_parts.h"

namespace stepcast::report {
namespace {

std::optional<PublishedRun> nearest(const plan::Scenario& s, const std::vector<PublishedRun>& runs) {
  std::optional<PublishedRun> best;
  std::tuple<bool, bool, bool, bool> best_score;
  const std::int64_t parameters = models::count_parameters(s.model).total;
  for (const PublishedRun& run : runs) {
    // A run with quantised matmuls is near no other.
    const bool quantised = run.precision == "fp8" || run.precision == "fp4";
    if (quantised && run.precision != precision_of(s)) continue;
    // The count tells models apart whatever a file calls them; an imported one has no name.
    if (run.parameters != parameters || run.gpu != s.cluster.node.device.name) continue;
    const std::tuple score(run.precision == precision_of(s), run.gpus == s.gpus,
                           run.global_batch_size == s.training.global_batch_size,
                           run.sequence_length == s.training.sequence_length);
    if (best && score <= best_score) continue;
    best = run;
    best_score = score;
  }
  return best;
}

std::vector<std::string> assumptions_of(const SimulationInputs& in) {
  std::vector<std::string> assumptions = {
      "constants: vendor peaks, stated efficiencies, fits to published kernel tables; no training step was fitted",
      "MFU over the dense peak of the compute type; recompute is never counted in it (HFU counts it)",
      std::string(kHfuConvention),
      "collectives: algorithm and protocol by NCCL's cost model, time by latency and bandwidth of the group's path",
      "transfers spread their bytes evenly over their time",
      "1F1B messages are asynchronous, each direction on a stream of its own",
      "gradient buckets of plan.bucket elements on every stage",
      "logits are kept once in the compute type and become their gradient in place (fused loss)",
      "allocated memory is the bytes of live buffers in issue order; freed blocks are reused at once",
      "device memory adds estimates: a share for fragmentation (stack.allocator), context, workspaces, NCCL's buffers",
  };
  if (in.scenario.plan.overlap_tp_comm) {
    assumptions.emplace_back(
        "tp_comm: as Transformer Engine's user buffers; ring exchange by copy engines, chunks multiplied one after "
        "another; kernels that communicate move a multiprocessor's share of what NCCL's rings do; beside the tensors a "
        "buffer for each of ten matmuls");
  }
  if (in.contention) {
    assumptions.emplace_back(
        "communication slows computation by the multiprocessors it holds and the memory rate it uses; computation does "
        "not slow communication; transfers share links max-min fairly");
  }
  const topology::FabricSpec& fabric = in.scenario.cluster.fabric;
  if (fabric.routing_efficiency < 1) {
    assumptions.push_back(fmt::format(
        "routing: {} leaves {:.3g} of the NICs' rate above the leaves, a stated factor: the mean over links of hashed "
        "paths",
        routing_text(fabric), fabric.routing_efficiency));
  }
  if (in.scenario.training.recipe != plan::MatmulRecipe::kNone) {
    assumptions.emplace_back(
        "quantised matmuls: the four projections of a layer; embedding, attention, head and optimizer stay bf16; "
        "quantised weights are made once a step, kept inputs and what tp ranks gather are quantised copies");
  }
  if (in.scenario.jitter) {
    assumptions.emplace_back("jitter: each op of each rank takes exp(sigma z) of its time, z standard normal");
  }
  return assumptions;
}

}  // namespace

void fill_notes(SimulationReport& r, const SimulationInputs& in) {
  r.warnings = in.warnings;
  r.assumptions = assumptions_of(in);
  r.not_modelled = {
      "data loading, checkpoints and evaluation",
      "clock throttling",
  };
  if (!in.contention) {
    r.not_modelled.insert(r.not_modelled.begin(), "contention, on links and on devices (--no-contention)");
  }
  r.nearest_published = nearest(in.scenario, in.published);
}

}  // namespace stepcast::report
