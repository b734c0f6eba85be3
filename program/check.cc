// The order of the checks: structure first, since all else follows indices; then form, initialisation and matching; the
// matched graph last, and only where everything matches.
#include "program/check.h"

#include <utility>

#include "base/check.h"
#include "program/check_graph.h"
#include "program/check_match.h"
#include "program/check_parts.h"

namespace stepcast::program {

std::string path_of(const Program& p, RankProgramId r, const Resolution& res, std::uint32_t op) {
  const std::uint32_t call = res.call_of[op];
  return op_path(p, p.rank_programs[r], call, op - res.first_op[call]);
}

std::string describe_op(const Program& p, RankProgramId r, const Resolution& res, std::uint32_t op) {
  return "rank program " + p.rank_programs[r].name + ", " + path_of(p, r, res, op);
}

namespace {

void find_further_problems(const Program& p, const std::vector<Resolution>& resolutions, ProblemList& problems) {
  find_operand_problems(p, problems);
  const bool operands_fit = problems.empty();
  const GroupSizes sizes = group_sizes(p);
  find_form_problems(p, resolutions, sizes, problems);
  find_missing_memberships(p, problems);
  find_shard_problems(p, sizes, problems);
  find_unwritten_reads(p, problems);
  find_aliased_operands(p, problems);
  if (!operands_fit) return;
  find_part_problems(p, sizes, problems);
  const std::size_t before = problems.problems().size();
  const Matching matching = match(p, resolutions, problems);
  if (problems.problems().size() != before) return;
  if (!has_cycle(MatchedGraph::of_programs(p, resolutions, matching))) return;
  for (Problem& problem : find_deadlock(MatchedGraph::of_ranks(p, resolutions, matching)))
    problems.add(std::move(problem));
}

std::vector<Resolution> resolve_all(const Program& p) {
  std::vector<Resolution> resolutions;
  for (const RankProgram& r : p.rank_programs) resolutions.push_back(resolve(p, r));
  return resolutions;
}

}  // namespace

std::vector<Problem> find_problems(const Program& p, const std::vector<Resolution>& resolutions) {
  ProblemList problems;
  find_structure_problems(p, problems);
  if (!problems.empty()) return problems.problems();
  CHECK(resolutions.size() == p.rank_programs.size(), resolutions.size(), p.rank_programs.size());
  find_further_problems(p, resolutions, problems);
  return problems.problems();
}

CheckedProgram::CheckedProgram(Program p) : program_(std::move(p)) {
  ProblemList problems;
  find_structure_problems(program_, problems);
  problems.throw_if_any();
  resolutions_ = resolve_all(program_);
  find_further_problems(program_, resolutions_, problems);
  problems.throw_if_any();
  fingerprint_ = program::fingerprint(program_);
}

}  // namespace stepcast::program
