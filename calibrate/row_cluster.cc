// Where a row ran: the preset of its accelerator, alone or on the fabric its source states, and its nodes' NICs where
// they are not the preset's.
#include <algorithm>
#include <array>

#include "calibrate/row_draft.h"
#include "config/text.h"

namespace stepcast::calibrate {
namespace {

struct Accelerator {
  std::string_view begins;  // of the row's gpu
  std::string_view node;
  std::string_view fabric;  // cluster preset of several nodes
  std::int64_t per_node;
};

constexpr std::array<Accelerator, 12> kAccelerators = {{
    {"A100-SXM-80GB", "hgx-a100-80", "hgx-a100-80-hdr200-rail", 8},
    {"A100-SXM-40GB", "hgx-a100-40", "hgx-a100-40-hdr200-rail", 8},
    {"A800-SXM-80GB", "hgx-a800", "hgx-a800-hdr200-rail", 8},
    {"H100-SXM-80GB", "hgx-h100", "hgx-h100-ndr400-rail", 8},
    {"H100-HBM2e-96GB", "hgx-h100-96gb-500w", "hgx-h100-96gb-500w-roce400-rail", 8},
    {"H200-SXM", "hgx-h200", "hgx-h200-ndr400-rail", 8},
    {"H800-SXM-80GB", "hgx-h800", "hgx-h800-ndr400-rail", 8},
    {"B200-SXM", "hgx-b200", "hgx-b200-ndr400-rail", 8},
    {"B300-SXM", "hgx-b300", "hgx-b300-xdr800-rail", 8},
    {"GB200", "gb200-nvl72", "gb200-nvl72", 4},
    {"GB300", "gb300-nvl72", "gb300-nvl72", 4},
    {"MI300X", "mi300x-8", "mi300x-8-roce400-rail", 8},
}};

// What a source's words on its network change of the preset's NICs.
struct NicWords {
  std::string_view contains;
  std::string_view rate;     // of one NIC
  std::string_view per_gpu;  // NICs of a GPU
};

constexpr std::array<NicWords, 6> kNics = {{
    {"4x100Gb RoCE per node", "100 Gb/s", "0.5"},
    {"4x Omni-Path 100Gb/s per node", "100 Gb/s", "0.5"},
    {"8x100Gb/s NIC per node", "100 Gb/s", "1"},
    {"1600 Gb/s RoCE per node", "200 Gb/s", "1"},
    {"800 Gb/s per node", "100 Gb/s", "1"},
    {"400 Gb/s per node", "50 Gb/s", "1"},
}};

constexpr std::int64_t kRackTrays = 18;
constexpr std::int64_t kUsedTrays = 16;
constexpr std::int64_t kTrayGpus = 4;

bool is_rack(const Accelerator& accelerator) { return accelerator.node == accelerator.fabric; }

// Jobs larger than a rack take 64 of its 72 GPUs, as NVIDIA's launchers do, so that groups of a power of two stay
// within one NVLink domain: the last two trays of every rack are left out.
void leave_trays_out(RowDraft& draft) {
  const std::int64_t used = kUsedTrays * kTrayGpus;
  if (draft.row.gpus <= kRackTrays * kTrayGpus || draft.row.gpus % used != 0) return;
  std::string list;
  for (std::int64_t rack = 0; rack < draft.row.gpus / used; ++rack) {
    for (std::int64_t tray = kUsedTrays; tray < kRackTrays; ++tray) {
      list += (list.empty() ? "" : ", ") + std::to_string(rack * kRackTrays + tray);
    }
  }
  draft.set("placement.exclude", "[" + list + "]");
  draft.assume("64 of the 72 GPUs of every NVLink domain are used");
}

void take_nics(RowDraft& draft, const Accelerator& accelerator) {
  const std::string& words = draft.row.interconnect;
  const auto nic = std::find_if(kNics.begin(), kNics.end(), [&words](const NicWords& known) {
    return words.find(known.contains) != std::string::npos;
  });
  if (nic != kNics.end()) {
    draft.set("cluster.nic.rate", std::string(nic->rate));
    draft.set("cluster.nic.per_gpu", std::string(nic->per_gpu));
  } else if (words.empty() || words == "not stated") {
    draft.assume("the network is not stated: " + std::string(accelerator.fabric));
  }
}

}  // namespace

void take_cluster(RowDraft& draft) {
  const PublishedRow& row = draft.row;
  const auto found = std::find_if(kAccelerators.begin(), kAccelerators.end(),
                                  [&row](const Accelerator& known) { return row.gpu.starts_with(known.begins); });
  if (found == kAccelerators.end()) {
    return draft.skip("accelerator '" + config::printable(row.gpu) + "': no cluster preset");
  }
  if (row.gpus_per_node > 0 && row.gpus_per_node != found->per_node) {
    return draft.skip(std::to_string(row.gpus_per_node) + " GPUs a node: the preset " + std::string(found->node) +
                      " has " + std::to_string(found->per_node));
  }
  draft.set("gpus", row.gpus);
  const bool networked = row.gpus > found->per_node;
  const bool efa = found->begins == "H100-SXM-80GB" && row.interconnect.find("EFA") != std::string::npos;
  const std::string fabric = efa ? "hgx-h100-efa400-rail" : std::string(found->fabric);
  draft.set("cluster.base", networked ? fabric : std::string(found->node));
  if (is_rack(*found)) return leave_trays_out(draft);
  if (networked) take_nics(draft, *found);
}

}  // namespace stepcast::calibrate
