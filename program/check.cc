// The order of the checks: structure first, since all else follows indices; then form, initialisation and matching; the
// matched graph last, and only where everything matches.
#include "program/check.h"

#include <utility>

#include "base/check.h"
#include "base/parallel.h"
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

bool is_large(const Program& p) {
  constexpr std::size_t kManyCalls = 5000;
  std::size_t calls = 0;
  for (const RankProgram& r : p.rank_programs) calls += r.calls.size();
  return calls >= kManyCalls;
}

namespace {

// What one rank program is checked for by itself, part by part.
struct OwnProblems {
  ProblemList form, shards, reads, aliases;
};

void add_own_problems(const Program& p, const std::vector<Resolution>& resolutions, const GroupSizes& sizes,
                      ProblemList& problems) {
  std::vector<OwnProblems> own(p.rank_programs.size());
  parallel_for(own.size(), is_large(p), [&](std::size_t i) {
    const RankProgramId r(i);
    find_form_problems(p, r, resolutions[i], sizes, own[i].form);
    find_shard_problems(p, r, sizes, own[i].shards);
    find_unwritten_reads(p, r, own[i].reads);
    find_aliased_operands(p, r, own[i].aliases);
  });
  // All of a part, then the next part, whoever found it when.
  const auto add = [&](ProblemList OwnProblems::*part) {
    for (const OwnProblems& found : own) {
      for (const Problem& problem : (found.*part).problems()) problems.add(problem);
    }
  };
  add(&OwnProblems::form);
  find_missing_memberships(p, problems);
  add(&OwnProblems::shards);
  find_unwritten_temps(p, problems);
  add(&OwnProblems::reads);
  add(&OwnProblems::aliases);
}

void find_further_problems(const Program& p, const std::vector<Resolution>& resolutions, ProblemList& problems) {
  find_operand_problems(p, problems);
  const bool operands_fit = problems.empty();
  std::vector<GroupClass> classes = classify_groups(p);
  const GroupSizes sizes = group_sizes(p, classes);
  add_own_problems(p, resolutions, sizes, problems);
  if (!operands_fit) return;
  find_part_problems(p, sizes, problems);
  const std::size_t before = problems.problems().size();
  const Matching matching = match(p, resolutions, std::move(classes), problems);
  if (problems.problems().size() != before) return;
  if (!has_cycle(MatchedGraph::of_programs(p, resolutions, matching))) return;
  for (Problem& problem : find_deadlock(MatchedGraph::of_ranks(p, resolutions, matching)))
    problems.add(std::move(problem));
}

std::vector<Resolution> resolve_all(const Program& p) {
  std::vector<Resolution> resolutions(p.rank_programs.size());
  parallel_for(resolutions.size(), is_large(p),
               [&](std::size_t i) { resolutions[i] = resolve(p, p.rank_programs[RankProgramId(i)]); });
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
  // The fingerprint looks at the Program alone: it is made beside the rest.
  parallel_for(2, is_large(program_), [&](std::size_t task) {
    if (task == 1) {
      fingerprint_ = program::fingerprint(program_);
      return;
    }
    resolutions_ = resolve_all(program_);
    find_further_problems(program_, resolutions_, problems);
  });
  problems.throw_if_any();
}

}  // namespace stepcast::program
