#include "calibrate/calibration_writer.h"

#include <algorithm>
#include <string_view>

#include "config/text.h"

namespace stepcast::calibrate {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts = {""};
  for (const char c : name) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string group_name(const std::string& name) { return name.substr(0, name.rfind('.')); }

}  // namespace

void put_constant(std::vector<sim::CalibrationConstant>& constants, const sim::CalibrationConstant& constant) {
  auto behind = constants.end();
  for (auto c = constants.begin(); c != constants.end(); ++c) {
    if (c->name == constant.name) {
      *c = constant;
      return;
    }
    if (group_name(c->name) == group_name(constant.name)) behind = c + 1;
  }
  constants.insert(behind, constant);
}

std::string calibration_text(const sim::Calibration& calibration, const std::string& comment) {
  std::string text;
  for (std::size_t at = 0; at < comment.size();) {
    const std::size_t end = std::min(comment.find('\n', at), comment.size());
    text += "# " + comment.substr(at, end - at) + "\n";
    at = end + 1;
  }
  text += "schema: stepcast/calibration/1\nname: " + quoted(calibration.name) + "\nstack: " + quoted(calibration.stack);
  std::vector<std::string> devices;
  for (const std::string& device : calibration.devices) devices.push_back(quoted(device));
  text += "\ndevices: [" + config::join(devices) + "]\n";
  std::vector<std::string> open;  // groups that the last constant stood in
  for (const sim::CalibrationConstant& constant : calibration.constants) {
    const std::vector<std::string> parts = parts_of(constant.name);
    const auto [differs, unused] = std::mismatch(open.begin(), open.end(), parts.begin(), parts.end() - 1);
    const auto shared = static_cast<std::size_t>(differs - open.begin());
    for (std::size_t i = shared; i < parts.size(); ++i) text += std::string(2 * i, ' ') + parts[i] + ":\n";
    open.assign(parts.begin(), parts.end() - 1);
    const std::string indent(2 * parts.size(), ' ');
    text += indent + "value: " + constant.value + "\n" + indent + "meaning: " + quoted(constant.meaning) + "\n" +
            indent + "source: " + quoted(constant.source) + "\n";
  }
  return text;
}

}  // namespace stepcast::calibrate
