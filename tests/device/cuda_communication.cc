#include "tests/device/cuda_communication.h"

#ifdef STEPCAST_NCCL
#include <nccl.h>
#include <stdlib.h>

#include <functional>
#include <thread>
#include <vector>

#include "exec/cuda_facts.h"
#include "tests/device/cuda_memory.h"
#endif

namespace stepcast::device_check {

#ifndef STEPCAST_NCCL

void check_nccl(int, Outcome& outcome) { outcome.skipped.emplace_back("NCCL is not linked: no nccl.h or libnccl"); }

#else

namespace {

constexpr int kRanks = 2;
constexpr int kFirstWithTwoRanksOnOneGpu = 23000;
constexpr std::size_t kCount = 1 << 20;  // elements of a rank

void require_nccl(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw Error(ErrorKind::kExecution,
              std::string(call) + ": " + ncclGetErrorString(result) + "; " + ncclGetLastError(nullptr));
}

// One rank: its communicator, stream and two vectors of both ranks' elements.
struct Member {
  int rank = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  float* in = nullptr;
  float* out = nullptr;
};

// Element i of rank r: small enough for whole numbers.
float value_of(int rank, std::size_t i) { return static_cast<float>(static_cast<int>(i % 1000) + 1000 * rank); }

struct Operation {
  const char* name;
  std::function<ncclResult_t(const Member&)> start;
  std::function<float(int rank, std::size_t i)> expected;
  std::size_t results;  // elements of `out`
};

ncclResult_t exchange(const Member& m) {
  ncclGroupStart();
  ncclSend(m.in, kCount, ncclFloat, 1 - m.rank, m.comm, m.stream);
  ncclRecv(m.out, kCount, ncclFloat, 1 - m.rank, m.comm, m.stream);
  return ncclGroupEnd();
}

std::vector<Operation> operations() {
  const auto sum = [](std::size_t i) { return value_of(0, i) + value_of(1, i); };
  return {
      {"all-reduce",
       [](const Member& m) { return ncclAllReduce(m.in, m.out, kCount, ncclFloat, ncclSum, m.comm, m.stream); },
       [=](int, std::size_t i) { return sum(i); }, kCount},
      {"all-gather", [](const Member& m) { return ncclAllGather(m.in, m.out, kCount, ncclFloat, m.comm, m.stream); },
       [](int, std::size_t i) { return value_of(static_cast<int>(i / kCount), i % kCount); }, kRanks * kCount},
      {"reduce-scatter",
       [](const Member& m) {
         return ncclReduceScatter(m.in, m.out, kCount / kRanks, ncclFloat, ncclSum, m.comm, m.stream);
       },
       [=](int rank, std::size_t i) { return sum(static_cast<std::size_t>(rank) * (kCount / kRanks) + i); },
       kCount / kRanks},
      {"send and receive", exchange, [](int rank, std::size_t i) { return value_of(1 - rank, i); }, kCount}};
}

// What is wrong with the results, or nothing.
std::string run_operation(const Operation& operation, const Member& m) {
  std::vector<float> host(kRanks * kCount);
  CUDA_TRY(cudaMemset(m.out, 0xff, host.size() * sizeof(float)));
  require_nccl(operation.start(m), operation.name);
  CUDA_TRY(cudaStreamSynchronize(m.stream));
  CUDA_TRY(cudaMemcpy(host.data(), m.out, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < operation.results; ++i) {
    const float expected = operation.expected(m.rank, i);
    if (host[i] == expected) continue;  // not so for NaN
    return std::string(operation.name) + " on rank " + std::to_string(m.rank) + ", element " + std::to_string(i) +
           ": " + std::to_string(host[i]) + ", expected " + std::to_string(expected);
  }
  return "";
}

struct RankOutcome {
  int passed = 0;
  std::vector<std::string> failures;
};

void run_rank(int rank, int device, ncclUniqueId id, RankOutcome& outcome) {
  try {
    CUDA_TRY(cudaSetDevice(device));
    Member m{.rank = rank};
    require_nccl(ncclCommInitRank(&m.comm, kRanks, id, rank), "ncclCommInitRank");
    const Stream stream;
    GuardedMemory in(kRanks * kCount * sizeof(float));
    const GuardedMemory out(kRanks * kCount * sizeof(float));
    std::vector<float> values(kRanks * kCount);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(rank, i);
    in.copy_in(values.data());
    m.stream = stream.get();
    m.in = static_cast<float*>(in.data());
    m.out = static_cast<float*>(out.data());
    for (const Operation& operation : operations()) {
      const std::string wrong = run_operation(operation, m);
      if (wrong.empty()) {
        ++outcome.passed;
      } else {
        outcome.failures.push_back(wrong);
      }
    }
    out.check_guards("the result of NCCL");
    require_nccl(ncclCommDestroy(m.comm), "ncclCommDestroy");
  } catch (const Error& error) {
    outcome.failures.push_back("rank " + std::to_string(rank) + ": " + error.problems().front().message);
  }
}

}  // namespace

void check_nccl(int devices, Outcome& outcome) {
  int version = 0;
  require_nccl(ncclGetVersion(&version), "ncclGetVersion");
  const std::string name = "NCCL " + exec::nccl_version_text(version);
  if (devices < kRanks && version < kFirstWithTwoRanksOnOneGpu) {
    outcome.skipped.push_back(name + " does not put two ranks on one GPU; 2.30 does, or a second GPU would do");
    return;
  }
  ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  ncclUniqueId id;
  require_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  RankOutcome ranks[kRanks];
  std::thread second(run_rank, 1, devices < kRanks ? 0 : 1, id, std::ref(ranks[1]));
  run_rank(0, 0, id, ranks[0]);
  second.join();
  for (const RankOutcome& rank : ranks) {
    outcome.passed += rank.passed;
    outcome.failures.insert(outcome.failures.end(), rank.failures.begin(), rank.failures.end());
  }
  outcome.notes.push_back(name + ", two ranks on " + (devices < kRanks ? "one GPU" : "two GPUs"));
}

#endif

}  // namespace stepcast::device_check
