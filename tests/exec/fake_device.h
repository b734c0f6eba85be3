// Devices made of closures: what a stream is given lies in its queue until one thread, the driver of all devices of a
// test, executes it, in a random (seeded) order that respects nothing but the order of each stream and the waits for
// events. So an edge that the executor forgets shows as a wrong number.
//
// Collectives and messages meet in the hub and are computed as threads compute them (perform_collective), to the bit.
// The rules of device.h about events of graphs are checked.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "exec/device/comm_layout.h"
#include "exec/device/device_executor.h"

namespace stepcast::exec::fake {

struct FakeOptions {
  std::uint64_t seed = 0;
  bool late = false;  // a device works only while its host waits for it: hosts are as far ahead as they can be
  std::optional<std::int64_t> memory = std::nullopt;                                // bytes of each device
  std::optional<std::pair<program::RankId, program::Stream>> stuck = std::nullopt;  // this stream does nothing
  std::optional<std::pair<program::RankId, int>> fails_at = std::nullopt;  // the rank's n-th kernel (from 0) fails
  std::optional<program::RankId> broken_link = std::nullopt;               // its communication has failed
};

struct GraphSeen {
  program::RankId rank;
  std::uint32_t number = 0;
  std::vector<program::Stream> streams;
};

class FakeDevice;

class FakeHub {
 public:
  explicit FakeHub(FakeOptions options);
  // All devices must have gone.
  ~FakeHub();

  DeviceOptions devices();
  // Only while nothing runs.
  const std::vector<GraphSeen>& graphs() const { return graphs_; }
  int aborts() const { return aborts_; }
  std::int64_t waits() const { return waits_; }
  std::int64_t events_made() const { return events_made_; }

 private:
  friend class FakeDevice;

  // An item of a queue; `run` may be called twice: to arrive where others meet, and to leave once `finished`.
  struct Work {
    std::function<bool()> runnable;  // under the mutex
    std::function<void()> run;
    std::function<bool()> finished;  // under the mutex
  };
  struct Arrived {
    std::vector<std::optional<CollectiveCall>> calls;  // by member
    std::size_t count = 0;
    std::shared_ptr<bool> done = std::make_shared<bool>(false);
  };
  struct Waiting {
    Message message;
    std::shared_ptr<int> left;
  };

  void drive();
  std::vector<std::pair<FakeDevice*, std::size_t>> runnable();
  std::shared_ptr<bool> arrive(const CollectiveCall& call, std::size_t members);
  void arrive(const Message& message, const std::shared_ptr<int>& left);

  const FakeOptions options_;
  RandomStream random_;
  std::uint64_t draws_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FakeDevice*> devices_;
  FakeDevice* at_work_ = nullptr;
  std::map<std::uint32_t, Arrived> collectives_;  // by communicator: the one under way
  // by communicator, sender, receiver: as NCCL matches them
  std::map<std::tuple<std::uint32_t, std::size_t, std::size_t>, std::deque<Waiting>> sends_;
  std::map<std::tuple<std::uint32_t, std::size_t, std::size_t>, std::deque<Waiting>> receives_;
  std::vector<GraphSeen> graphs_;
  int aborts_ = 0;
  std::int64_t waits_ = 0;
  std::int64_t events_made_ = 0;
  bool ending_ = false;
  std::thread driver_;  // last: it uses all of the above
};

}  // namespace stepcast::exec::fake
