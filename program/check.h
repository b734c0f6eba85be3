// Refuses Programs that are malformed or would deadlock. Both engines run only checked Programs.
//
// Well-formed: indices in range, call argument types equal to the slots', views inside their buffers, operands fit
// their op (ops/rules.h) and share no bytes that it writes, paths unique, one stream per (group role, channel) and, for
// messages, per peer and direction, parts by an index role as many as members, shards inside their parameter and
// buffer, matched collectives agree in kind, type, reduction and per-member counts, every send has its receive and
// equal bytes, non-persistent buffers written before read. Deadlock-free: ops matched across ranks are contracted into
// one node; a cycle over stream order, edges, host blocking (host_read) and issue-order edges between consecutive
// collectives of a rank is refused and printed.
#pragma once

#include <vector>

#include "base/error.h"
#include "program/program.h"
#include "program/resolve.h"

namespace stepcast::program {

// All problems found (empty: sound). A cycle's message lists its ops in order: "rank 0 F.c0.m1.send_next -> ...".
std::vector<Problem> find_problems(const Program& p, const std::vector<Resolution>& resolutions);

// A Program that passed, with its resolutions (by RankProgramId): what sim and exec take.
class CheckedProgram {
 public:
  // Throws Error with every problem: kInput, or kUnsupported for a symbol that an op sets.
  explicit CheckedProgram(Program p);
  const Program& program() const { return program_; }
  const std::vector<Resolution>& resolutions() const { return resolutions_; }
  const Resolution& resolution(RankProgramId r) const { return resolutions_[r.value]; }
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  Program program_;
  std::vector<Resolution> resolutions_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace stepcast::program
