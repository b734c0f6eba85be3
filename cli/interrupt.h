// Ctrl-C ends a command at its next safe point, or after a second, whichever comes first; a second one ends the process
// at once.
#pragma once

namespace stepcast::cli {

// Thrown at a safe point after an interrupt; exit code 130.
struct Interrupted {};

// Installs the handlers of SIGINT and of the alarm that it sets.
void handle_interrupts();

// Throws Interrupted when SIGINT arrived. Called between steps and before output is written.
void throw_if_interrupted();

}  // namespace stepcast::cli
