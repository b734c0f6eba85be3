// See tcp_meeting.h.
#include "exec/tcp_meeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace stepcast::exec {
namespace {

using Clock = std::chrono::steady_clock;

// What a rank says first. A machine of the other byte order says another magic.
struct Hello {
  std::array<char, 8> magic = {'s', 't', 'e', 'p', 'c', 'a', 's', 't'};
  std::uint32_t version = 1;
  std::uint32_t size = 0;
  std::uint32_t rank = 0;
  std::uint32_t check = 0x01020304;
};

// Who connects and says nothing takes a place until the end.
constexpr std::size_t kMostGuests = 4096;

// A connection whose hello is not complete.
struct Guest {
  Socket socket;
  std::array<char, sizeof(Hello)> bytes = {};
  std::size_t here = 0;
};

std::string place_text(const LaunchedRank& self) { return self.host + ":" + std::to_string(self.port); }

std::string seconds_text(std::chrono::milliseconds patience) {
  const auto tenths = (patience.count() + 50) / 100;
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + " s";
}

std::vector<int> missing_ranks(const std::vector<Socket>& peers) {
  std::vector<int> missing;
  for (std::size_t rank = 1; rank < peers.size(); ++rank) {
    if (!peers[rank].is_open()) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

// Takes what has come of the hello; false where there will be no more of it.
bool read_some(Guest& guest) {
  const ssize_t count = ::recv(guest.socket.fd(), guest.bytes.data() + guest.here, guest.bytes.size() - guest.here, 0);
  if (count > 0) guest.here += static_cast<std::size_t>(count);
  return count > 0;
}

// Why a rank that has introduced itself may not take part; empty where it may.
std::string refusal(const Hello& hello, const std::vector<Socket>& peers) {
  if (hello.version != Hello{}.version) return "rank 0 is of another version of stepcast";
  if (hello.size != peers.size()) {
    return "rank 0 has a job of " + std::to_string(peers.size()) + " ranks, this is one of " +
           std::to_string(hello.size);
  }
  if (hello.rank == 0 || hello.rank >= peers.size())
    return "there is no place for a rank " + std::to_string(hello.rank);
  if (peers[hello.rank].is_open()) return "another process is rank " + std::to_string(hello.rank) + " already";
  return "";
}

// Gives a guest whose hello is complete its place, or sends it away.
void seat(Guest& guest, std::vector<Socket>& peers) {
  Hello hello;
  const Hello ours;
  std::memcpy(&hello, guest.bytes.data(), sizeof hello);
  if (hello.magic != ours.magic || hello.check != ours.check) return;
  const std::string why = refusal(hello, peers);
  if (why.empty()) {
    peers[hello.rank] = std::move(guest.socket);
  } else {
    send_frame(guest.socket, FrameKind::kRefused, why);
  }
}

// A rank that has gone again has its place free, for the one that is started instead.
void forget_the_gone(std::vector<Socket>& peers) {
  for (Socket& peer : peers) {
    char byte = 0;
    if (peer.is_open() && ::recv(peer.fd(), &byte, 1, MSG_PEEK) == 0) peer.close();
  }
}

// Waits for something to read at most until `end`, takes who comes in and listens to all guests.
void receive_guests(const Socket& listener, std::vector<Guest>& guests, std::vector<Socket>& peers, Deadline end) {
  constexpr std::chrono::milliseconds kLook{200};  // at who has gone
  std::vector<pollfd> wanted = {{listener.fd(), POLLIN, 0}};
  for (const Guest& guest : guests) wanted.push_back({guest.socket.fd(), POLLIN, 0});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  const auto wait = std::clamp<std::chrono::milliseconds>(left, std::chrono::milliseconds(0), kLook);
  ::poll(wanted.data(), wanted.size(), static_cast<int>(wait.count()));
  for (std::size_t i = guests.size(); i-- > 0;) {
    if (wanted[i + 1].revents == 0) continue;
    const bool goes_on = read_some(guests[i]);
    const bool complete = guests[i].here == sizeof(Hello);
    if (complete) seat(guests[i], peers);
    if (complete || !goes_on) guests.erase(guests.begin() + static_cast<std::ptrdiff_t>(i));
  }
  while (guests.size() < kMostGuests) {
    std::optional<Socket> next = accept_from(listener);
    if (!next) break;
    guests.push_back({std::move(*next), {}, 0});
  }
  forget_the_gone(peers);
}

[[noreturn]] void refuse_meeting(const Meeting& meeting, std::vector<Socket>& peers) {
  const std::vector<int> missing = missing_ranks(peers);
  const std::string text = (missing.size() == 1 ? "rank " : "ranks ") + ranges_text(missing) + " of " +
                           std::to_string(peers.size()) + " did not come to " + place_text(meeting.self) + " within " +
                           seconds_text(meeting.patience);
  for (const Socket& peer : peers) {
    if (peer.is_open()) send_frame(peer, FrameKind::kRefused, text);
  }
  throw Error(ErrorKind::kEnvironment, text, {},
              {"that all processes have been started, and reach that address: STEPCAST_HOST, STEPCAST_PORT"});
}

// Retries until rank 0 listens, which may start later than this one.
Socket connect_patiently(const LaunchedRank& self, std::chrono::milliseconds patience, Deadline end) {
  constexpr std::chrono::milliseconds kPause{100};
  std::string why = "nothing has answered";
  while (Clock::now() < end) {
    if (std::optional<Socket> socket = connect_to(self.host, self.port, end, why)) return std::move(*socket);
    std::this_thread::sleep_for(kPause);
  }
  throw Error(ErrorKind::kEnvironment,
              "rank " + std::to_string(self.rank) + " does not reach rank 0 at " + place_text(self) + " within " +
                  seconds_text(patience) + ": " + why,
              {}, {"that rank 0 has been started, and that this address is its: STEPCAST_HOST, STEPCAST_PORT"});
}

}  // namespace

std::string ranges_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (last > i) text += " to " + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

std::vector<Socket> meet_as_first(const Meeting& meeting, const Socket& listener) {
  std::vector<Socket> peers(static_cast<std::size_t>(meeting.self.size));
  std::vector<Guest> guests;
  const Deadline end = Clock::now() + meeting.patience;
  while (!missing_ranks(peers).empty()) {
    if (Clock::now() >= end) refuse_meeting(meeting, peers);
    receive_guests(listener, guests, peers, end);
  }
  for (const Socket& peer : peers) {
    if (peer.is_open()) send_frame(peer, FrameKind::kWelcome, "");
  }
  return peers;
}

Socket meet_as_other(const Meeting& meeting) {
  const LaunchedRank& self = meeting.self;
  constexpr std::chrono::seconds kGrace{5};  // in which rank 0 says who is missing
  const Deadline end = Clock::now() + meeting.patience;
  Socket socket = connect_patiently(self, meeting.patience, end);
  const Hello hello{.size = static_cast<std::uint32_t>(self.size), .rank = static_cast<std::uint32_t>(self.rank)};
  const bool sent = send_bytes(socket, &hello, sizeof hello);
  const std::optional<Frame> answer = sent ? receive_frame(socket, end + kGrace) : std::nullopt;
  const std::string name = "rank " + std::to_string(self.rank) + ": ";
  if (!answer) {
    throw Error(ErrorKind::kEnvironment,
                name + "what listens at " + place_text(self) + " has not answered as rank 0 of stepcast does", {},
                {"STEPCAST_PORT=N for all ranks, with a port that is free on the host of rank 0"});
  }
  if (answer->kind == FrameKind::kWelcome) return socket;
  throw Error(ErrorKind::kEnvironment, name + "refused at " + place_text(self) + ": " + answer->bytes.substr(0, 1000),
              {}, {"one launcher, which starts every rank once"});
}

}  // namespace stepcast::exec
