// See tcp_socket.h. Sources: tcp(7), ip(7), getaddrinfo(3), poll(2).
#include "exec/tcp_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"

namespace stepcast::exec {
namespace {

// What a frame takes at a time: a length that is garbage costs no memory that does not arrive.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

struct FrameHeader {
  std::uint32_t kind = 0;
  std::uint32_t magic = 0x57454354;
  std::uint64_t bytes = 0;
};

int milliseconds_until(Deadline end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000000));
}

// Whether the socket is ready for `events` (or broken, which the next call finds) before `end`.
bool wait_for(int fd, short events, std::optional<Deadline> end) {
  while (true) {
    pollfd wanted{fd, events, 0};
    const int ready = ::poll(&wanted, 1, end ? milliseconds_until(*end) : -1);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

void set(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

// Small frames go at once; a host that has died is noticed after some 25 s of silence.
void prepare(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses addresses_of(const std::string& host, int port, std::string& why) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (problem != 0) why = std::string("its name is not known: ") + ::gai_strerror(problem);
  return {found, [](addrinfo* list) {
            if (list != nullptr) ::freeaddrinfo(list);
          }};
}

// Connects within `end`; 0, or errno.
int connect_within(int fd, const addrinfo& address, Deadline end) {
  if (::connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(fd, POLLOUT, end)) return ETIMEDOUT;
  int problem = 0;
  socklen_t size = sizeof problem;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size);
  return problem;
}

bool bind_any(int fd, int family, int port) {
  if (family == AF_INET6) {
    set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_in6 any = {};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(static_cast<std::uint16_t>(port));
    return ::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
  }
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

int Socket::release() { return std::exchange(fd_, -1); }

Socket listen_at(int port) {
  int problem = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) continue;  // a machine without IPv6
    set(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind_any(socket.fd(), family, port) && ::listen(socket.fd(), SOMAXCONN) == 0) return socket;
    problem = errno;
    if (problem == EADDRINUSE) break;
  }
  throw Error(ErrorKind::kEnvironment,
              "rank 0 cannot listen at port " + std::to_string(port) + ": " + std::strerror(problem), {},
              {"STEPCAST_PORT=N for all ranks, with a port that is free on the host of rank 0"});
}

int port_of(const Socket& listener) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (::getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  // Of both families the port lies at the same place (ip(7), ipv6(7)).
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::optional<Socket> accept_from(const Socket& listener) {
  const int fd = ::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return std::nullopt;
  prepare(fd);
  return Socket(fd);
}

std::optional<Socket> connect_to(const std::string& host, int port, Deadline end, std::string& why) {
  const Addresses addresses = addresses_of(host, port, why);
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    Socket socket(::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) continue;
    const int problem = connect_within(socket.fd(), *a, end);
    if (problem == 0) {
      prepare(socket.fd());
      return socket;
    }
    why = std::strerror(problem);
  }
  return std::nullopt;
}

bool send_bytes(const Socket& socket, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::send(socket.fd(), at, bytes, MSG_NOSIGNAL);
    if (count > 0) {
      at += count;
      bytes -= static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      if (!wait_for(socket.fd(), POLLOUT, {})) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool send_frame(const Socket& socket, FrameKind kind, const std::string& bytes) {
  const FrameHeader header{.kind = static_cast<std::uint32_t>(kind), .bytes = bytes.size()};
  return bytes.size() <= kMostFrameBytes && send_bytes(socket, &header, sizeof header) &&
         send_bytes(socket, bytes.data(), bytes.size());
}

bool receive_bytes(const Socket& socket, void* data, std::size_t bytes, std::optional<Deadline> end) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::recv(socket.fd(), at, bytes, 0);
    if (count > 0) {
      at += count;
      bytes -= static_cast<std::size_t>(count);
      continue;
    }
    const bool ended = count == 0 || (errno != EAGAIN && errno != EINTR);
    if (ended || !wait_for(socket.fd(), POLLIN, end)) return false;
  }
  return true;
}

std::optional<Frame> receive_frame(const Socket& socket, std::optional<Deadline> end) {
  FrameHeader header;
  const std::uint32_t magic = header.magic;
  if (!receive_bytes(socket, &header, sizeof header, end)) return std::nullopt;
  if (header.magic != magic || header.bytes > kMostFrameBytes) return std::nullopt;
  Frame frame{static_cast<FrameKind>(header.kind), {}};
  for (std::uint64_t left = header.bytes; left > 0;) {
    const std::size_t piece = std::min<std::uint64_t>(left, kPieceBytes);
    const std::size_t begin = frame.bytes.size();
    frame.bytes.resize(begin + piece);
    if (!receive_bytes(socket, frame.bytes.data() + begin, piece, end)) return std::nullopt;
    left -= piece;
  }
  return frame;
}

}  // namespace stepcast::exec
