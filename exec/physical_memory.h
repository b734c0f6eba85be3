// Where the blocks of a rank come from: the memory of the host, or of a device (device/device.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/units.h"

namespace stepcast::exec {

class PhysicalMemory {
 public:
  PhysicalMemory() = default;
  virtual ~PhysicalMemory() = default;
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  // `bytes` > 0 of it, at a multiple of 64; null where there is no room.
  virtual std::byte* allocate(std::int64_t bytes) = 0;
  // What allocate(bytes) has given and no op uses any more.
  virtual void release(std::byte* memory, std::int64_t bytes) = 0;
  // Sets bytes that no op uses; they are set on return.
  virtual void fill(std::byte* memory, int value, std::int64_t bytes) = 0;
  // How much there is, for messages: "the host has 15.6 GiB, 2.1 GiB of them free".
  virtual std::string room() const = 0;
};

class HostMemory : public PhysicalMemory {
 public:
  std::byte* allocate(std::int64_t bytes) override;
  void release(std::byte* memory, std::int64_t bytes) override;
  void fill(std::byte* memory, int value, std::int64_t bytes) override;
  std::string room() const override;
};

// So many bytes of another memory and no more.
class LimitedMemory : public PhysicalMemory {
 public:
  // `memory` must outlive it.
  LimitedMemory(PhysicalMemory& memory, Bytes limit) : memory_(memory), limit_(limit.count) {}

  std::byte* allocate(std::int64_t bytes) override;
  void release(std::byte* memory, std::int64_t bytes) override;
  void fill(std::byte* memory, int value, std::int64_t bytes) override { memory_.fill(memory, value, bytes); }
  std::string room() const override;

 private:
  PhysicalMemory& memory_;
  std::int64_t limit_;
  std::int64_t taken_ = 0;
};

// Thrown where memory has no room for a block; whoever knows the block's name makes it an Error.
struct OutOfMemory {};

}  // namespace stepcast::exec
