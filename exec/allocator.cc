// See allocator.h.
#include "exec/allocator.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"

namespace stepcast::exec {
namespace {

// Every byte set: a NaN in f32, bf16 and f64, and -1 as an index.
constexpr int kPoison = 0xff;

void fill(std::byte* data, int value, std::int64_t bytes) { std::memset(data, value, static_cast<std::size_t>(bytes)); }

}  // namespace

Allocator::Allocator(const program::Program& p, const program::RankProgram& r, const program::Resolution& res,
                     const LoadedProgram& loaded, bool poison)
    : program_(p), rank_program_(r), resolution_(res), loaded_(loaded), poison_(poison), buffers_(r.buffers.size()) {
  CHECK(loaded.buffers.size() == r.buffers.size(), loaded.buffers.size(), r.buffers.size());
  const StreamProgress none;
  for (std::size_t i = 0; i < r.buffers.size(); ++i) {
    const program::Buffer& buffer = r.buffers[program::BufferId(i)];
    if (!buffer.persistent) continue;
    buffers_[i].physical = pool_.take(buffer.bytes, std::nullopt, none).block;
    fill(pool_.data(*buffers_[i].physical), 0, buffer.bytes);
    if (buffer.space == program::Space::kDevice) {
      persistent_bytes_[static_cast<std::size_t>(buffer.memory_class)] += buffer.bytes;
    }
  }
  begin_step();
}

void Allocator::begin_step() {
  pool_.settle();
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

OpMemory Allocator::issue(std::uint32_t op, const StreamProgress& progress) {
  const std::uint32_t call = resolution_.call_of[op];
  if (call_ != call) begin_call(call);
  const program::Segment& segment = program_.segments[rank_program_.calls[call].segment];
  const program::Op& what = segment.ops[op - resolution_.first_op[call]];
  OpMemory memory;
  memory.operands.reserve(what.operands.size());
  for (const program::Operand& operand : what.operands) {
    memory.operands.push_back(access(place_of(call, operand), segment.type_of(operand), memory, progress));
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
  return pool_.data(*buffers_[buffer.value].physical);
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
    return place;
  }
  const program::View& view = rank_program_.views[c.args[operand.index]];
  const program::Buffer& buffer = rank_program_.buffers[view.buffer];
  place.block = &buffers_[view.buffer.value];
  place.use = &loaded_.buffers[view.buffer.value];
  place.block_bytes = buffer.bytes;
  place.byte_offset = view.byte_offset;
  place.persistent = buffer.persistent;
  if (!buffer.persistent && buffer.space == program::Space::kDevice) place.counted = buffer.memory_class;
  return place;
}

kernels::Tensor Allocator::access(const Place& place, const program::TensorType& type, OpMemory& memory,
                                  const StreamProgress& progress) {
  CHECK(place.byte_offset + type.bytes() <= place.block_bytes, place.byte_offset, type.bytes(), place.block_bytes);
  if (!place.block->physical) {
    const auto home = place.use->anchored ? std::optional(place.use->home) : std::nullopt;
    const BlockPool::Taken taken = pool_.take(place.block_bytes, home, progress);
    place.block->physical = taken.block;
    place.block->last_use = LastUse{};
    if (place.counted) now_[static_cast<std::size_t>(*place.counted)] += place.block_bytes;
    if (poison_ && taken.idle) fill(pool_.data(taken.block), kPoison, place.block_bytes);
    if (poison_ && !taken.idle) memory.poison.push_back({pool_.data(taken.block), place.block_bytes});
  }
  return kernels::Tensor{pool_.data(*place.block->physical) + place.byte_offset, type};
}

void Allocator::release(const Place& place, program::Stream stream, std::uint32_t position) {
  if (place.persistent) return;
  Block& block = *place.block;
  CHECK(block.accesses_left > 0 && block.physical, block.accesses_left);
  block.last_use[static_cast<std::size_t>(stream)] = position + 1;
  if (--block.accesses_left > 0) return;
  pool_.give(*block.physical, block.last_use);
  block.physical.reset();
  if (place.counted) now_[static_cast<std::size_t>(*place.counted)] -= place.block_bytes;
}

void Allocator::note_peak() {
  for (std::size_t c = 0; c < now_.size(); ++c) class_peak_[c] = std::max(class_peak_[c], now_[c]);
  peak_ = std::max(peak_, std::accumulate(now_.begin(), now_.end(), std::int64_t{0}));
}

}  // namespace stepcast::exec
