// The program `stepcast`. All of it is in command_line.cc, which tests can call.
#include "base/heap.h"
#include "cli/command_line.h"

int main(int argc, char** argv) {
  stepcast::prepare_heap();
  return stepcast::cli::run_command_line({argc, argv});
}
