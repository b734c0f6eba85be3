// Ctrl-C ends a command at its next safe point, or after a second, whichever comes first; a second one ends the process
// at once.
#pragma once

namespace stepcast::cli {

// Thrown at a safe point after an interrupt; exit code 130.
struct Interrupted {};
inline constexpr int kInterruptedCode = 130;

// Installs the handlers of SIGINT and of the alarm that it sets.
void handle_interrupts();

// Throws Interrupted when SIGINT arrived. Called between steps and before output is written.
void throw_if_interrupted();

// From now on SIGINT and SIGTERM are only noted, for a process that has others to end first.
void note_end_signals();
// The signal noted last, or a SIGINT that came before; 0 without one.
int end_signal();

}  // namespace stepcast::cli
