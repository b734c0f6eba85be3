#include "tests/device/step_checks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "program/text.h"

namespace stepcast::device_check {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorKind::kInput, "cannot read " + path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string hexadecimal(std::uint64_t value) {
  std::ostringstream text;
  text << std::hex << value;
  const std::string digits = text.str();
  return std::string(16 - digits.size(), '0') + digits;
}

// What differs, or nothing.
std::string difference_of(const Expected& expected, const std::vector<double>& losses) {
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    const double error = std::abs(losses.at(i) - expected.losses[i]) / std::abs(expected.losses[i]);
    if (error <= expected.bound) continue;  // not so for NaN
    std::ostringstream text;
    text.precision(9);
    text << "step " << i + 1 << ": loss " << losses[i] << ", expected " << expected.losses[i] << " within "
         << expected.bound;
    return text.str();
  }
  return "";
}

void check_program(Machine& machine, const fs::path& path, Outcome& outcome) {
  const std::string name = path.stem().string();
  const Expected expected =
      parse_expected(text_of(fs::path(path).replace_extension(".losses")), path.stem().string() + ".losses");
  const program::CheckedProgram checked(program::parse_text(text_of(path), path.filename().string()));
  if (hexadecimal(checked.fingerprint()) != expected.fingerprint) {
    outcome.failures.push_back(name + ": its losses are of another Program: " + expected.fingerprint);
    return;
  }
  const Machine::Steps steps = machine.run_steps(checked, static_cast<int>(expected.losses.size()));
  if (!steps.why_not.empty()) {
    outcome.skipped.push_back(name + ": " + steps.why_not);
    return;
  }
  const std::string wrong = difference_of(expected, steps.losses);
  if (!wrong.empty()) {
    outcome.failures.push_back(name + ": " + wrong);
    return;
  }
  ++outcome.passed;
  std::ostringstream note;
  note.precision(3);
  note << name << ": " << steps.losses.size() << " steps, the last in " << steps.seconds.back() * 1e3 << " ms";
  outcome.notes.push_back(note.str());
}

}  // namespace

Expected parse_expected(const std::string& text, const std::string& file_name) {
  Expected expected;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream in(line);
    std::string key;
    if (!(in >> key) || key.starts_with('#')) continue;
    double loss = 0;
    const bool read = key == "fingerprint" ? static_cast<bool>(in >> expected.fingerprint)
                      : key == "bound"     ? static_cast<bool>(in >> expected.bound)
                                           : key == "loss" && in >> loss;
    if (!read) throw Error(ErrorKind::kInput, "not a line of expected losses", {file_name, number, ""});
    if (key == "loss") expected.losses.push_back(loss);
  }
  if (expected.fingerprint.empty() || expected.bound <= 0 || expected.losses.empty()) {
    throw Error(ErrorKind::kInput, "needs a fingerprint, a bound and losses", {file_name, 0, ""});
  }
  return expected;
}

Outcome check_steps(Machine& machine, const std::string& folder, const Budget& budget) {
  Outcome outcome{.section = "steps"};
  std::vector<fs::path> programs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") programs.push_back(entry.path());
  }
  std::sort(programs.begin(), programs.end());
  for (const fs::path& path : programs) {
    if (budget.is_over()) {
      outcome.skipped.push_back(path.stem().string() + ": out of time");
      continue;
    }
    try {
      check_program(machine, path, outcome);
    } catch (const Error& error) {
      outcome.failures.push_back(path.stem().string() + ": " + error.problems().front().message);
    }
  }
  if (programs.empty()) outcome.failures.push_back("no Program in " + folder);
  return outcome;
}

}  // namespace stepcast::device_check
