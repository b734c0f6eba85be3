// Ranks on two hosts, which tests/hosts/two_hosts has made of this machine: they train as threads of one process do,
// and over the slow link between them gradients reduced beside the backward pass shorten the step, as the simulation
// says.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace stepcast {
namespace {

using nlohmann::json;

// What a command prints; the repository's root is its folder.
std::string output_of(const std::string& command) {
  const std::string whole = "cd '" STEPCAST_SOURCE_DIR "' && " + command;
  std::string text;
  FILE* pipe = ::popen(whole.c_str(), "r");  // NOLINT(cert-env33-c): the tests' own commands
  if (pipe == nullptr) return text;
  char piece[4096];
  while (const std::size_t read = std::fread(piece, 1, sizeof piece, pipe)) text.append(piece, read);
  EXPECT_EQ(WEXITSTATUS(::pclose(pipe)), 0) << command << "\n" << text;
  return text;
}

std::string on_hosts(int ranks) { return "$STEPCAST_ON_HOSTS -n " + std::to_string(ranks) + " "; }

// Both hosts are this machine: left to themselves, each would take all of its cores.
json executed(const std::string& launcher, const std::string& arguments) {
  return json::parse(
      output_of(launcher + "'" STEPCAST_BINARY "' run --json --backend cpu --threads-per-rank 1 " + arguments));
}

std::vector<double> losses_of(const json& run) {
  std::vector<double> losses;
  for (const json& step : run["steps"]) losses.push_back(step["loss"].get<double>());
  return losses;
}

// The first step warms up.
double median_step(const json& run) {
  std::vector<double> times;
  for (std::size_t i = 1; i < run["steps"].size(); ++i) times.push_back(run["steps"][i]["step_time_s"].get<double>());
  std::sort(times.begin(), times.end());
  return times.at(times.size() / 2);
}

std::int64_t bytes_over_the_link() { return std::stoll(output_of("$STEPCAST_LINK_BYTES")); }

// The share of two cores that two threads get when they ask for all of it.
double free_share() {
  constexpr std::chrono::milliseconds kAsked(300);
  std::atomic<std::int64_t> got_ns{0};
  const auto work = [&] {
    const auto end = std::chrono::steady_clock::now() + kAsked;
    while (std::chrono::steady_clock::now() < end) continue;
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    got_ns += std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
  };
  std::thread first(work);
  std::thread second(work);
  first.join();
  second.join();
  return static_cast<double>(got_ns) / static_cast<double>(2 * std::chrono::nanoseconds(kAsked).count());
}

TEST(Hosts, AreTwo) {
  const std::string names = output_of(on_hosts(2) + "uname -n");
  EXPECT_NE(names.find("stepcast-host-1"), std::string::npos) << names;
  EXPECT_NE(names.find("stepcast-host-2"), std::string::npos) << names;
}

// Every op's sums are taken in member order on every transport, so losses are the same to the bit. Each rank of the
// first host has peers on the second: at least the gradients of a step, 4 bytes for each of some 200,000 parameters,
// cross the link.
TEST(Hosts, TrainAsThreadsDo) {
  const std::string plan = "--steps 2 scenarios/runs/tiny-llama-tp2-pp2.yaml --set plan.pp=1 --set plan.tp=";
  for (const char* degree : {"2", "1 --set plan.zero=3"}) {
    const json threads = executed("", plan + degree);
    const std::int64_t before = bytes_over_the_link();
    const json hosts = executed(on_hosts(4), plan + degree);
    EXPECT_EQ(hosts["ranks_as"], "processes");
    EXPECT_TRUE(hosts["passes"].get<bool>());
    EXPECT_EQ(losses_of(hosts), losses_of(threads)) << degree;
    EXPECT_GT(bytes_over_the_link() - before, 2 * 200'000 * 4) << degree;
  }
}

// Where other work takes the cores that a rank leaves while it waits for the link, hiding the wait gains nothing.
TEST(Hosts, OverlapShortensTheStep) {
  const std::string scenario = "tests/hosts/overlap.yaml --set plan.overlap.grad_reduce=";
  const auto predicted = [&](const char* overlap) {
    const std::string text = output_of("'" STEPCAST_BINARY "' simulate --json " + scenario + overlap);
    return json::parse(text)["step_time_s"].get<double>();
  };
  const double simulated = predicted("true") / predicted("false");
  EXPECT_LE(simulated, 0.95);
  std::printf("with overlap / without: simulated %.3f\n", simulated);
  if (const double share = free_share(); share < 0.9) {
    GTEST_SKIP() << "other work leaves " << share << " of two cores";
  }
  // What else the machine does can hide the gain, not make one: the best of three attempts counts.
  double measured = 1;
  for (int attempt = 0; attempt < 3 && measured > 0.95; ++attempt) {
    const double with = median_step(executed(on_hosts(2), "--steps 6 " + scenario + "true"));
    const double without = median_step(executed(on_hosts(2), "--steps 6 " + scenario + "false"));
    measured = std::min(measured, with / without);
  }
  std::printf("with overlap / without: executed %.3f\n", measured);
  EXPECT_LE(measured, 0.95);
}

}  // namespace
}  // namespace stepcast
