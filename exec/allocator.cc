// See allocator.h.
#include "exec/allocator.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/quantity.h"

namespace stepcast::exec {
namespace {

// Every byte set: a NaN in f32, bf16 and f64, and -1 as an index.
constexpr int kPoison = 0xff;

}  // namespace

Allocator::Allocator(const program::Program& p, const program::RankProgram& r, const program::Resolution& res,
                     const LoadedProgram& loaded, MemorySpaces memory, bool poison)
    : program_(p),
      rank_program_(r),
      resolution_(res),
      loaded_(loaded),
      poison_(poison),
      device_(memory.device),
      host_(memory.host),
      buffers_(r.buffers.size()) {
  CHECK(loaded.buffers.size() == r.buffers.size(), loaded.buffers.size(), r.buffers.size());
  const StreamProgress none;
  for (std::size_t i = 0; i < r.buffers.size(); ++i) {
    const program::Buffer& buffer = r.buffers[program::BufferId(i)];
    if (!buffer.persistent) continue;
    BlockPool& blocks = pool(buffer.space);
    try {
      buffers_[i].physical = blocks.take(buffer.bytes, std::nullopt, none).block;
    } catch (const OutOfMemory&) {
      throw Error(ErrorKind::kExecution, no_room(buffer.name, buffer.bytes, buffer.space));
    }
    blocks.memory().fill(blocks.data(*buffers_[i].physical), 0, buffer.bytes);
    if (buffer.space != program::Space::kDevice) continue;
    persistent_bytes_[static_cast<std::size_t>(buffer.memory_class)] += buffer.bytes;
    now_ = persistent_bytes_;
  }
  begin_step();
}

void Allocator::begin_step() {
  device_.settle();
  host_.settle();
  call_.reset();
  temps_.clear();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    CHECK(buffers_[i].physical.has_value() == rank_program_.buffers[program::BufferId(i)].persistent, i);
    buffers_[i].accesses_left = loaded_.buffers[i].accesses;
    buffers_[i].last_use = LastUse{};
  }
  now_ = during_issue_ = class_peak_ = persistent_bytes_;
  peak_ = std::accumulate(now_.begin(), now_.end(), std::int64_t{0});
}

OpMemory Allocator::issue(std::uint32_t op, const StreamProgress& progress, const StreamCounts& covered) {
  const std::uint32_t call = resolution_.call_of[op];
  if (call_ != call) begin_call(call);
  const program::Segment& segment = program_.segments[rank_program_.calls[call].segment];
  const program::Op& what = segment.ops[op - resolution_.first_op[call]];
  OpMemory memory;
  memory.operands.reserve(what.operands.size());
  for (const program::Operand& operand : what.operands) {
    memory.operands.push_back(access(place_of(call, operand), segment.type_of(operand), memory, progress, covered));
  }
  during_issue_ = now_;
  note_peak();
  for (const program::Operand& operand : what.operands) {
    release(place_of(call, operand), what.stream, loaded_.position[op]);
  }
  return memory;
}

std::byte* Allocator::persistent_data(program::BufferId buffer) {
  CHECK(rank_program_.buffers[buffer].persistent, buffer.value);
  return pool(rank_program_.buffers[buffer].space).data(*buffers_[buffer.value].physical);
}

void Allocator::begin_call(std::uint32_t call) {
  for (const Block& temp : temps_) CHECK(!temp.physical, "a temp outlives its call", call);
  const std::vector<BlockUse>& uses = loaded_.temps[rank_program_.calls[call].segment.value];
  temps_.assign(uses.size(), Block{});
  for (std::size_t i = 0; i < uses.size(); ++i) temps_[i].accesses_left = uses[i].accesses;
  call_ = call;
}

Allocator::Place Allocator::place_of(std::uint32_t call, const program::Operand& operand) {
  const program::Call& c = rank_program_.calls[call];
  Place place;
  if (operand.temp) {
    const program::Temp& temp = program_.segments[c.segment].temps[operand.index];
    place.block = &temps_[operand.index];
    place.use = &loaded_.temps[c.segment.value][operand.index];
    place.block_bytes = temp.type.bytes();
    place.counted = temp.memory_class;
    place.name = temp.name;
    return place;
  }
  const program::View& view = rank_program_.views[c.args[operand.index]];
  const program::Buffer& buffer = rank_program_.buffers[view.buffer];
  place.block = &buffers_[view.buffer.value];
  place.use = &loaded_.buffers[view.buffer.value];
  place.block_bytes = buffer.bytes;
  place.byte_offset = view.byte_offset;
  place.persistent = buffer.persistent;
  place.space = buffer.space;
  place.name = buffer.name;
  if (!buffer.persistent && buffer.space == program::Space::kDevice) place.counted = buffer.memory_class;
  return place;
}

kernels::Tensor Allocator::access(const Place& place, const program::TensorType& type, OpMemory& memory,
                                  const StreamProgress& progress, const StreamCounts& covered) {
  CHECK(place.byte_offset + type.bytes() <= place.block_bytes, place.byte_offset, type.bytes(), place.block_bytes);
  BlockPool& blocks = pool(place.space);
  if (!place.block->physical) {
    const BlockPool::Taken taken = take(place, progress, covered);
    place.block->physical = taken.block;
    place.block->last_use = LastUse{};
    if (place.counted) now_[static_cast<std::size_t>(*place.counted)] += place.block_bytes;
    if (poison_ && taken.idle) blocks.memory().fill(blocks.data(taken.block), kPoison, place.block_bytes);
    if (poison_ && !taken.idle) memory.poison.push_back({blocks.data(taken.block), place.block_bytes});
  }
  return kernels::Tensor{blocks.data(*place.block->physical) + place.byte_offset, type};
}

BlockPool::Taken Allocator::take(const Place& place, const StreamProgress& progress, const StreamCounts& covered) {
  const auto home = place.use->anchored ? std::optional(place.use->home) : std::nullopt;
  try {
    return pool(place.space).take(place.block_bytes, home, progress, covered);
  } catch (const OutOfMemory&) {
    throw Error(ErrorKind::kExecution, no_room(place.name, place.block_bytes, place.space));
  }
}

// "out of memory: no room for 'x' of 1.0 GiB; allocated: weights 3.0 GiB, activations 2.0 GiB, in blocks of 7.0 GiB;
// the device has 8.0 GiB".
std::string Allocator::no_room(std::string_view name, std::int64_t bytes, program::Space space) {
  std::string text = "out of memory: no room for ";
  if (!name.empty()) text += "'" + std::string(name) + "' of ";
  text += format_bytes(Bytes(bytes)) + (space == program::Space::kHost ? " on the host" : "") + "; allocated: ";
  std::string classes;
  for (std::size_t c = 0; c < now_.size(); ++c) {
    if (now_[c] == 0) continue;
    classes += (classes.empty() ? "" : ", ") + std::string(to_string(static_cast<program::MemoryClass>(c))) + " " +
               format_bytes(Bytes(now_[c]));
  }
  text += (classes.empty() ? "nothing" : classes) + ", in blocks of " + format_bytes(Bytes(physical_bytes()));
  return text + "; " + pool(space).memory().room();
}

void Allocator::release(const Place& place, program::Stream stream, std::uint32_t position) {
  if (place.persistent) return;
  Block& block = *place.block;
  CHECK(block.accesses_left > 0 && block.physical, block.accesses_left);
  block.last_use[static_cast<std::size_t>(stream)] = position + 1;
  if (--block.accesses_left > 0) return;
  pool(place.space).give(*block.physical, block.last_use);
  block.physical.reset();
  if (place.counted) now_[static_cast<std::size_t>(*place.counted)] -= place.block_bytes;
}

void Allocator::note_peak() {
  for (std::size_t c = 0; c < now_.size(); ++c) class_peak_[c] = std::max(class_peak_[c], now_[c]);
  peak_ = std::max(peak_, std::accumulate(now_.begin(), now_.end(), std::int64_t{0}));
}

}  // namespace stepcast::exec
