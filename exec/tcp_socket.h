// Plain sockets of TCP, IPv4 and IPv6: who listens, who connects, and frames between two.
//
// A frame is a header (kind, number of bytes) and the bytes. Both ends run the same build, so numbers travel as they
// lie in memory; the hello of tcp_meeting.h finds out where they do not.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace stepcast::exec {

using Deadline = std::chrono::steady_clock::time_point;

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();

 private:
  int release();
  int fd_ = -1;
};

// Listens at `port` of every address of this machine. Throws Error (kEnvironment) where the port is taken.
Socket listen_at(int port);

// The port that a listener has: the one that the system has chosen where it was asked for port 0.
int port_of(const Socket& listener);

// The next connection; nothing where none waits.
std::optional<Socket> accept_from(const Socket& listener);

// One attempt, as long as `end` allows. Nothing where nobody answers; `why` then says so.
std::optional<Socket> connect_to(const std::string& host, int port, Deadline end, std::string& why);

enum class FrameKind : std::uint32_t { kGather = 1, kBroadcast, kEnd, kWelcome, kRefused };

struct Frame {
  FrameKind kind = FrameKind::kGather;
  std::string bytes;
};

// The longest frame in bytes.
inline constexpr std::uint64_t kMostFrameBytes = std::uint64_t{1} << 33;

// Whether all of it went out; not where the other end is gone.
bool send_bytes(const Socket& socket, const void* data, std::size_t bytes);
bool send_frame(const Socket& socket, FrameKind kind, const std::string& bytes);

// Waits for exactly `bytes` bytes. False where the other end is gone, or at `end` where there is one.
bool receive_bytes(const Socket& socket, void* data, std::size_t bytes, std::optional<Deadline> end = {});
// Nothing where the other end is gone, `end` has come, or what came is no frame.
std::optional<Frame> receive_frame(const Socket& socket, std::optional<Deadline> end = {});

}  // namespace stepcast::exec
