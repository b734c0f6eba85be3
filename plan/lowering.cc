// Roles, ranks and groups of a scenario, and the lowering of each pipeline rank.
#include "plan/lowering.h"

#include <array>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "plan/model_support.h"
#include "plan/stage_lowering.h"
#include "topology/mesh.h"

namespace stepcast::plan {
namespace {

using program::RankId;

void add_groups(program::ProgramBuilder& b, const topology::DeviceMesh& mesh, program::RoleId role,
                const std::vector<std::string>& axes) {
  const topology::MeshGroups groups = mesh.flat_groups(axes);
  for (std::size_t g = 0; g < groups.count(); ++g) {
    std::vector<RankId> ranks;
    ranks.reserve(groups.group_size);
    for (const std::int32_t m : groups[g]) ranks.emplace_back(static_cast<std::size_t>(m));
    b.group(role, std::move(ranks));
  }
}

// First and last stage of every pipeline.
void add_embedding_groups(program::ProgramBuilder& b, const topology::DeviceMesh& mesh, program::RoleId role) {
  const std::vector<std::string> axes = {"pp"};
  const topology::MeshGroups groups = mesh.flat_groups(axes);
  for (std::size_t g = 0; g < groups.count(); ++g) {
    b.group(role,
            {RankId(static_cast<std::size_t>(groups[g].front())), RankId(static_cast<std::size_t>(groups[g].back()))});
  }
}

// Ranks in order, each with the program of its stage on its device.
void add_ranks(program::ProgramBuilder& b, const Scenario& s, const topology::DeviceMesh& mesh,
               const std::vector<program::RankProgramId>& stages) {
  std::int64_t stride = 1;  // ranks between two neighbours on the pp axis
  for (const topology::Axis& axis : mesh.axes()) {
    if (axis.name == "pp") break;
    stride *= axis.size;
  }
  for (std::int64_t r = 0; r < s.gpus; ++r) {
    const auto stage = static_cast<std::size_t>(r / stride % s.plan.pp);
    b.rank(stages[stage], s.device_of(r));
  }
}

void refuse_unsupported(const Scenario& s) {
  if (const auto refusal = refusal_of(s.model, s.training.sequence_length, {"", 0, "model"}))
    throw Error(std::vector<Problem>{*refusal});
  if (std::vector<Problem> problems = unsupported_settings(s); !problems.empty()) throw Error(std::move(problems));
  if (estimated_ops(s.model, s.microbatches()) > kMostOps) {
    throw Error(ErrorKind::kUnsupported, "the step has too many ops to lower", {"", 0, "training.global_batch_size"});
  }
  if (sharding_of(s) == Sharding::kParameters && s.model.tied_embeddings) {
    throw Error(ErrorKind::kUnsupported, "ZeRO-3 with tied embeddings is not lowered yet", {"", 0, "plan.zero"},
                {"zero 0, 1 and 2 work with tied embeddings"});
  }
}

}  // namespace

double estimated_ops(const models::Architecture& model, std::int64_t microbatches) {
  return 40.0 * static_cast<double>(microbatches) * static_cast<double>(model.layers + 2);
}

topology::DeviceMesh mesh_of(const Scenario& s) {
  const std::array<topology::Axis, 4> axes = {topology::Axis{"tp", s.plan.tp}, topology::Axis{"cp", s.plan.cp},
                                              topology::Axis{"dp", s.plan.dp}, topology::Axis{"pp", s.plan.pp}};
  return topology::make_mesh(s.plan.rank_order, axes);
}

topology::DeviceMesh hybrid_mesh_of(const Scenario& s) {
  CHECK(s.plan.dp % s.plan.dp_replicate == 0, s.plan.dp, s.plan.dp_replicate);
  const std::array<topology::Axis, 5> axes = {topology::Axis{"tp", s.plan.tp}, topology::Axis{"cp", s.plan.cp},
                                              topology::Axis{"dp_shard", s.plan.dp / s.plan.dp_replicate},
                                              topology::Axis{"dp_replicate", s.plan.dp_replicate},
                                              topology::Axis{"pp", s.plan.pp}};
  std::string order = s.plan.rank_order;
  const std::size_t dp = order.find("dp");
  CHECK(dp != std::string::npos, order);
  return topology::make_mesh(order.replace(dp, 2, "dp_shard-dp_replicate"), axes);
}

program::Program lower(const Scenario& s) {
  refuse_unsupported(s);
  CHECK(s.gpus == std::int64_t{s.plan.tp} * s.plan.pp * s.plan.replicas(), s.gpus, s.plan.tp, s.plan.pp,
        s.plan.replicas());
  program::ProgramBuilder b(s.name);
  b.set_seed(s.training.seed);
  const Roles roles = Roles::of(b, s);
  const Shapes x = Shapes::of(s);
  const DecoderSegments segments = build_decoder_segments(b, roles, x, s);
  std::vector<program::RankProgramId> stages;
  for (std::int32_t p = 0; p < s.plan.pp; ++p) {
    stages.push_back(b.rank_program(StageLowering(b, roles, x, s, segments, p).run()));
  }
  const topology::DeviceMesh mesh = mesh_of(s);
  CHECK(s.placement.empty() || static_cast<std::int64_t>(s.placement.size()) == s.gpus, s.placement.size(), s.gpus);
  add_ranks(b, s, mesh, stages);
  add_groups(b, mesh, roles.tp, {"tp"});
  add_groups(b, mesh, roles.dp, {"dp"});
  add_groups(b, mesh, roles.pp, {"pp"});
  add_groups(b, mesh, roles.model, {"tp", "pp"});
  add_groups(b, mesh, roles.world, {"tp", "cp", "dp", "pp"});
  if (s.plan.cp > 1) {
    add_groups(b, mesh, roles.cp, {"cp"});
    add_groups(b, mesh, roles.replicas, {"cp", "dp"});
  }
  if (roles.stage) add_groups(b, mesh, *roles.stage, {"tp", "cp", "dp"});
  if (s.plan.hybrid()) {
    const topology::DeviceMesh hybrid = hybrid_mesh_of(s);
    add_groups(b, hybrid, roles.shards, {"cp", "dp_shard"});
    add_groups(b, hybrid, roles.copies, {"dp_replicate"});
    add_groups(b, hybrid, roles.instance, {"tp", "cp", "dp_shard", "pp"});
  }
  if (s.model.tied_embeddings && s.plan.pp > 1) add_embedding_groups(b, mesh, roles.embedding);
  return b.take();
}

Scenario single_rank_reference(const Scenario& s) {
  Scenario r = s;
  r.name = s.name + "-reference";
  r.gpus = 1;
  r.placement.clear();
  r.cluster.overrides.clear();
  r.jitter.reset();
  r.plan = Plan{};
  r.plan.micro_batch_size = s.plan.micro_batch_size;
  r.plan.rank_order = s.plan.rank_order;
  r.plan.layout = {Plan::StageItems{true, 0, s.model.layers, true}};
  return r;
}

}  // namespace stepcast::plan
