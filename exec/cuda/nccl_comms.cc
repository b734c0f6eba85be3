// See nccl_comms.h. Copies travel as bytes: NCCL chooses by bytes, and so every type can be gathered.
#include "exec/cuda/nccl_comms.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "exec/cuda/nccl_try.h"
#include "kernels/cuda/cuda_try.h"

namespace stepcast::exec {
namespace {

using program::DType;

ncclDataType_t summed_type(DType t) {
  switch (t) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kBf16:
      return ncclBfloat16;
    case DType::kF64:
      return ncclFloat64;
    case DType::kF16:
      return ncclFloat16;
    case DType::kI32:
      return ncclInt32;
    default:
      throw Error(ErrorKind::kExecution, "cannot sum elements of type " + std::string(program::to_string(t)));
  }
}

ncclRedOp_t operation(program::Reduce reduce) { return reduce == program::Reduce::kMax ? ncclMax : ncclSum; }

bool all_equal(const std::vector<std::int64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](std::int64_t c) { return c == counts.front(); });
}

std::size_t bytes_of(const CollectiveSpec& spec, std::int64_t elements) {
  return static_cast<std::size_t>(elements * program::size_of(spec.dtype));
}

const std::byte* at(const void* base, std::size_t offset) { return static_cast<const std::byte*>(base) + offset; }
std::byte* at(void* base, std::size_t offset) { return static_cast<std::byte*>(base) + offset; }

// Several calls as one kernel. Where one of them fails, the group is ended all the same.
class NcclGroup {
 public:
  NcclGroup() { NCCL_TRY(ncclGroupStart()); }
  ~NcclGroup() {
    if (open_) ncclGroupEnd();
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end() {
    open_ = false;
    NCCL_TRY(ncclGroupEnd());
  }

 private:
  bool open_ = true;
};

}  // namespace

NcclComms::NcclComms(const CommLayout& layout, program::RankId rank,
                     std::shared_ptr<const std::vector<ncclUniqueId>> ids)
    : layout_(layout), rank_(rank), ids_(std::move(ids)), comms_(layout.members().size(), nullptr) {
  CHECK(ids_->size() == comms_.size(), ids_->size(), comms_.size());
}

NcclComms::~NcclComms() {
  end_communication();
  for (const auto& [stream, blocks] : scratch_) {
    for (const auto& [memory, bytes] : blocks) cudaFree(memory);
  }
}

void NcclComms::connect(cudaStream_t stream) {
  for (std::uint32_t i = 0; i < comms_.size(); ++i) {
    const std::vector<program::RankId>& members = layout_.members()[i];
    if (std::find(members.begin(), members.end(), rank_) == members.end()) continue;
    ncclComm_t made = nullptr;
    NCCL_TRY(ncclCommInitRank(&made, static_cast<int>(members.size()), (*ids_)[i],
                              static_cast<int>(layout_.position(i, rank_))));
    const std::lock_guard lock(mutex_);
    comms_[i] = made;
  }
  std::byte* byte = scratch(1, stream);
  for (const auto& [link, communicator] : layout_.links()) {
    if (link.from != rank_ && link.to != rank_) continue;
    const bool send = link.from == rank_;
    const Message message{.communicator = communicator,
                          .member = layout_.position(communicator, rank_),
                          .peer = layout_.position(communicator, send ? link.to : link.from),
                          .send = send,
                          .data = byte,
                          .bytes = 1};
    messages({&message, 1}, stream);
  }
  CUDA_TRY(cudaStreamSynchronize(stream));
}

ncclComm_t NcclComms::comm(std::uint32_t communicator) const {
  if (aborted_) throw Error(ErrorKind::kExecution, "communication has been ended");
  CHECK(communicator < comms_.size() && comms_[communicator] != nullptr, communicator, rank_.value);
  return comms_[communicator];
}

void NcclComms::collective(const CollectiveCall& call, cudaStream_t stream) {
  const CollectiveSpec& spec = call.spec;
  const auto elements = static_cast<std::size_t>(spec.elements);
  switch (spec.kind) {
    case program::OpKind::kAllReduce:
      NCCL_TRY(ncclAllReduce(call.buffers.in, call.buffers.out, elements, summed_type(spec.dtype),
                             operation(spec.reduce), comm(call.communicator), stream));
      return;
    case program::OpKind::kAllGather:
      return gather(call, stream);
    case program::OpKind::kReduceScatter:
      return spec.columns > 0 ? scatter_columns(call, stream) : scatter(call, call.buffers.out, stream);
    case program::OpKind::kBroadcast:
      NCCL_TRY(ncclBroadcast(call.buffers.in, call.buffers.out, bytes_of(spec, spec.elements), ncclUint8,
                             static_cast<int>(spec.root), comm(call.communicator), stream));
      return;
    case program::OpKind::kAllToAll:
      return exchange_parts(call, stream);
    default:
      CHECK(false, program::to_string(spec.kind));
  }
}

// Uneven parts are a broadcast from each member.
void NcclComms::gather(const CollectiveCall& call, cudaStream_t stream) {
  const CollectiveSpec& spec = call.spec;
  ncclComm_t c = comm(call.communicator);
  if (all_equal(spec.counts)) {
    NCCL_TRY(
        ncclAllGather(call.buffers.in, call.buffers.out, bytes_of(spec, spec.counts.front()), ncclUint8, c, stream));
    return;
  }
  NcclGroup group;
  std::size_t offset = 0;
  for (std::size_t root = 0; root < spec.counts.size(); ++root) {
    const std::size_t bytes = bytes_of(spec, spec.counts[root]);
    std::byte* part = at(call.buffers.out, offset);
    const void* in = root == call.member ? call.buffers.in : part;
    if (bytes > 0) NCCL_TRY(ncclBroadcast(in, part, bytes, ncclUint8, static_cast<int>(root), c, stream));
    offset += bytes;
  }
  group.end();
}

// Uneven parts are a reduction to each member.
void NcclComms::scatter(const CollectiveCall& call, void* out, cudaStream_t stream) {
  const CollectiveSpec& spec = call.spec;
  ncclComm_t c = comm(call.communicator);
  const ncclDataType_t type = summed_type(spec.dtype);
  const ncclRedOp_t reduce = operation(spec.reduce);
  if (all_equal(spec.counts)) {
    NCCL_TRY(ncclReduceScatter(call.buffers.in, out, static_cast<std::size_t>(spec.counts.front()), type, reduce, c,
                               stream));
    return;
  }
  NcclGroup group;
  std::size_t offset = 0;
  for (std::size_t root = 0; root < spec.counts.size(); ++root) {
    const auto count = static_cast<std::size_t>(spec.counts[root]);
    const std::byte* part = at(call.buffers.in, offset);
    // Only the root's result is written.
    if (count > 0) NCCL_TRY(ncclReduce(part, out, count, type, reduce, static_cast<int>(root), c, stream));
    offset += bytes_of(spec, spec.counts[root]);
  }
  group.end();
}

// The own part is the block of `columns` columns of a matrix of `row_columns`, from `first_column` on.
void NcclComms::scatter_columns(const CollectiveCall& call, cudaStream_t stream) {
  const CollectiveSpec& spec = call.spec;
  const std::int64_t own = spec.counts[call.member];
  std::byte* sums = scratch(bytes_of(spec, std::max<std::int64_t>(own, 1)), stream);
  scatter(call, sums, stream);
  const std::size_t width = bytes_of(spec, spec.columns);
  CUDA_TRY(cudaMemcpy2DAsync(at(call.buffers.out, bytes_of(spec, spec.first_column)), bytes_of(spec, spec.row_columns),
                             sums, width, width, static_cast<std::size_t>(own / spec.columns), cudaMemcpyDeviceToDevice,
                             stream));
}

void NcclComms::exchange_parts(const CollectiveCall& call, cudaStream_t stream) {
  const auto members = layout_.members()[call.communicator].size();
  const std::size_t part = bytes_of(call.spec, call.spec.elements / static_cast<std::int64_t>(members));
  ncclComm_t c = comm(call.communicator);
  NcclGroup group;
  for (std::size_t peer = 0; part > 0 && peer < members; ++peer) {
    NCCL_TRY(ncclSend(at(call.buffers.in, peer * part), part, ncclUint8, static_cast<int>(peer), c, stream));
    NCCL_TRY(ncclRecv(at(call.buffers.out, peer * part), part, ncclUint8, static_cast<int>(peer), c, stream));
  }
  group.end();
}

void NcclComms::messages(std::span<const Message> messages, cudaStream_t stream) {
  NcclGroup group;
  for (const Message& m : messages) {
    CHECK(m.communicator == messages.front().communicator, "messages of one op share a communicator");
    ncclComm_t c = comm(m.communicator);
    const auto bytes = static_cast<std::size_t>(m.bytes);
    const int peer = static_cast<int>(m.peer);
    if (m.send) {
      NCCL_TRY(ncclSend(m.data, bytes, ncclUint8, peer, c, stream));
    } else {
      NCCL_TRY(ncclRecv(m.data, bytes, ncclUint8, peer, c, stream));
    }
  }
  group.end();
}

std::byte* NcclComms::scratch(std::size_t bytes, cudaStream_t stream) {
  std::vector<std::pair<std::byte*, std::size_t>>& blocks = scratch_[stream];
  if (!blocks.empty() && blocks.back().second >= bytes) return blocks.back().first;
  // Earlier blocks stay: ops under way may use them, and freeing would wait for the device.
  void* memory = nullptr;
  CUDA_TRY(cudaMalloc(&memory, bytes));
  blocks.emplace_back(static_cast<std::byte*>(memory), bytes);
  return blocks.back().first;
}

void NcclComms::check() {
  const std::lock_guard lock(mutex_);
  if (aborted_) return;
  for (ncclComm_t c : comms_) {
    if (c == nullptr) continue;
    ncclResult_t state = ncclSuccess;
    NCCL_TRY(ncclCommGetAsyncError(c, &state));
    if (state != ncclInProgress) NCCL_TRY(state);
  }
}

void NcclComms::end_communication() {
  const std::lock_guard lock(mutex_);
  if (aborted_.exchange(true)) return;
  for (ncclComm_t c : comms_) {
    if (c != nullptr) ncclCommAbort(c);
  }
}

}  // namespace stepcast::exec
