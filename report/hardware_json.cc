// Schema stepcast/hardware/1.
#include "report/hardware_output.h"
#include "report/json.h"

namespace stepcast::report {
namespace {

Json json_of(const HardwareFigure& figure) {
  return {{"field", figure.field},   {"value", figure.number ? Json(*figure.number) : Json()},
          {"unit", figure.unit},     {"text", figure.text},
          {"source", figure.source}, {"stated_by", figure.stated_by}};
}

Json json_of(const HardwareEntry& entry) {
  Json figures = Json::array();
  for (const HardwareFigure& figure : entry.figures) figures.push_back(json_of(figure));
  return {{"name", entry.name}, {"files", entry.files}, {"gpu", entry.cluster.node.device.name}, {"figures", figures}};
}

}  // namespace

std::string hardware_json(const HardwareList& list) {
  Json clusters = Json::array();
  for (const HardwareEntry& entry : list.entries) clusters.push_back(json_of(entry));
  Json unreadable = Json::array();
  for (const UnreadableHardware& file : list.unreadable) {
    unreadable.push_back({{"name", file.name}, {"problem", file.problem}});
  }
  const Json json = {{"schema", "stepcast/hardware/1"}, {"clusters", clusters}, {"unreadable", unreadable}};
  return to_text(json);
}

}  // namespace stepcast::report
