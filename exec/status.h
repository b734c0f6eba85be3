// Where each rank is: its host thread's op and, per stream, the op under way and what it waits for. Each entry is one
// atomic word, so it can be read at any time, also of a rank that hangs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exec/communicator.h"
#include "program/check.h"
#include "program/program.h"

namespace stepcast::exec {

enum class HostPhase : std::uint8_t { kIdle, kIssuing, kBlocked, kFinished, kMeeting };
enum class StreamPhase : std::uint8_t { kIdle, kWaitingEdge, kRunning, kWaitingPeers, kTransferring };

// A phase, the op it is about and another op it waits for; op numbers are below 2^28.
class StatusWord {
 public:
  struct Value {
    std::uint8_t phase = 0;
    std::uint32_t op = 0;
    std::uint32_t other = 0;
  };
  void set(Value v) {
    word_.store(std::uint64_t{v.phase} << 56 | std::uint64_t{v.op} << 28 | v.other, std::memory_order_relaxed);
  }
  Value get() const {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    constexpr std::uint64_t kOpMask = (1U << 28) - 1;
    return {static_cast<std::uint8_t>(word >> 56), static_cast<std::uint32_t>(word >> 28 & kOpMask),
            static_cast<std::uint32_t>(word & kOpMask)};
  }

 private:
  std::atomic<std::uint64_t> word_{0};
};

// All of it is lock-free atomics, so that it can lie in memory that processes share (status_page.h).
class StatusBoard {
 public:
  // Before anything is set of a step; steps are 1-based.
  void begin_step(std::uint64_t step) {
    completed_.store(0, std::memory_order_relaxed);
    step_.store(step, std::memory_order_relaxed);
  }
  void op_completed() { completed_.fetch_add(1, std::memory_order_relaxed); }
  // The step begun last, 0 before the first, and its ops completed so far.
  std::uint64_t step() const { return step_.load(std::memory_order_relaxed); }
  std::uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }

  void set_host(HostPhase phase, std::uint32_t op) { host_.set({static_cast<std::uint8_t>(phase), op, 0}); }
  void set_stream(program::Stream s, StreamPhase phase, std::uint32_t op, std::uint32_t other = 0) {
    streams_[static_cast<std::size_t>(s)].set({static_cast<std::uint8_t>(phase), op, other});
  }
  StatusWord::Value host() const { return host_.get(); }
  StatusWord::Value stream(program::Stream s) const { return streams_[static_cast<std::size_t>(s)].get(); }

 private:
  std::atomic<std::uint64_t> step_{0};
  std::atomic<std::uint64_t> completed_{0};
  StatusWord host_;
  std::array<StatusWord, program::kStreamCount> streams_;
};

// "F.m0.L1.attn.reduce": path of a flat op number of `rank`.
std::string path_of(const program::CheckedProgram& checked, program::RankId rank, std::uint32_t op);

// The ranks that a communication op under way still waits for.
using AwaitedRanks = std::function<std::vector<program::RankId>(const program::Op&, std::uint32_t op)>;

// "rank 1: host finished; compute runs F.m0.L1.mlp.up; tp in F.m0.L1.attn.reduce waits for ranks 0, 2".
std::string status_line(const program::CheckedProgram& checked, program::RankId rank, const StatusBoard& board,
                        const AwaitedRanks& awaited);
// The same, asking the communicators of this process: all partners of messages, and whom a collective misses.
std::string status_line(const program::CheckedProgram& checked, program::RankId rank, const StatusBoard& board,
                        Communicators& communicators);

}  // namespace stepcast::exec
