// From YAML through the strict binder to constants. The list for people is taken from the message by reflection, so
// that it names every constant of the schema, in its order.
#include "sim/cost/calibration_reader.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "config/bind.h"
#include "config/document.h"
#include "sim/calibration.pb.h"

namespace stepcast::sim {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

Duration duration(const proto::Time& t) { return Duration::from_seconds(t.value()); }

AttentionConstants attention_of(const proto::AttentionPass& m) {
  return {.efficiency = m.efficiency().value(),
          .head_dim_half = m.head_dim_half().value(),
          .sequence_half = m.sequence_half().value(),
          .tiles_half = m.tiles_half().value(),
          .diagonal_keys = m.diagonal_keys().value()};
}

TransferConstants transfer_of(const proto::Transfer& m) {
  return {.bandwidth = m.bandwidth().value(), .latency = duration(m.latency())};
}

CollectiveConstants collective_of(const proto::Collective& m) {
  return {.ring = m.ring().value(),
          .tree = m.tree().value(),
          .nvls = m.nvls().value(),
          .nvls_payload = m.nvls_payload().value(),
          .all_to_all = m.all_to_all().value(),
          .host_link = m.host_link().value(),
          .start = duration(m.start()),
          .half_size = m.half_size().value()};
}

// Every message with a `source` is a constant; the others group them. `given` holds values as the file writes them.
void list_constants(const Message& message, const std::string& prefix, const std::map<std::string, std::string>& given,
                    std::vector<CalibrationConstant>& constants) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const FieldDescriptor* source = message.GetDescriptor()->FindFieldByName("source");
  if (source != nullptr) {
    const FieldDescriptor* meaning = message.GetDescriptor()->FindFieldByName("meaning");
    const auto value = given.find(prefix + ".value");
    constants.push_back({prefix, value == given.end() ? "" : value->second, reflection.GetString(message, meaning),
                         reflection.GetString(message, source)});
    return;
  }
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || !reflection.HasField(message, field)) continue;
    const std::string name(field->name());
    list_constants(reflection.GetMessage(message, field), prefix.empty() ? name : prefix + "." + name, given,
                   constants);
  }
}

std::optional<MatmulRate> rate_of(bool stated, const proto::Fraction& efficiency, const proto::Number& k_half) {
  if (!stated) return std::nullopt;
  return MatmulRate{efficiency.value(), k_half.value()};
}

MatmulRefinement refinement_of(const proto::Matmul& m) {
  return {.tile_share = m.tile_share().value(),
          .wave_share = m.wave_share().value(),
          .accumulation = m.has_accumulation() ? m.accumulation().value() : 1,
          .sustained_drop = m.sustained_drop().value(),
          .sustained_after = duration(m.sustained_after())};
}

Calibration calibration_of(const proto::Calibration& m) {
  Calibration c;
  c.name = m.name();
  c.stack = m.stack();
  c.devices.assign(m.devices().begin(), m.devices().end());
  c.matmul_bf16 = m.matmul().bf16().value();
  c.matmul_fp32 = m.matmul().fp32().value();
  c.matmul_k_half = m.matmul().k_half().value();
  c.matmul_memory = m.matmul().memory().value();
  c.matmul_fp8 = rate_of(m.matmul().has_fp8(), m.matmul().fp8(), m.matmul().fp8_k_half());
  c.matmul_fp8_block = rate_of(m.matmul().has_fp8_block(), m.matmul().fp8_block(), m.matmul().fp8_block_k_half());
  c.matmul_refinement = refinement_of(m.matmul());
  if (m.matmul().has_start()) c.matmul_start = duration(m.matmul().start());
  c.attention_forward = attention_of(m.attention().forward());
  c.attention_backward = attention_of(m.attention().backward());
  c.elementwise = m.memory().elementwise().value();
  c.norm = m.memory().norm().value();
  c.activation = m.memory().activation().value();
  c.rotary = m.memory().rotary().value();
  c.embedding = m.memory().embedding().value();
  c.loss = m.memory().loss().value();
  c.optimizer = m.memory().optimizer().value();
  c.multiprocessors = m.memory().multiprocessors().value();
  c.kernel_gap = duration(m.host().kernel_gap());
  c.launch = duration(m.host().launch());
  c.sync_launch = duration(m.host().sync_launch());
  c.graph_launch = duration(m.host().graph_launch());
  c.collective = collective_of(m.collective());
  c.p2p = {.bandwidth = m.p2p().bandwidth().value(),
           .latency = duration(m.p2p().latency()),
           .network_latency = duration(m.p2p().network_latency())};
  c.copy = transfer_of(m.copy());
  return c;
}

bool begins_name(std::string_view entry, std::string_view device) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  if (entry.empty() || device.size() < entry.size()) return false;
  if (!std::equal(entry.begin(), entry.end(), device.begin(), [&](char a, char b) { return lower(a) == lower(b); })) {
    return false;
  }
  return device.size() == entry.size() || std::isdigit(static_cast<unsigned char>(device[entry.size()])) == 0;
}

}  // namespace

Calibration read_calibration(std::string_view text, const std::string& file) {
  const config::Node node = config::parse_document(text, file);
  proto::Calibration message;
  ProblemList problems;
  std::vector<config::BoundValue> values;
  config::bind(node, message, problems, values);
  problems.throw_if_any();
  Calibration calibration = calibration_of(message);
  std::map<std::string, std::string> given;
  for (const config::BoundValue& v : values) given.emplace(v.field, v.value);
  list_constants(message, "", given, calibration.constants);
  return calibration;
}

bool is_for(const Calibration& calibration, std::string_view device) {
  return std::any_of(calibration.devices.begin(), calibration.devices.end(),
                     [&](const std::string& entry) { return begins_name(entry, device); });
}

bool is_first_for(const Calibration& calibration, std::string_view device) {
  return !calibration.devices.empty() && begins_name(calibration.devices.front(), device);
}

}  // namespace stepcast::sim
