// See mpi_communicator.h. Everything after an arrival happens on the port's thread.
#include "exec/mpi/mpi_communicator.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <latch>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "program/hasher.h"

namespace stepcast::exec {
namespace {

using program::OpKind;
using program::RankId;

// Of what all members must agree on: every field of the spec.
std::uint64_t form_of(const CollectiveSpec& spec) {
  program::Hasher h;
  h.number(spec.kind);
  h.number(spec.dtype);
  h.number(spec.reduce);
  for (const std::int64_t n : {spec.root, spec.elements, spec.columns, spec.row_columns, spec.first_column})
    h.number(n);
  for (const std::int64_t count : spec.counts) h.number(count);
  return h.value();
}

// Where each member's part of the whole begins, in elements, and one past the end.
std::vector<std::int64_t> offsets_of(const CollectiveSpec& spec, std::size_t members) {
  std::vector<std::int64_t> offsets(members + 1, 0);
  const auto count = static_cast<std::int64_t>(members);
  for (std::size_t m = 0; m < members; ++m) {
    offsets[m + 1] =
        spec.counts.empty() ? spec.elements * static_cast<std::int64_t>(m + 1) / count : offsets[m] + spec.counts[m];
  }
  return offsets;
}

// An all-reduce of so few bytes, of all members together, is one exchange of whole inputs, which every member adds up:
// it then takes one message's time in place of two.
constexpr std::int64_t kSumEverywhereBytes = std::int64_t{1} << 17;

bool reduces(OpKind kind) { return kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter; }

}  // namespace

// One collective of this member, from its arrival to the report to its Completion.
class MpiCollective : public std::enable_shared_from_this<MpiCollective> {
 public:
  MpiCollective(Port& port, int tag, const std::vector<RankId>& members, std::size_t own, CollectiveArrival arrival,
                const CommContext& context)
      : port_(port),
        tag_(tag),
        members_(members),
        own_(own),
        arrival_(std::move(arrival)),
        context_(context),
        form_(form_of(arrival_.spec)),
        offsets_(offsets_of(arrival_.spec, members.size())),
        size_(program::size_of(arrival_.spec.dtype)),
        heard_(members.size()) {
    latest_ = arrival_.begin;
  }

  // Copies what stays here, by the thread of the arrival.
  void prepare() {
    const OpKind kind = arrival_.spec.kind;
    if (reduces(kind)) {
      scratch_.resize(members_.size() * static_cast<std::size_t>(sums_all() ? whole_bytes() : bytes_of(own_)));
    } else if (kind == OpKind::kAllGather) {
      std::byte* own = out() + begin_byte(own_);
      if (own != in() && bytes_of(own_) > 0) std::memcpy(own, in(), part_bytes(own_));
    } else if (kind == OpKind::kAllToAll) {
      const std::int64_t part = exchanged_bytes();
      const auto own = static_cast<std::int64_t>(own_) * part;
      if (part > 0) std::memcpy(out() + own, in() + own, static_cast<std::size_t>(part));
    } else {
      CHECK(kind == OpKind::kBroadcast, program::to_string(kind));
    }
  }

  // By the port's thread.
  void start() {
    const OpKind kind = arrival_.spec.kind;
    if (reduces(kind)) return sums_all() ? exchange_inputs() : scatter();
    if (kind == OpKind::kAllGather) return gather();
    if (kind == OpKind::kBroadcast) return broadcast();
    exchange();
  }

  // The only member has no port to wait for.
  void finish_alone() {
    const std::vector<MemberBuffers> own = {arrival_.buffers};
    perform_collective(arrival_.spec, own);
    finish();
  }

  std::vector<RankId> missing() const {
    std::vector<RankId> ranks;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      if (m != own_ && !heard_[m].load(std::memory_order_relaxed)) ranks.push_back(members_[m]);
    }
    return ranks;
  }

 private:
  std::byte* in() const { return static_cast<std::byte*>(const_cast<void*>(arrival_.buffers.in)); }
  std::byte* out() const { return static_cast<std::byte*>(arrival_.buffers.out); }
  std::int64_t begin_byte(std::size_t part) const { return offsets_[part] * size_; }
  std::int64_t bytes_of(std::size_t part) const { return (offsets_[part + 1] - offsets_[part]) * size_; }
  std::size_t part_bytes(std::size_t part) const { return static_cast<std::size_t>(bytes_of(part)); }
  std::int64_t whole_bytes() const { return arrival_.spec.elements * size_; }
  std::int64_t exchanged_bytes() const {
    return arrival_.spec.elements / static_cast<std::int64_t>(members_.size()) * size_;
  }
  bool sums_all() const {
    return arrival_.spec.kind == OpKind::kAllReduce &&
           whole_bytes() * static_cast<std::int64_t>(members_.size()) <= kSumEverywhereBytes;
  }

  void send(std::size_t to, const std::byte* data, std::int64_t bytes) {
    ++under_way_;
    const Header header{form_, arrival_.op, bytes, arrival_.begin.ps};
    port_.send(static_cast<int>(members_[to].value), tag_, header, data,
               [self = shared_from_this()] { self->one_less(); });
  }
  void receive(std::size_t from, std::byte* data, std::int64_t bytes) {
    ++under_way_;
    port_.receive(static_cast<int>(members_[from].value), tag_,
                  {.accept = [self = shared_from_this(), from, data,
                              bytes](const Header& h) { return self->accept(from, h, data, bytes); },
                   .done = [self = shared_from_this()](const Header&) { self->one_less(); }});
  }
  void* accept(std::size_t from, const Header& header, std::byte* data, std::int64_t bytes) {
    if (header.form != form_ || header.bytes != bytes) {
      context_.job.fail("collectives disagree: " + context_.op_name(arrival_.rank, arrival_.op) + " has " +
                        spec_text(arrival_.spec) + ", " + context_.op_name(members_[from], header.op) +
                        " has another form");
      return nullptr;
    }
    heard_[from].store(true, std::memory_order_relaxed);
    latest_ = std::max(latest_, SimTime(header.begin_ps));
    return data;
  }

  // Starts a phase: what it posts is under way until all of it has ended; then `next` runs.
  template <class Post>
  void phase(const Post& posts, std::function<void()> next) {
    next_ = std::move(next);
    under_way_ = 1;  // the phase itself, so that it does not end while it is posted
    for (std::size_t m = 0; m < members_.size(); ++m) {
      if (m != own_) posts(m);
    }
    one_less();
  }
  void one_less() {
    if (--under_way_ > 0) return;
    const std::function<void()> next = std::move(next_);
    next();
  }

  // Every member gets all inputs and adds them up in member order.
  void exchange_inputs() {
    const std::int64_t bytes = whole_bytes();
    phase(
        [this, bytes](std::size_t m) {
          send(m, in(), bytes);
          receive(m, scratch_.data() + m * static_cast<std::size_t>(bytes), bytes);
        },
        [self = shared_from_this()] {
          if (self->add_up(0, self->arrival_.spec.elements)) self->finish();
        });
  }

  // Every member gets its part of all inputs and adds them up in member order; all-reduced parts are then gathered.
  void scatter() {
    phase(
        [this](std::size_t m) {
          send(m, in() + begin_byte(m), bytes_of(m));
          receive(m, scratch_.data() + m * part_bytes(own_), bytes_of(own_));
        },
        [self = shared_from_this()] { self->end_scatter(); });
  }
  void end_scatter() {
    if (!add_up(offsets_[own_], offsets_[own_ + 1])) return;
    if (arrival_.spec.kind == OpKind::kAllReduce) return gather();
    finish();
  }

  // Elements [begin, end) of all inputs, those of others being in the scratch. Whether it could.
  bool add_up(std::int64_t begin, std::int64_t end) {
    const bool whole = arrival_.spec.kind == OpKind::kAllReduce;
    // All of what is summed here is the first member's part.
    CollectiveSpec spec = arrival_.spec;
    spec.kind = OpKind::kReduceScatter;
    spec.elements = end - begin;
    spec.counts.assign(members_.size(), 0);
    spec.counts[0] = spec.elements;
    std::byte* sum = whole ? out() + begin * size_ : out();
    std::vector<MemberBuffers> inputs;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const std::byte* other = scratch_.data() + static_cast<std::int64_t>(m) * spec.elements * size_;
      inputs.push_back({m == own_ ? in() + begin * size_ : other, sum});
    }
    try {
      perform_collective(spec, inputs);
      return true;
    } catch (const Error& e) {
      context_.job.fail(context_.op_name(arrival_.rank, arrival_.op) + ": " + e.what());
      return false;
    }
  }

  // Every member sends its part, of which it holds a copy in the whole, to all others.
  void gather() {
    phase(
        [this](std::size_t m) {
          send(m, out() + begin_byte(own_), bytes_of(own_));
          receive(m, out() + begin_byte(m), bytes_of(m));
        },
        [self = shared_from_this()] { self->finish(); });
  }

  void broadcast() {
    const auto root = static_cast<std::size_t>(arrival_.spec.root);
    const std::int64_t bytes = arrival_.spec.elements * size_;
    phase(
        [this, root, bytes](std::size_t m) {
          if (own_ == root) send(m, in(), bytes);
          if (m == root) receive(m, out(), bytes);
        },
        [self = shared_from_this()] { self->finish(); });
  }

  void exchange() {
    const std::int64_t part = exchanged_bytes();
    phase(
        [this, part](std::size_t m) {
          send(m, in() + static_cast<std::int64_t>(m) * part, part);
          receive(m, out() + static_cast<std::int64_t>(m) * part, part);
        },
        [self = shared_from_this()] { self->finish(); });
  }

  void finish() {
    const CollectiveSpec& spec = arrival_.spec;
    const Bytes whole(whole_bytes());
    const SimTime paced =
        latest_ + paced_time(context_.link, spec.kind, whole, static_cast<std::int64_t>(members_.size()));
    arrival_.completion->part_done({latest_, std::max(context_.job.now(), paced)});
  }

  Port& port_;
  const int tag_;
  const std::vector<RankId>& members_;
  const std::size_t own_;
  const CollectiveArrival arrival_;
  const CommContext& context_;
  const std::uint64_t form_;
  const std::vector<std::int64_t> offsets_;
  const std::int64_t size_;
  std::vector<std::atomic<bool>> heard_;
  SimTime latest_;
  std::vector<std::byte> scratch_;
  int under_way_ = 0;  // by the port's thread, as all that follows an arrival
  std::function<void()> next_;
};

namespace {

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(Port& port, int tag, std::vector<RankId> members)
      : port_(port), tag_(tag), members_(std::move(members)) {}

  void arrive(std::size_t member, CollectiveArrival arrival, const CommContext& context) override {
    check_sizes(arrival, member);
    const auto run = std::make_shared<MpiCollective>(port_, tag_, members_, member, std::move(arrival), context);
    {
      const std::lock_guard lock(mutex_);
      current_ = run;
    }
    if (members_.size() == 1) return run->finish_alone();
    run->prepare();
    port_.perform([run] { run->start(); });
  }
  std::vector<RankId> missing() const override {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<MpiCollective> run = current_.lock();
    return run ? run->missing() : std::vector<RankId>();
  }

 private:
  Port& port_;
  const int tag_;
  const std::vector<RankId> members_;
  mutable std::mutex mutex_;
  std::weak_ptr<MpiCollective> current_;
};

// Two parts have to come together at a sender: its bytes are gone, and the receiver has said that it has them.
class MpiLink : public MessageLink {
 public:
  MpiLink(Port& port, int tag, RankId from, RankId to) : port_(port), tag_(tag), from_(from), to_(to) {}

  void send(MessageArrival arrival, const CommContext& context) override {
    const auto own = std::make_shared<MessageArrival>(std::move(arrival));
    port_.perform([this, own, &context] {
      const Header header{0, own->op, own->type.bytes(), own->begin.ps};
      port_.send(peer(to_), tag_, header, own->data, [] {});
      port_.receive(peer(to_), tag_ + 1,
                    {.accept = [](const Header&) -> void* { return nullptr; },
                     .done = [own, &context](const Header& h) { finish(*own, h, context); }});
    });
  }
  void receive(MessageArrival arrival, const CommContext& context) override {
    const auto own = std::make_shared<MessageArrival>(std::move(arrival));
    port_.receive(peer(from_), tag_,
                  {.accept = [this, own, &context](const Header& h) { return accept(*own, h, context); },
                   .done =
                       [this, own, &context](const Header& h) {
                         port_.send(peer(from_), tag_ + 1, {0, own->op, 0, own->begin.ps}, nullptr, [] {});
                         finish(*own, h, context);
                       }});
  }

 private:
  static int peer(RankId rank) { return static_cast<int>(rank.value); }
  void* accept(const MessageArrival& own, const Header& h, const CommContext& context) const {
    if (h.bytes == own.type.bytes()) return own.data;
    context.job.fail("messages disagree: " + context.op_name(from_, h.op) + " sends " + std::to_string(h.bytes) +
                     " bytes, " + context.op_name(own.rank, own.op) + " receives " + std::to_string(own.type.bytes()) +
                     " bytes");
    return nullptr;
  }
  static void finish(const MessageArrival& own, const Header& partner, const CommContext& context) {
    Transfer moved;
    moved.transfer = std::max(own.begin, SimTime(partner.begin_ps));
    const Duration paced = paced_time(context.link, OpKind::kSend, Bytes(own.type.bytes()), 2);
    moved.end = std::max(context.job.now(), moved.transfer + paced);
    own.completion->part_done(moved);
  }

  Port& port_;
  const int tag_;
  const RankId from_;
  const RankId to_;
};

// A lane's use is in its tag.
enum class Use : std::uint8_t { kCollective, kMessage, kReceipt, kCount };

class MpiCommunicators : public Communicators {
 public:
  MpiCommunicators(const program::Program& p, Port& port) : p_(p), port_(port) {
    CHECK(static_cast<int>(p.ranks.size()) <= port.size(), p.ranks.size(), port.size());
    const auto tags =
        static_cast<std::int64_t>(p.groups.size()) * program::kChannelCount * static_cast<std::int64_t>(Use::kCount);
    if (tags + kFirstTag > port.tag_bound()) {
      throw Error(ErrorKind::kEnvironment, "this MPI has " + std::to_string(port.tag_bound()) +
                                               " tags, the plan needs " + std::to_string(tags + kFirstTag));
    }
  }

  Communicator& collective(program::GroupId group, program::Channel channel) override {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Communicator>& slot = collectives_[{group, channel}];
    if (!slot) {
      slot = std::make_unique<MpiCommunicator>(port_, tag(group, channel, Use::kCollective), p_.groups[group].members);
    }
    return *slot;
  }
  MessageLink& link(program::GroupId group, RankId from, RankId to, program::Channel channel) override {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<MessageLink>& slot = links_[{group, from, to, channel}];
    if (!slot) slot = std::make_unique<MpiLink>(port_, tag(group, channel, Use::kMessage), from, to);
    return *slot;
  }
  void meet() override {
    // All tell rank 0, and rank 0 tells all.
    const bool first = port_.rank() == 0;
    const auto ranks = static_cast<int>(p_.ranks.size());
    const auto heard = std::make_shared<std::latch>(first ? ranks - 1 : 1);
    port_.perform([this, first, ranks, heard] {
      if (!first) port_.send(0, kMeetTag, {}, nullptr, [] {});
      for (int peer = first ? 1 : 0; peer < (first ? ranks : 1); ++peer) {
        port_.receive(peer, kMeetTag,
                      {.accept = [](const Header&) -> void* { return nullptr; },
                       .done = [heard](const Header&) { heard->count_down(); }});
      }
    });
    heard->wait();
    if (!first) return;
    port_.perform([this, ranks] {
      for (int peer = 1; peer < ranks; ++peer) port_.send(peer, kMeetTag, {}, nullptr, [] {});
    });
  }

 private:
  static constexpr int kMeetTag = 0;
  static constexpr int kFirstTag = 16;  // the ones below are for what concerns all ranks

  static int tag(program::GroupId group, program::Channel channel, Use use) {
    const std::uint32_t lane = group.value * program::kChannelCount + static_cast<std::uint32_t>(channel);
    return kFirstTag +
           static_cast<int>(lane * static_cast<std::uint32_t>(Use::kCount) + static_cast<std::uint32_t>(use));
  }

  const program::Program& p_;
  Port& port_;
  std::mutex mutex_;
  std::map<std::tuple<program::GroupId, program::Channel>, std::unique_ptr<Communicator>> collectives_;
  std::map<std::tuple<program::GroupId, RankId, RankId, program::Channel>, std::unique_ptr<MessageLink>> links_;
};

}  // namespace

std::shared_ptr<Communicators> mpi_communicators(const program::Program& p, Port& port) {
  return std::make_shared<MpiCommunicators>(p, port);
}

}  // namespace stepcast::exec
