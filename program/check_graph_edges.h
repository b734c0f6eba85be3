// Enumeration of the matched graph's edges. A template, because each edge is visited several times and stored never.
#pragma once

#include <array>
#include <optional>

#include "program/check_graph.h"

namespace stepcast::program {

template <class Visit>
void MatchedGraph::for_each_edge(const Visit& visit) const {
  for (const Instance& instance : instances_) visit_instance(instance, visit);
  for (const EventEdge& edge : partners_) visit(edge);
}

template <class Visit>
void MatchedGraph::visit_instance(const Instance& instance, const Visit& visit) const {
  const RankProgram& r = program_.rank_programs[instance.program];
  const Resolution& res = resolutions_[instance.program.value];
  std::array<std::optional<std::uint32_t>, kStreamCount> tail;
  std::optional<std::uint32_t> host;        // the last host_read: every later op waits for it
  std::optional<std::uint32_t> collective;  // the last collective, in issue order over all streams
  for (std::uint32_t call = 0; call < r.calls.size(); ++call) {
    std::uint32_t flat = res.first_op[call];
    for (const Op& op : program_.segments[r.calls[call].segment].ops) {
      const std::uint32_t start = start_of(instance, flat);
      const auto wait = [&](std::uint32_t earlier, WaitReason reason) {
        visit(EventEdge{end_of(instance, earlier), start, reason});
      };
      auto& stream = tail[static_cast<std::size_t>(op.stream)];
      if (stream) wait(*stream, WaitReason::kStream);
      for (const std::uint32_t earlier : res.predecessors(flat)) wait(earlier, WaitReason::kData);
      if (host && host != stream) wait(*host, WaitReason::kHost);
      if (is_collective(op.kind)) {
        if (collective && collective != stream) wait(*collective, WaitReason::kIssueOrder);
        collective = flat;
      }
      if (end_of(instance, flat) != start) visit(EventEdge{start, end_of(instance, flat), WaitReason::kPartner});
      if (op.kind == OpKind::kHostRead) host = flat;
      stream = flat;
      ++flat;
    }
  }
}

}  // namespace stepcast::program
