// A signal handler can only set a flag, so these two flags are global. What is written to files is renamed into place,
// so that nothing half written has its name when the process ends between two safe points.
#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace stepcast::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;
volatile std::sig_atomic_t noted = 0;

extern "C" void end_now(int) {
  constexpr char kText[] = "interrupted\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(130);
}

extern "C" void note_interrupt(int) {
  interrupted = 1;
  alarm(1);
}

extern "C" void note_signal(int number) { noted = number; }

}  // namespace

void handle_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  // The second signal takes its default action: the process ends.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  struct sigaction late = {};
  late.sa_handler = end_now;
  sigaction(SIGALRM, &late, nullptr);
}

void throw_if_interrupted() {
  if (interrupted != 0) throw Interrupted{};
}

void note_end_signals() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  alarm(0);
}

int end_signal() {
  if (noted != 0) return noted;
  return interrupted != 0 ? SIGINT : 0;
}

}  // namespace stepcast::cli
