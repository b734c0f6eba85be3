// Tables in the units people compare parts by; a figure alone is shown as its file writes it.
#include <fmt/format.h>

#include <vector>

#include "report/hardware_output.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

using Row = std::vector<std::string>;

// By column: words, the others are numbers.
std::vector<bool> hardware_word_columns() { return {true, true, false, false, false, false, true, true, true}; }

std::string number(double value) { return value == 0 ? "-" : fmt::format("{:.4g}", value); }

std::string scale_up_text(const topology::ScaleUpSpec& scale_up) {
  if (scale_up.domain == 1) return "-";
  return fmt::format("{:.4g} x {}", scale_up.bandwidth.value / 1e9, scale_up.domain);
}

std::string nic_text(const topology::NicSpec& nic) {
  if (nic.rate.value == 0) return "-";
  const char* kind = "ib";
  if (nic.kind == topology::NicKind::kRoce) kind = "roce";
  if (nic.kind == topology::NicKind::kEfa) kind = "efa";
  return fmt::format("{:.4g} x {:.4g} {}", nic.per_device, nic.rate.value * 8 / 1e9, kind);
}

std::string fabric_text(const topology::FabricSpec& fabric) {
  switch (fabric.kind) {
    case topology::FabricKind::kNone:
      return "-";
    case topology::FabricKind::kRail:
      return fmt::format("rail {}", fabric.unit_nodes);
    case topology::FabricKind::kFatTree:
      return fmt::format("fat_tree {}", fabric.unit_nodes);
    case topology::FabricKind::kCustom:
      return "custom";
  }
  return "-";
}

Row row_of(const HardwareEntry& entry) {
  const topology::NodeSpec& node = entry.cluster.node;
  const topology::DeviceSpec& device = node.device;
  return {entry.name,
          device.name,
          number(device.peak_bf16.value / 1e12),
          number(device.peak_fp8.value / 1e12),
          number(static_cast<double>(device.memory.count) / 0x1p30),
          number(device.memory_bandwidth.value / 1e12),
          scale_up_text(node.scale_up),
          nic_text(node.nic),
          fabric_text(entry.cluster.fabric)};
}

}  // namespace

std::string hardware_table(const HardwareList& list) {
  std::vector<Row> rows = {{"cluster", "GPU", "bf16", "fp8", "GiB", "TB/s", "scale-up", "NICs", "fabric"}};
  for (const HardwareEntry& entry : list.entries) rows.push_back(row_of(entry));
  std::string text = aligned_rows(rows, hardware_word_columns());
  for (const UnreadableHardware& file : list.unreadable)
    text += wrapped(file.name + " is unreadable:", 2, file.problem);
  text += '\n';
  text += wrapped("", 0,
                  "bf16, fp8: dense TFLOP/s of a GPU. TB/s: its memory. scale-up: GB/s of a GPU per direction x GPUs "
                  "that reach each other. NICs: of a GPU x Gb/s, kind. fabric: kind and nodes under one set of "
                  "leaves; without one a cluster is a single node.");
  return text + "stepcast hardware NAME shows every figure of one with its source.\n";
}

std::string hardware_screen(const HardwareEntry& entry) {
  const topology::NodeSpec& node = entry.cluster.node;
  std::string text = fmt::format("{}: nodes of {} x {}", entry.name, node.devices, node.device.name);
  for (std::size_t i = 1; i < entry.files.size(); ++i) text += (i == 1 ? ", based on " : ", ") + entry.files[i];
  text += '\n';
  std::size_t field_width = 6;
  std::size_t value_width = 5;
  for (const HardwareFigure& figure : entry.figures) {
    field_width = std::max(field_width, figure.field.size());
    value_width = std::max(value_width, std::min<std::size_t>(figure.text.size(), 24));
  }
  std::string stated_by;
  for (const HardwareFigure& figure : entry.figures) {
    if (figure.stated_by != stated_by) {
      stated_by = figure.stated_by;
      text += fmt::format("\n{}\n", stated_by);
    }
    const std::string label = fmt::format("  {:<{}}  {:<{}}  ", figure.field, field_width, figure.text, value_width);
    text += wrapped(label, field_width + value_width + 6, figure.source.empty() ? "no source stated" : figure.source);
  }
  return text;
}

}  // namespace stepcast::report
