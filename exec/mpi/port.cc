// See port.h. Nothing here is of MPI beyond non-blocking messages of bytes, so that its errors are fatal by default and
// end the job.
#include "exec/mpi/port.h"

#include <mpi.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace stepcast::exec {
namespace {

using std::chrono::nanoseconds;

// MPI counts in int.
constexpr std::int64_t kLongestPiece = std::int64_t{1} << 30;

// Bytes that come with their header: copying them costs less than another message.
constexpr std::int64_t kEnvelopeBytes = 16384;

// A thread that finds nothing looks again at once for a while, where cores are free for it, and then naps: ever longer,
// so that waiting takes at most a quarter more than what it waits for, and one that waits long costs little.
constexpr nanoseconds kLooks(50'000);
constexpr int kNapShare = 4;
struct Naps {
  nanoseconds shortest;
  nanoseconds longest;
};
constexpr Naps kPolling{nanoseconds(50'000), nanoseconds(500'000)};
// Where all processes wake each other and no message is in pieces, there is nothing to find.
constexpr Naps kWoken{nanoseconds(2'000'000), nanoseconds(10'000'000)};

// That this process may use.
int cores_here() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

// Of this process, among those of its host that may use the very cores that it may.
HostPlace place_on(MPI_Comm host) {
  int count = 1;
  int own = 0;
  MPI_Comm_size(host, &count);
  MPI_Comm_rank(host, &own);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  std::vector<cpu_set_t> all(static_cast<std::size_t>(count));
  MPI_Allgather(&cores, sizeof cores, MPI_BYTE, all.data(), sizeof cores, MPI_BYTE, host);
  HostPlace place{.index = 0, .count = 0};
  for (int process = 0; process < count; ++process) {
    if (CPU_EQUAL(&all[static_cast<std::size_t>(process)], &cores) == 0) continue;
    ++place.count;
    if (process < own) ++place.index;
  }
  return place;
}

}  // namespace

// Requests under way and what happens when each has ended.
struct Port::Impl {
  struct Pending {
    int requests = 0;
    bool in_pieces = false;
    std::function<void()> done;
  };

  void add(MPI_Request request, const std::shared_ptr<Pending>& pending) {
    ++pending->requests;
    if (pending->in_pieces) ++pieces;
    requests.push_back(request);
    owners.push_back(pending);
  }

  // Makes the bells of the processes of `host`, collectively, each in a cache line of its own.
  void make_bells(MPI_Comm host, int rank, int size) {
    constexpr MPI_Aint kBytes = 64;
    static_assert(sizeof(Bell) <= kBytes);
    void* memory = nullptr;
    MPI_Win_allocate_shared(kBytes, 1, MPI_INFO_NULL, host, static_cast<void*>(&memory), &window);
    own_bell = new (memory) Bell;
    bells.resize(static_cast<std::size_t>(size));
    int count = 1;
    MPI_Comm_size(host, &count);
    std::vector<int> ranks(static_cast<std::size_t>(count));
    MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, host);  // and by then all bells are made
    for (int process = 0; process < count; ++process) {
      MPI_Aint bytes = 0;
      int unit = 1;
      MPI_Win_shared_query(window, process, &bytes, &unit, static_cast<void*>(&memory));
      bells[static_cast<std::size_t>(ranks[static_cast<std::size_t>(process)])] = static_cast<Bell*>(memory);
    }
    one_host = count == size;
  }
  // Of a process of this host: it has been sent something, or what it sends has been taken.
  void ring(int peer) {
    if (Bell* bell = bells[static_cast<std::size_t>(peer)]) bell->ring();
  }

  // After nothing has moved for `idle`.
  void sleep(std::uint32_t heard, nanoseconds idle) {
    const Naps& naps = one_host && pieces == 0 ? kWoken : kPolling;
    own_bell->sleep(heard, std::clamp(idle / kNapShare, naps.shortest, naps.longest));
  }

  // Calls what has ended. Whether anything has.
  bool test() {
    if (requests.empty()) return false;
    indices.resize(requests.size());
    int count = 0;
    // MPI looks at the requests before it moves messages: what a call moves, the next one finds.
    for (int look = 0; look < 2 && count == 0; ++look) {
      MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count, indices.data(), MPI_STATUSES_IGNORE);
    }
    if (count == MPI_UNDEFINED || count == 0) return false;
    std::vector<std::function<void()>> ended;
    indices.resize(static_cast<std::size_t>(count));
    std::sort(indices.rbegin(), indices.rend());
    for (const int index : indices) {
      const auto at = static_cast<std::size_t>(index);
      if (owners[at]->in_pieces) --pieces;
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

  MPI_Win window = MPI_WIN_NULL;  // of the bells
  Bell* own_bell = nullptr;
  std::vector<Bell*> bells;  // by rank; null on other hosts
  bool one_host = false;
  int pieces = 0;        // under way, which MPI moves by itself
  nanoseconds looks{0};  // for so long it looks without a nap
  std::vector<MPI_Request> requests;
  std::vector<std::shared_ptr<Pending>> owners;  // of each request
  std::vector<int> indices;
};

Port::Port() : impl_(std::make_unique<Impl>()) {
  // Envelopes go through shared memory in one piece, unless the user has said otherwise: a larger message takes three
  // passes of the receiver's and the sender's progress.
  ::setenv("OMPI_MCA_btl_vader_eager_limit", "32768", 0);
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
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  place_ = place_on(host);
  impl_->make_bells(host, rank_, size_);
  MPI_Comm_free(&host);
  if (2 * place_.count <= cores_here()) impl_->looks = kLooks;
  thread_ = std::thread([this] { run(); });
}

Port::~Port() {
  ending_ = true;
  impl_->own_bell->ring();
  thread_.join();
  MPI_Win_free(&impl_->window);
  MPI_Finalize();
}

void Port::end_all(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

void Port::perform(std::function<void()> what) {
  if (std::this_thread::get_id() == thread_.get_id()) return what();
  {
    const std::lock_guard lock(mutex_);
    posts_.push_back(std::move(what));
  }
  impl_->own_bell->ring();
}

void Port::send(int peer, int tag, const Header& header, const void* data, std::function<void()> done) {
  perform([this, peer, tag, header, data, done = std::move(done)] { start_send(peer, tag, header, data, done); });
}

void Port::receive(int peer, int tag, Receive receive) {
  perform([this, lane = Lane{peer, tag}, receive = std::move(receive)] {
    LaneState& state = lanes_[lane];
    state.waiting.push_back(receive);
    if (state.waiting.size() == 1) start_receive(lane);
  });
}

void Port::run() {
  prctl(PR_SET_TIMERSLACK, 1UL);  // naps are as short as they are meant to be
  auto moved = std::chrono::steady_clock::now();
  for (;;) {
    const std::uint32_t heard = impl_->own_bell->rings();
    const bool posted = take_posts();
    const bool ended = impl_->test();
    const auto now = std::chrono::steady_clock::now();
    if (ended || posted) {
      moved = now;
    } else if (impl_->requests.empty()) {
      if (ending_) return;
      impl_->own_bell->sleep(heard);
    } else if (now - moved < impl_->looks) {
      std::this_thread::yield();
    } else {
      impl_->sleep(heard, now - moved);
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
  const bool together = header.bytes <= kEnvelopeBytes;
  const auto payload = static_cast<std::size_t>(together ? header.bytes : 0);
  const auto envelope = std::make_shared<std::vector<std::byte>>(sizeof header + payload);
  std::memcpy(envelope->data(), &header, sizeof header);
  if (payload > 0) std::memcpy(envelope->data() + sizeof header, data, payload);
  const auto pending = std::make_shared<Impl::Pending>();
  // What has been copied is the caller's again at once.
  pending->in_pieces = !together;
  pending->done = together ? std::function<void()>([envelope] {}) : [envelope, done] { done(); };
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(envelope->data(), static_cast<int>(envelope->size()), MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
  impl_->add(request, pending);
  for (std::int64_t begin = 0; !together && begin < header.bytes; begin += kLongestPiece) {
    const int bytes = static_cast<int>(std::min(kLongestPiece, header.bytes - begin));
    MPI_Isend(static_cast<const std::byte*>(data) + begin, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
    impl_->add(request, pending);
  }
  impl_->ring(peer);
  if (together) done();
}

void Port::start_receive(const Lane& lane) {
  LaneState& state = lanes_[lane];
  state.envelope.resize(sizeof(Header) + kEnvelopeBytes);
  const auto pending = std::make_shared<Impl::Pending>();
  pending->done = [this, lane] { open_envelope(lane); };
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(state.envelope.data(), static_cast<int>(state.envelope.size()), MPI_BYTE, lane.first, lane.second,
            MPI_COMM_WORLD, &request);
  impl_->add(request, pending);
}

void Port::open_envelope(const Lane& lane) {
  LaneState& state = lanes_[lane];
  Header header;
  std::memcpy(&header, state.envelope.data(), sizeof header);
  void* data = state.waiting.front().accept(header);
  if (data == nullptr && header.bytes > 0) return;
  if (header.bytes > kEnvelopeBytes) return receive_bytes(lane, header, data);
  if (header.bytes > 0)
    std::memcpy(data, state.envelope.data() + sizeof header, static_cast<std::size_t>(header.bytes));
  end_receive(lane, header);
}

void Port::receive_bytes(const Lane& lane, const Header& header, void* data) {
  const auto pending = std::make_shared<Impl::Pending>();
  pending->in_pieces = true;
  pending->done = [this, lane, header] {
    impl_->ring(lane.first);  // its bytes are gone
    end_receive(lane, header);
  };
  for (std::int64_t begin = 0; begin < header.bytes; begin += kLongestPiece) {
    const int bytes = static_cast<int>(std::min(kLongestPiece, header.bytes - begin));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(static_cast<std::byte*>(data) + begin, bytes, MPI_BYTE, lane.first, lane.second, MPI_COMM_WORLD,
              &request);
    impl_->add(request, pending);
  }
}

void Port::end_receive(const Lane& lane, const Header& header) {
  LaneState& state = lanes_[lane];
  const Receive ended = std::move(state.waiting.front());
  state.waiting.pop_front();
  if (!state.waiting.empty()) start_receive(lane);
  ended.done(header);
}

}  // namespace stepcast::exec
