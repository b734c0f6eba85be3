// See fake_device.h.
#include "tests/exec/fake_device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::exec::fake {

using program::Stream;
using Clock = std::chrono::steady_clock;

class FakeDevice : public Device {
 public:
  FakeDevice(FakeHub& hub, program::RankId rank, const CommLayout& layout)
      : hub_(hub),
        rank_(rank),
        layout_(layout),
        limited_(host_, Bytes(hub.options_.memory.value_or(std::int64_t{1} << 40))) {
    const std::lock_guard lock(hub_.mutex_);
    hub_.devices_.push_back(this);
  }
  ~FakeDevice() override {
    FakeDevice::end_communication();
    const std::lock_guard lock(hub_.mutex_);
    hub_.aborts_ -= 1;  // this one is nobody's
    std::erase(hub_.devices_, this);
  }

  std::byte* allocate(std::int64_t bytes) override { return limited_.allocate(bytes); }
  void release(std::byte* memory, std::int64_t bytes) override { limited_.release(memory, bytes); }
  void fill(std::byte* memory, int value, std::int64_t bytes) override { host_.fill(memory, value, bytes); }
  std::string room() const override { return "the device has a fake memory"; }
  PhysicalMemory& host_memory() override { return host_; }
  void connect() override {}
  void begin_thread() override {}

  void fill(Stream s, std::byte* data, int value, std::int64_t bytes) override {
    push(s, [data, value, bytes] { std::memset(data, value, static_cast<std::size_t>(bytes)); });
  }

  void run(Stream s, kernels::Kernel kernel, const kernels::KernelContext& context) override {
    std::vector<kernels::Tensor> operands(context.operands.begin(), context.operands.end());
    push(s, [this, kernel, context, operands] {
      const auto& fails = hub_.options_.fails_at;
      if (fails && fails->first == rank_ && fails->second == kernels_run_++) throw std::runtime_error("injected fault");
      kernels::KernelContext own = context;
      own.operands = operands;
      kernel(own);
    });
  }

  void collective(Stream s, const CollectiveCall& call) override {
    const std::size_t members = layout_.members()[call.communicator].size();
    CHECK(layout_.members()[call.communicator][call.member] == rank_, call.communicator, call.member);
    auto done = std::make_shared<std::shared_ptr<bool>>();  // empty until it has arrived
    push(s, {.runnable = [done] { return !*done || **done; },
             .run =
                 [this, done, call, members] {
                   if (!*done) *done = hub_.arrive(call, members);
                 },
             .finished = [done] { return *done && **done; }});
  }

  void messages(Stream s, std::span<const Message> messages) override {
    std::vector<Message> all(messages.begin(), messages.end());
    for (const Message& m : all) CHECK(m.communicator == all.front().communicator, "messages of one op share one");
    const auto left = std::make_shared<int>(static_cast<int>(all.size()));
    const auto arrived = std::make_shared<bool>(false);
    push(s, {.runnable = [left, arrived] { return !*arrived || *left == 0; },
             .run =
                 [this, all, left, arrived] {
                   if (!*arrived) {
                     for (const Message& m : all) hub_.arrive(m, left);
                   }
                   *arrived = true;
                 },
             .finished = [left, arrived] { return *arrived && *left == 0; }});
  }

  void record(Stream s, EventNumber number) override {
    const std::lock_guard lock(hub_.mutex_);
    check_sound();
    Event& event = event_of(number);
    const std::int64_t version = ++event.recorded;
    event.graph = in_graph_;
    push_locked(s, [this, number, version] {
      const std::lock_guard inner(hub_.mutex_);
      events_[number].happened = version;
      events_[number].time = Clock::now();
    });
  }

  void wait(Stream s, EventNumber number) override {
    const std::lock_guard lock(hub_.mutex_);
    Event& event = event_of(number);
    CHECK(event.recorded > 0 && (in_graph_ || !event.graph), "an event of a graph is waited for outside", number);
    ++hub_.waits_;
    const std::int64_t version = event.recorded;
    push_locked(s, {.runnable = [this, number, version] { return events_[number].happened >= version; },
                    .run = [] {},
                    .finished = [] { return true; }});
  }

  bool happened(EventNumber number) override {
    const std::lock_guard lock(hub_.mutex_);
    check_sound();
    const Event& event = event_of(number);
    return event.happened == event.recorded;
  }

  bool wait_for(EventNumber number, Duration limit) override {
    std::unique_lock lock(hub_.mutex_);
    waiting_ = true;
    hub_.changed_.notify_all();
    const auto ready = [&] { return failure_ || events_[number].happened == events_[number].recorded; };
    if (!aborted_) hub_.changed_.wait_for(lock, std::chrono::nanoseconds(limit.ps / 1000), ready);
    waiting_ = false;
    check_sound();
    return events_[number].happened == events_[number].recorded;
  }

  Duration elapsed(EventNumber from, EventNumber to) override {
    const std::lock_guard lock(hub_.mutex_);
    for (const EventNumber n : {from, to}) CHECK(events_[n].happened == events_[n].recorded, "has not happened", n);
    return Duration(std::chrono::nanoseconds(events_[to].time - events_[from].time).count() * 1000);
  }

  void begin_graph(std::uint32_t graph, std::span<const Stream> streams) override {
    const std::lock_guard lock(hub_.mutex_);
    CHECK(!in_graph_, graph);
    graph_streams_.assign(streams.begin(), streams.end());
    hub_.graphs_.push_back({rank_, graph, graph_streams_});
    meet_locked();
    in_graph_ = true;
  }
  void end_graph() override {
    const std::lock_guard lock(hub_.mutex_);
    CHECK(in_graph_);
    in_graph_ = false;
    meet_locked();
  }

  void copy_in(std::byte* to, const std::byte* from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) override { copy_in(to, from, bytes); }

  void check_communication() override {
    if (hub_.options_.broken_link == rank_) throw Error(ErrorKind::kExecution, "the link is broken");
  }

  void end_communication() override {
    std::unique_lock lock(hub_.mutex_);
    aborted_ = true;
    ++hub_.aborts_;
    hub_.changed_.wait(lock, [&] { return hub_.at_work_ != this; });
    for (std::deque<FakeHub::Work>& queue : queues_) queue.clear();
    hub_.collectives_.clear();
    hub_.sends_.clear();
    hub_.receives_.clear();
    hub_.changed_.notify_all();
  }

 private:
  friend class FakeHub;

  struct Event {
    std::int64_t recorded = 0;  // so many times
    std::int64_t happened = 0;  // the latest recording that has
    bool graph = false;
    Clock::time_point time;
  };

  void push(Stream s, std::function<void()> run) {
    push(s, {.runnable = [] { return true; }, .run = std::move(run), .finished = [] { return true; }});
  }
  void push(Stream s, FakeHub::Work work) {
    const std::lock_guard lock(hub_.mutex_);
    check_sound();
    push_locked(s, std::move(work));
  }
  void push_locked(Stream s, std::function<void()> run) {
    push_locked(s, {.runnable = [] { return true; }, .run = std::move(run), .finished = [] { return true; }});
  }
  void push_locked(Stream s, FakeHub::Work work) {
    if (aborted_) return;
    queues_[static_cast<std::size_t>(s)].push_back(std::move(work));
    hub_.changed_.notify_all();
  }

  // All streams of the graph wait for each other.
  void meet_locked() {
    const auto missing = std::make_shared<std::size_t>(graph_streams_.size());
    for (const Stream s : graph_streams_) {
      const auto arrived = std::make_shared<bool>(false);
      push_locked(s, {.runnable = [missing, arrived] { return !*arrived || *missing == 0; },
                      .run =
                          [missing, arrived] {
                            if (!*arrived) --*missing;
                            *arrived = true;
                          },
                      .finished = [missing, arrived] { return *arrived && *missing == 0; }});
    }
  }

  Event& event_of(EventNumber number) {
    if (number >= events_.size()) {
      hub_.events_made_ += static_cast<std::int64_t>(number + 1 - events_.size());
      events_.resize(number + 1);
    }
    return events_[number];
  }

  void check_sound() const {
    if (failure_) throw Error(ErrorKind::kExecution, *failure_);
  }

  bool may_work(std::size_t stream) const {
    if (aborted_ || failure_ || queues_[stream].empty() || (hub_.options_.late && !waiting_)) return false;
    const auto& stuck = hub_.options_.stuck;
    if (stuck && stuck->first == rank_ && static_cast<std::size_t>(stuck->second) == stream) return false;
    return queues_[stream].front().runnable();
  }

  FakeHub& hub_;
  program::RankId rank_;
  const CommLayout& layout_;
  HostMemory host_;
  LimitedMemory limited_;
  std::array<std::deque<FakeHub::Work>, program::kStreamCount> queues_;
  std::deque<Event> events_;
  std::vector<Stream> graph_streams_;
  bool in_graph_ = false;
  bool waiting_ = false;  // the host, for this device
  bool aborted_ = false;
  int kernels_run_ = 0;
  std::optional<std::string> failure_;
};

FakeHub::FakeHub(FakeOptions options)
    : options_(options), random_(options.seed, "fake device"), driver_([this] { drive(); }) {}

FakeHub::~FakeHub() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  driver_.join();
}

DeviceOptions FakeHub::devices() {
  return {.open = [this](program::RankId rank,
                         const CommLayout& layout) { return std::make_unique<FakeDevice>(*this, rank, layout); },
          .meet = {}};
}

std::vector<std::pair<FakeDevice*, std::size_t>> FakeHub::runnable() {
  std::vector<std::pair<FakeDevice*, std::size_t>> heads;
  for (FakeDevice* device : devices_) {
    for (std::size_t s = 0; s < device->queues_.size(); ++s) {
      if (device->may_work(s)) heads.emplace_back(device, s);
    }
  }
  return heads;
}

void FakeHub::drive() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const auto heads = runnable();
    if (heads.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto [device, stream] = heads[random_.integer_at(draws_++, heads.size())];
    Work& work = device->queues_[stream].front();
    at_work_ = device;
    lock.unlock();
    std::optional<std::string> failure;
    try {
      work.run();
    } catch (const std::exception& e) {
      failure = e.what();
    }
    lock.lock();
    if (failure) device->failure_ = failure;
    if (work.finished()) device->queues_[stream].pop_front();
    at_work_ = nullptr;
    changed_.notify_all();
  }
}

// Only the driver arrives, so that the lock is for those who clear.
std::shared_ptr<bool> FakeHub::arrive(const CollectiveCall& call, std::size_t members) {
  const std::lock_guard lock(mutex_);
  Arrived& at = collectives_[call.communicator];
  at.calls.resize(members);
  CHECK(!at.calls[call.member], "member arrives twice", call.member);
  at.calls[call.member] = call;
  const std::shared_ptr<bool> done = at.done;
  if (++at.count < members) return done;
  std::vector<MemberBuffers> buffers;
  for (const std::optional<CollectiveCall>& other : at.calls) {
    CHECK(other->spec == call.spec, "members disagree", call.communicator);
    buffers.push_back(other->buffers);
  }
  perform_collective(call.spec, buffers);
  *done = true;
  collectives_.erase(call.communicator);
  return done;
}

void FakeHub::arrive(const Message& message, const std::shared_ptr<int>& left) {
  const std::lock_guard lock(mutex_);
  const std::tuple lane{message.communicator, message.send ? message.member : message.peer,
                        message.send ? message.peer : message.member};
  std::deque<Waiting>& partners = message.send ? receives_[lane] : sends_[lane];
  if (partners.empty()) {
    (message.send ? sends_ : receives_)[lane].push_back({message, left});
    return;
  }
  const Waiting partner = partners.front();
  partners.pop_front();
  const Message& from = message.send ? message : partner.message;
  const Message& to = message.send ? partner.message : message;
  CHECK(from.bytes == to.bytes, from.bytes, to.bytes);
  if (from.bytes > 0) std::memcpy(to.data, from.data, static_cast<std::size_t>(from.bytes));
  --*left;
  --*partner.left;
}

}  // namespace stepcast::exec::fake
