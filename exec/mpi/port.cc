// See port.h. Nothing here is of MPI beyond non-blocking messages of bytes, so that its errors are fatal by default and
// end the job.
#include "exec/mpi/port.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "base/error.h"

namespace stepcast::exec {
namespace {

// MPI counts in int.
constexpr std::int64_t kLongestPiece = std::int64_t{1} << 30;

// Ranks often share cores: a thread that finds nothing yields at first and then sleeps a little.
constexpr int kYields = 64;
constexpr std::chrono::microseconds kNap(50);

}  // namespace

// Requests under way and what happens when each has ended.
struct Port::Impl {
  struct Pending {
    int requests = 0;
    std::function<void()> done;
  };

  void add(MPI_Request request, const std::shared_ptr<Pending>& pending) {
    ++pending->requests;
    requests.push_back(request);
    owners.push_back(pending);
  }

  // Calls what has ended. Whether anything has.
  bool test() {
    if (requests.empty()) return false;
    indices.resize(requests.size());
    int count = 0;
    MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count, indices.data(), MPI_STATUSES_IGNORE);
    if (count == MPI_UNDEFINED || count == 0) return false;
    std::vector<std::function<void()>> ended;
    indices.resize(static_cast<std::size_t>(count));
    std::sort(indices.rbegin(), indices.rend());
    for (const int index : indices) {
      const auto at = static_cast<std::size_t>(index);
      if (--owners[at]->requests == 0) ended.push_back(std::move(owners[at]->done));
      // The order of requests does not matter: the last one takes the place.
      requests[at] = requests.back();
      owners[at] = std::move(owners.back());
      requests.pop_back();
      owners.pop_back();
    }
    // They may add requests.
    for (const std::function<void()>& done : ended) done();
    return true;
  }

  std::vector<MPI_Request> requests;
  std::vector<std::shared_ptr<Pending>> owners;  // of each request
  std::vector<int> indices;
};

Port::Port() : impl_(std::make_unique<Impl>()) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    throw Error(ErrorKind::kEnvironment, "this MPI takes calls of the main thread only");
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  void* bound = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&bound), &known);
  tag_bound_ = known != 0 ? *static_cast<int*>(bound) : 32767;  // the least that MPI promises
  thread_ = std::thread([this] { run(); });
}

Port::~Port() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  posted_.notify_one();
  thread_.join();
  MPI_Finalize();
}

void Port::end_all(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

void Port::send(int peer, int tag, const Header& header, const void* data, std::function<void()> done) {
  post([this, peer, tag, header, data, done = std::move(done)] { start_send(peer, tag, header, data, done); });
}

void Port::receive(int peer, int tag, Receive receive) {
  post([this, lane = Lane{peer, tag}, receive = std::move(receive)] {
    LaneState& state = lanes_[lane];
    state.waiting.push_back(receive);
    if (state.waiting.size() == 1) start_receive(lane);
  });
}

void Port::post(std::function<void()> what) {
  {
    const std::lock_guard lock(mutex_);
    posts_.push_back(std::move(what));
  }
  posted_.notify_one();
}

void Port::run() {
  int idle = 0;
  for (;;) {
    const bool posted = take_posts();
    if (impl_->test() || posted) {
      idle = 0;
      continue;
    }
    std::unique_lock lock(mutex_);
    if (!posts_.empty()) continue;
    if (impl_->requests.empty()) {
      if (ending_) return;
      posted_.wait(lock, [this] { return !posts_.empty() || ending_; });
    } else if (++idle > kYields) {
      posted_.wait_for(lock, kNap, [this] { return !posts_.empty(); });
    } else {
      lock.unlock();
      std::this_thread::yield();
    }
  }
}

bool Port::take_posts() {
  std::vector<std::function<void()>> posts;
  {
    const std::lock_guard lock(mutex_);
    posts.swap(posts_);
  }
  for (const std::function<void()>& what : posts) what();
  return !posts.empty();
}

void Port::start_send(int peer, int tag, const Header& header, const void* data, const std::function<void()>& done) {
  const auto kept = std::make_shared<Header>(header);  // until it has been sent
  const auto pending = std::make_shared<Impl::Pending>();
  pending->done = [kept, done] { done(); };
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(kept.get(), sizeof(Header), MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
  impl_->add(request, pending);
  for (std::int64_t begin = 0; begin < header.bytes; begin += kLongestPiece) {
    const int bytes = static_cast<int>(std::min(kLongestPiece, header.bytes - begin));
    MPI_Isend(static_cast<const std::byte*>(data) + begin, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
    impl_->add(request, pending);
  }
}

void Port::start_receive(const Lane& lane) {
  LaneState& state = lanes_[lane];
  const auto pending = std::make_shared<Impl::Pending>();
  pending->done = [this, lane] { receive_bytes(lane); };
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&state.header, sizeof(Header), MPI_BYTE, lane.first, lane.second, MPI_COMM_WORLD, &request);
  impl_->add(request, pending);
}

void Port::receive_bytes(const Lane& lane) {
  LaneState& state = lanes_[lane];
  void* data = state.waiting.front().accept(state.header);
  if (data == nullptr && state.header.bytes > 0) return;
  if (state.header.bytes == 0) return end_receive(lane);
  const auto pending = std::make_shared<Impl::Pending>();
  pending->done = [this, lane] { end_receive(lane); };
  for (std::int64_t begin = 0; begin < state.header.bytes; begin += kLongestPiece) {
    const int bytes = static_cast<int>(std::min(kLongestPiece, state.header.bytes - begin));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(static_cast<std::byte*>(data) + begin, bytes, MPI_BYTE, lane.first, lane.second, MPI_COMM_WORLD,
              &request);
    impl_->add(request, pending);
  }
}

void Port::end_receive(const Lane& lane) {
  LaneState& state = lanes_[lane];
  const Header header = state.header;
  const Receive ended = std::move(state.waiting.front());
  state.waiting.pop_front();
  if (!state.waiting.empty()) start_receive(lane);
  ended.done(header);
}

}  // namespace stepcast::exec
