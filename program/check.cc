// The order of the checks: structure first, since all else follows indices; then form, initialisation and matching; the
// matched graph last, and only where everything matches.
#include "program/check.h"

#include <functional>
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

void find_own_problems(const Program& p, RankProgramId r, const Resolution& resolution, const GroupSizes& sizes,
                       OwnProblems& own) {
  find_form_problems(p, r, resolution, sizes, own.form);
  find_shard_problems(p, r, sizes, own.shards);
  find_unwritten_reads(p, r, own.reads);
  find_aliased_operands(p, r, own.aliases);
}

// All of a part, then the next part, whoever found it when.
void add_own_problems(const Program& p, const std::vector<OwnProblems>& own, ProblemList& problems) {
  const auto add = [&](ProblemList OwnProblems::*part) {
    for (const OwnProblems& found : own) problems.add_all(found.*part);
  };
  add(&OwnProblems::form);
  find_missing_memberships(p, problems);
  add(&OwnProblems::shards);
  find_unwritten_temps(p, problems);
  find_mixed_row_parts(p, problems);
  add(&OwnProblems::reads);
  add(&OwnProblems::aliases);
}

void find_communication_problems(const Program& p, const std::vector<Resolution>& resolutions,
                                 std::vector<GroupClass> classes, const GroupSizes& sizes, ProblemList& problems) {
  find_part_problems(p, sizes, problems);
  const std::size_t before = problems.problems().size();
  const Matching matching = match(p, resolutions, std::move(classes), problems);
  if (problems.problems().size() != before) return;
  if (!has_cycle(MatchedGraph::of_programs(p, resolutions, matching))) return;
  for (Problem& problem : find_deadlock(MatchedGraph::of_ranks(p, resolutions, matching)))
    problems.add(std::move(problem));
}

// Rank programs and communication are looked at side by side, and beside them `beside` is called.
void find_further_problems(const Program& p, const std::vector<Resolution>& resolutions, ProblemList& problems,
                           const std::function<void()>& beside) {
  find_operand_problems(p, problems);
  const bool operands_fit = problems.empty();
  std::vector<GroupClass> classes = classify_groups(p);
  const GroupSizes sizes = group_sizes(p, classes);
  std::vector<OwnProblems> own(p.rank_programs.size());
  ProblemList communication;
  // The longest pieces first.
  parallel_for(own.size() + 2, is_large(p), [&](std::size_t piece) {
    if (piece == 0) {
      beside();
    } else if (piece == 1) {
      if (operands_fit) find_communication_problems(p, resolutions, std::move(classes), sizes, communication);
    } else {
      find_own_problems(p, RankProgramId(piece - 2), resolutions[piece - 2], sizes, own[piece - 2]);
    }
  });
  add_own_problems(p, own, problems);
  problems.add_all(communication);
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
  find_further_problems(p, resolutions, problems, [] {});
  return problems.problems();
}

CheckedProgram::CheckedProgram(Program p) : program_(std::move(p)) {
  ProblemList problems;
  find_structure_problems(program_, problems);
  problems.throw_if_any();
  resolutions_ = resolve_all(program_);
  // The fingerprint looks at the Program alone.
  find_further_problems(program_, resolutions_, problems, [this] { fingerprint_ = program::fingerprint(program_); });
  problems.throw_if_any();
}

}  // namespace stepcast::program
