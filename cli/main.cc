// The program `stepcast`. All of it is in command_line.cc, which tests can call.
#include "cli/command_line.h"

int main(int argc, char** argv) { return stepcast::cli::run_command_line(argc, argv); }
