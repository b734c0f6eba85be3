// A signal handler can only set a flag, so this one flag is global.
#include "cli/interrupt.h"

#include <csignal>

namespace stepcast::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int) { interrupted = 1; }

}  // namespace

void handle_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  // The second signal takes its default action: the process ends.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

void throw_if_interrupted() {
  if (interrupted != 0) throw Interrupted{};
}

}  // namespace stepcast::cli
