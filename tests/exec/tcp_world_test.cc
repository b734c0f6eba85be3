// Processes on this machine that meet over TCP: what they tell each other, and what happens where one does not come,
// comes twice, is something else or dies. Rank 0 is the test itself; the others are forked, and say how they ended by
// their exit code and through a pipe.
#include "exec/tcp_world.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/error.h"
#include "program/program.h"

namespace stepcast::exec {
namespace {

using std::chrono::milliseconds;

constexpr int kEndedWell = 0;
constexpr int kWrongAnswer = 90;

// A child process and what it wrote last.
class Child {
 public:
  explicit Child(const std::function<std::string()>& body) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) say_and_end(ends[1], body);
    ::close(ends[1]);
    out_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      end();
    }
    ::close(out_);
  }

  void kill() { ::kill(pid_, SIGKILL); }

  // Waits; the exit code, or 128 + the signal.
  int end() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string text() {
    std::string all;
    char buffer[512];
    for (ssize_t count = 0; (count = ::read(out_, buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(count));
    }
    return all;
  }

 private:
  [[noreturn]] static void say_and_end(int out, const std::function<std::string()>& body) {
    std::string text;
    int code = kEndedWell;
    try {
      text = body();
    } catch (const Error& error) {
      text = error.what();
      code = error.exit_code();
    }
    const ssize_t written = ::write(out, text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? code : kWrongAnswer);
  }

  pid_t pid_ = -1;
  int out_ = -1;
};

Meeting meeting_of(int rank, int size, int port, milliseconds patience = milliseconds(20000)) {
  Meeting meeting;
  meeting.self.launcher = "torchrun";
  meeting.self.rank = rank;
  meeting.self.size = size;
  meeting.self.host = "localhost";
  meeting.self.port = port;
  meeting.patience = patience;
  return meeting;
}

// What the error of `body` says; empty where there is none.
std::string complaint(const std::function<void()>& body, ErrorKind kind) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(TcpWorld, GathersAndBroadcasts) {
  const Socket listener = listen_at(0);
  const int port = port_of(listener);
  const std::string large(3 << 20, 'x');  // more than a socket buffers
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 1; rank < 4; ++rank) {
    children.push_back(std::make_unique<Child>([=] {
      TcpWorld world(meeting_of(rank, 4, port));
      world.gather("rank " + std::to_string(rank));
      const std::string all = world.broadcast("not mine");
      world.gather(rank == 2 ? large : "");
      world.barrier();
      return all;
    }));
  }
  TcpWorld world(meeting_of(0, 4, port), listener);
  EXPECT_EQ(world.gather("rank 0"), (std::vector<std::string>{"rank 0", "rank 1", "rank 2", "rank 3"}));
  EXPECT_EQ(world.broadcast("from 0"), "from 0");
  EXPECT_EQ(world.gather("")[2], large);
  world.barrier();
  for (const auto& child : children) {
    EXPECT_EQ(child->text(), "from 0");
    EXPECT_EQ(child->end(), kEndedWell);
  }
}

TEST(TcpWorld, IsWholeWithOneRank) {
  TcpWorld world(meeting_of(0, 1, 0));
  EXPECT_EQ(world.gather("alone"), std::vector<std::string>{"alone"});
  EXPECT_EQ(world.broadcast("alone"), "alone");
  world.barrier();
  EXPECT_TRUE(says(complaint([&] { world.communicators(program::Program{}); }, ErrorKind::kUnsupported), "NCCL"));
}

// Rank 0 begins to listen half a second after the other has begun to look for it.
TEST(TcpWorld, WaitsForALateRankZero) {
  const int port = port_of(listen_at(0));  // free again
  Child other([=] {
    TcpWorld world(meeting_of(1, 2, port));
    return world.broadcast("");
  });
  std::this_thread::sleep_for(milliseconds(500));
  TcpWorld world(meeting_of(0, 2, port));
  world.broadcast("late");
  EXPECT_EQ(other.text(), "late");
}

TEST(TcpWorld, NamesWhoDidNotCome) {
  const Socket listener = listen_at(0);
  const int port = port_of(listener);
  Child other([=] {
    TcpWorld world(meeting_of(2, 5, port));
    return std::string();
  });
  const std::string said =
      complaint([&] { TcpWorld(meeting_of(0, 5, port, milliseconds(1500)), listener); }, ErrorKind::kEnvironment);
  EXPECT_TRUE(says(said, "ranks 1, 3 to 4 of 5 did not come to localhost:" + std::to_string(port) + " within 1.5 s"))
      << said;
  // Those who came are told the same.
  const std::string heard = other.text();
  EXPECT_TRUE(says(heard, "ranks 1, 3 to 4 of 5 did not come")) << heard;
  EXPECT_EQ(other.end(), static_cast<int>(ErrorKind::kEnvironment));
}

TEST(TcpWorld, SaysThatNobodyListens) {
  const int port = port_of(listen_at(0));
  const std::string said =
      complaint([&] { TcpWorld(meeting_of(1, 2, port, milliseconds(400))); }, ErrorKind::kEnvironment);
  EXPECT_TRUE(says(said, "rank 1 does not reach rank 0 at localhost:" + std::to_string(port) + " within 0.4 s"))
      << said;
  Meeting nowhere = meeting_of(1, 2, port, milliseconds(200));
  nowhere.self.host = "no-such-host.invalid";
  EXPECT_TRUE(says(complaint([&] { TcpWorld{nowhere}; }, ErrorKind::kEnvironment), "its name is not known"));
}

TEST(TcpWorld, SaysThatThePortIsTaken) {
  const Socket listener = listen_at(0);
  const int port = port_of(listener);
  EXPECT_TRUE(says(complaint([&] { TcpWorld(meeting_of(0, 2, port)); }, ErrorKind::kEnvironment),
                   "cannot listen at port " + std::to_string(port)));
}

// Two processes that are rank 1, one of another job, one without a place: each is sent away with the reason, and the
// job goes on.
TEST(TcpWorld, RefusesWhoDoesNotBelong) {
  const Socket listener = listen_at(0);
  const int port = port_of(listener);
  const auto come = [=](int rank, int size) {
    return [=] {
      TcpWorld world(meeting_of(rank, size, port));
      return world.broadcast("");
    };
  };
  Child first(come(1, 3));
  std::this_thread::sleep_for(milliseconds(300));  // so that it is the first
  std::string duplicate_said;
  std::string stranger_said;
  std::string placeless_said;
  std::thread others([&] {
    Child duplicate(come(1, 3));
    Child stranger(come(1, 4));
    duplicate_said = duplicate.text();
    stranger_said = stranger.text();
    Child placeless(come(3, 3));
    placeless_said = placeless.text();
    Child second(come(2, 3));
    EXPECT_EQ(second.text(), "hello");
  });
  TcpWorld world(meeting_of(0, 3, port), listener);
  world.broadcast("hello");
  others.join();
  EXPECT_EQ(first.text(), "hello");
  EXPECT_TRUE(says(duplicate_said, "another process is rank 1 already")) << duplicate_said;
  EXPECT_TRUE(says(stranger_said, "a job of 3 ranks, this is one of 4")) << stranger_said;
  EXPECT_TRUE(says(placeless_said, "there is no place for a rank 3")) << placeless_said;
}

// A port scanner, a browser, a connection that says nothing: none of them keeps the ranks from meeting.
TEST(TcpWorld, PassesOverGarbage) {
  const Socket listener = listen_at(0);
  const int port = port_of(listener);
  const Deadline soon = std::chrono::steady_clock::now() + milliseconds(5000);
  std::string why;
  const std::optional<Socket> silent = connect_to("localhost", port, soon, why);
  const std::optional<Socket> browser = connect_to("localhost", port, soon, why);
  ASSERT_TRUE(silent && browser) << why;
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_TRUE(send_bytes(*browser, request.data(), request.size()));
  Child other([=] {
    TcpWorld world(meeting_of(1, 2, port));
    return world.broadcast("");
  });
  TcpWorld world(meeting_of(0, 2, port), listener);
  world.broadcast("hello");
  EXPECT_EQ(other.text(), "hello");
  char byte = 0;
  EXPECT_FALSE(receive_bytes(*browser, &byte, 1, soon));  // closed
}

// Another service at the port, such as torchrun's own store.
TEST(TcpWorld, KnowsThatAnotherProgramAnswers) {
  const Socket listener = listen_at(0);
  const int port = port_of(listener);
  Child other([=] {
    TcpWorld world(meeting_of(1, 2, port, milliseconds(3000)));
    return std::string();
  });
  std::optional<Socket> guest;
  while (!guest) guest = accept_from(listener);
  const std::string banner = "220 mail.example ESMTP ready, and more of it than a header has";
  send_bytes(*guest, banner.data(), banner.size());
  const std::string said = other.text();
  EXPECT_TRUE(says(said, "has not answered as rank 0 of stepcast does")) << said;
}

// Rank 2 is killed while rank 0 waits for it and for rank 1, which is asleep.
TEST(TcpWorld, NoticesADeadPeer) {
  const Socket listener = listen_at(0);
  const int port = port_of(listener);
  const auto sleep = [=](int rank) {
    return [=] {
      TcpWorld world(meeting_of(rank, 3, port));
      std::this_thread::sleep_for(std::chrono::seconds(60));
      return std::string();
    };
  };
  Child asleep(sleep(1));
  Child victim(sleep(2));
  TcpWorld world(meeting_of(0, 3, port), listener);
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(200));
    victim.kill();
  });
  EXPECT_TRUE(says(complaint([&] { world.gather(""); }, ErrorKind::kExecution), "rank 2 has ended"));
  killer.join();
}

TEST(TcpWorld, EndsAll) {
  const Socket listener = listen_at(0);
  const int port = port_of(listener);
  Child ender([=] {
    TcpWorld world(meeting_of(1, 3, port));
    world.end_all(6);
    return std::string("went on");
  });
  Child waiter([=] {
    TcpWorld world(meeting_of(2, 3, port));
    world.gather("");
    world.broadcast("");
    return std::string("went on");
  });
  {
    TcpWorld world(meeting_of(0, 3, port), listener);
    EXPECT_TRUE(says(complaint([&] { world.gather(""); }, ErrorKind::kExecution), "rank 1 has ended the job"));
  }
  EXPECT_EQ(ender.end(), 6);
  EXPECT_TRUE(says(waiter.text(), "rank 0 has ended"));
  EXPECT_EQ(waiter.end(), static_cast<int>(ErrorKind::kExecution));
}

TEST(TcpWorld, WritesRanges) {
  EXPECT_EQ(ranges_text({}), "");
  EXPECT_EQ(ranges_text({3}), "3");
  EXPECT_EQ(ranges_text({1, 2, 3, 7, 9, 10}), "1 to 3, 7, 9 to 10");
}

// A length that is garbage is no message, and costs no memory.
TEST(TcpSocket, RefusesFramesOfNoMessage) {
  const Socket listener = listen_at(0);
  std::string why;
  const Deadline soon = std::chrono::steady_clock::now() + milliseconds(5000);
  const std::optional<Socket> sender = connect_to("localhost", port_of(listener), soon, why);
  ASSERT_TRUE(sender) << why;
  std::optional<Socket> receiver;
  while (!receiver) receiver = accept_from(listener);
  const std::uint64_t words[] = {1, ~std::uint64_t{0}};
  ASSERT_TRUE(send_bytes(*sender, words, sizeof words));
  EXPECT_FALSE(receive_frame(*receiver, soon));
}

}  // namespace
}  // namespace stepcast::exec
