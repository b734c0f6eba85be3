// How Megatron-LM splits layers over pipeline ranks and virtual stages (arguments.py, transformer_block.py): evenly, or
// with a stated first and last rank, or with embedding and loss counted as a layer each, or by a layout string.
#include <string_view>
#include <utility>

#include "config/text.h"
#include "import/megatron.h"

namespace stepcast::imports {
namespace {

std::string layers_text(std::int64_t count) {
  return count <= 4 ? std::string(static_cast<std::size_t>(count), 't') : "t*" + std::to_string(count);
}

// "Ettt|ttttL"
std::string layout_string(const std::vector<std::int64_t>& counts) {
  std::string result = "E";
  for (std::size_t i = 0; i < counts.size(); ++i) result += (i > 0 ? "|" : "") + layers_text(counts[i]);
  return result + "L";
}

// Layers of each rank with `first` and `last` on the ends; empty when the middle does not divide.
std::vector<std::int64_t> with_ends(std::int64_t layers, std::int64_t pp, std::int64_t first, std::int64_t last) {
  const std::int64_t middle = layers - first - last;
  if (pp < 2 || first < 1 || last < 1 || middle < 0) return {};
  if (pp == 2 ? middle != 0 : middle % (pp - 2) != 0) return {};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(pp), pp == 2 ? 0 : middle / (pp - 2));
  counts.front() = first;
  counts.back() = last;
  return counts;
}

std::vector<std::string> ways_to_split(std::int64_t layers, std::int64_t pp) {
  std::vector<std::string> ways;
  if (pp > layers || pp < 2) return {"--pipeline-model-parallel-size of at most " + std::to_string(layers)};
  if ((layers + 2) % pp == 0) {
    const std::int64_t share = (layers + 2) / pp;
    ways.push_back("--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split: " +
                   std::to_string(layers) + " + 2 = " + std::to_string(layers + 2) + " divides by " +
                   std::to_string(pp) + ": " + std::to_string(share - 1) +
                   (pp > 2 ? ", " + std::to_string(share) + (pp > 3 ? " x " + std::to_string(pp - 2) : "") : "") +
                   ", " + std::to_string(share - 1));
  }
  for (std::int64_t less = 0; less < layers / pp; ++less) {
    const std::int64_t first = layers / pp - less;
    const std::int64_t last = pp == 2 ? layers - first : first;
    const std::vector<std::int64_t> counts = with_ends(layers, pp, first, last);
    if (counts.empty()) continue;
    ways.push_back("--decoder-first-pipeline-num-layers " + std::to_string(first) +
                   (pp == 2 ? " (or --decoder-last-pipeline-num-layers " + std::to_string(last) + ")"
                            : " --decoder-last-pipeline-num-layers " + std::to_string(last)));
    if (pp <= 16) ways.push_back("--pipeline-model-parallel-layout \"" + layout_string(counts) + "\"");
    break;
  }
  return ways;
}

std::vector<std::string> divisors_of(std::int64_t value) {
  std::vector<std::string> divisors;
  for (std::int64_t d = 1; d <= value && d <= 4096; ++d) {
    if (value % d == 0) divisors.push_back(std::to_string(d));
  }
  return divisors;
}

// Virtual stages of a rank that holds `share` layers (embedding and loss counted where Megatron counts them); 0 after a
// problem.
std::int64_t virtual_stages(MegatronRun& run, std::int64_t share) {
  const auto per_stage = run.args.integer("num-layers-per-virtual-pipeline-stage");
  const auto stages = run.args.integer("num-virtual-stages-per-pipeline-rank");
  const std::string all = std::to_string(run.layers) + " layers over --pipeline-model-parallel-size " +
                          std::to_string(run.pp) + " are " + std::to_string(share) + " a rank, ";
  if (per_stage && *per_stage > 0) {
    if (share % *per_stage == 0) return share / *per_stage;
    run.draft.refuse(
        all + "which do not divide by --num-layers-per-virtual-pipeline-stage " + std::to_string(*per_stage),
        run.args.where("num-layers-per-virtual-pipeline-stage"),
        {"--num-layers-per-virtual-pipeline-stage " + config::join(divisors_of(share), " or ")});
    return 0;
  }
  if (stages && *stages > 0) {
    if (share % *stages == 0) return *stages;
    run.draft.refuse(all + "which do not divide by " + std::to_string(*stages) + " virtual stages",
                     run.args.where("num-virtual-stages-per-pipeline-rank"),
                     {"virtual stages: " + config::join(divisors_of(share), " or ")});
    return 0;
  }
  return 1;
}

void set_stages(MegatronRun& run, const std::vector<std::int64_t>& counts, const std::string& origin) {
  std::vector<std::string> items;
  for (const std::int64_t count : counts) items.push_back(std::to_string(count));
  run.draft.set("plan.layout", "[" + config::join(items) + "]", origin);
}

void set_vp(MegatronRun& run, std::int64_t vp) {
  run.vp = vp;
  const std::string layers = run.args.origin("num-layers-per-virtual-pipeline-stage");
  const std::string origin = layers.empty() ? run.args.origin("num-virtual-stages-per-pipeline-rank") : layers;
  if (vp > 1) run.draft.set("plan.vp", vp, origin);
}

void split_with_ends(MegatronRun& run) {
  const std::int64_t even = run.layers / run.pp;
  const auto first = run.args.integer("decoder-first-pipeline-num-layers");
  const auto last = run.args.integer("decoder-last-pipeline-num-layers");
  const std::int64_t ends = (first ? 1 : 0) + (last ? 1 : 0);
  const std::int64_t rest = run.layers - first.value_or(0) - last.value_or(0);
  const std::string flag = first ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers";
  const bool divides = run.pp > ends ? rest > 0 && rest % (run.pp - ends) == 0 : rest == 0;
  if (!divides || first == 0 || last == 0) {
    run.draft.refuse(std::to_string(rest) + " of " + std::to_string(run.layers) + " layers are left for " +
                         std::to_string(run.pp - ends) + " of --pipeline-model-parallel-size " +
                         std::to_string(run.pp) + " ranks, and do not divide",
                     run.args.where(flag), ways_to_split(run.layers, run.pp));
    return;
  }
  const std::int64_t share = run.pp > ends ? rest / (run.pp - ends) : even;
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(run.pp), share);
  if (first) ranks.front() = *first;
  if (last) ranks.back() = *last;
  const std::int64_t vp = virtual_stages(run, share);
  if (vp == 0) return;
  std::vector<std::int64_t> counts;
  for (std::int64_t chunk = 0; chunk < vp; ++chunk) {
    for (const std::int64_t count : ranks) counts.push_back(count / vp);
  }
  if (ranks.front() % vp != 0 || ranks.back() % vp != 0) {
    run.draft.refuse(std::to_string(ranks.front()) + " layers of the first rank and " + std::to_string(ranks.back()) +
                         " of the last do not divide by " + std::to_string(vp) + " virtual stages",
                     run.args.where(flag));
    return;
  }
  set_vp(run, vp);
  set_stages(run, counts, run.args.origin(flag));
}

void split_evenly(MegatronRun& run) {
  const bool embedding = run.args.on("account-for-embedding-in-pipeline-split");
  const bool loss = run.args.on("account-for-loss-in-pipeline-split");
  const std::int64_t counted = run.layers + (embedding ? 1 : 0) + (loss ? 1 : 0);
  if (counted % run.pp != 0) {
    run.draft.refuse(std::to_string(run.layers) + " layers" +
                         (counted > run.layers ? " (" + std::to_string(counted) + " counted)" : "") +
                         " do not divide by --pipeline-model-parallel-size " + std::to_string(run.pp) +
                         ": the pipeline would lose " + std::to_string(counted % run.pp),
                     run.args.where("num-layers"), ways_to_split(run.layers, run.pp));
    return;
  }
  const std::int64_t vp = virtual_stages(run, counted / run.pp);
  if (vp == 0) return;
  set_vp(run, vp);
  if (!embedding && !loss) return;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(run.pp * vp), counted / run.pp / vp);
  if (embedding) --counts.front();
  if (loss) --counts.back();
  set_stages(
      run, counts,
      run.args.origin(embedding ? "account-for-embedding-in-pipeline-split" : "account-for-loss-in-pipeline-split"));
}

}  // namespace

void translate_megatron_layout(MegatronRun& run) {
  constexpr std::int64_t kMostStages = 65536;
  const auto layout = run.args.word("pipeline-model-parallel-layout");
  if (layout && *layout != "null") {
    run.draft.set("plan.layout", "\"" + config::printable(*layout, 4096) + "\"",
                  run.args.origin("pipeline-model-parallel-layout"));
    return;
  }
  const bool ends = run.args.find("decoder-first-pipeline-num-layers") != nullptr ||
                    run.args.find("decoder-last-pipeline-num-layers") != nullptr;
  if (run.layers == 0) {  // a model this release cannot open: the virtual stages as they are stated
    if (const auto stages = run.args.integer("num-virtual-stages-per-pipeline-rank")) set_vp(run, *stages);
    return;
  }
  if (run.pp > kMostStages || run.layers > kMostStages) return;
  if (ends) {
    split_with_ends(run);
  } else {
    split_evenly(run);
  }
}

}  // namespace stepcast::imports
