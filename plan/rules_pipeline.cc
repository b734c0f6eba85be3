// Rules of the batch and of the pipeline that runs its microbatches.
#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "plan/rule_context.h"

namespace stepcast::plan {
namespace {

void check_batch(RuleContext& c) {
  if (!c.dp_fits()) return;
  const std::int64_t batch = c.scenario.training.global_batch_size;
  const std::int64_t step = c.plan.micro_batch_size * c.plan.dp;
  if (batch % step == 0) return;
  const std::int64_t below = batch / step * step;
  std::vector<std::string> help{"global_batch_size " + (below > 0 ? text_of(below) + " or " : "") +
                                text_of(below + step)};
  if (batch % c.plan.dp == 0) help.push_back("micro_batch_size " + list_of(divisors(batch / c.plan.dp, batch)));
  c.violate("training.global_batch_size",
            "global_batch_size " + text_of(batch) +
                " does not divide by micro_batch_size * dp = " + text_of(c.plan.micro_batch_size) + " * " +
                text_of(c.plan.dp) + " = " + text_of(step) + std::string(c.preset.batch_relation),
            std::move(help));
}

void check_pipeline(RuleContext& c) {
  if (c.plan.vp > 1 && c.plan.pp == 1) {
    c.violate("plan.vp", "vp " + text_of(c.plan.vp) + " needs pp > 1; pp is 1", {"vp 1", "pp of at least 2"});
  }
  const bool interleaved = c.plan.schedule == ScheduleKind::kInterleaved1F1B;
  if (c.plan.schedule == ScheduleKind::k1F1B && c.plan.vp > 1) {
    c.violate("plan.schedule", "1f1b runs one virtual stage per rank; vp is " + text_of(c.plan.vp),
              {"schedule: interleaved_1f1b", "vp 1"});
  }
  if (c.plan.schedule == ScheduleKind::kGpipe && c.plan.vp > 1) {
    c.violate("plan.schedule", "gpipe with vp " + text_of(c.plan.vp), {"schedule: interleaved_1f1b", "vp 1"},
              ErrorKind::kUnsupported);
  }
  if (interleaved && c.plan.vp == 1) {
    c.violate("plan.schedule", "interleaved_1f1b needs vp > 1; vp is 1", {"schedule: 1f1b", "vp 2"});
  }
  const std::optional<std::int64_t> microbatches = c.whole_microbatches();
  if (microbatches && *microbatches < c.plan.pp && !interleaved) {
    c.warn(counted(*microbatches, "microbatch", "microbatches") + " for pp " + text_of(c.plan.pp) +
           ": some stages always wait");
  }
}

// Megatron's schedules.py raises for a group below pp or above the microbatches, and for a last group that is neither
// whole nor at least pp: the ring of stages would wait for itself.
void check_interleaving(RuleContext& c) {
  const std::optional<std::int64_t> microbatches = c.whole_microbatches();
  if (c.plan.schedule != ScheduleKind::kInterleaved1F1B || c.plan.vp == 1 || !microbatches) return;
  const std::int64_t m = *microbatches;
  const std::int64_t group = c.plan.microbatch_group;
  const std::string both = "microbatch_group " + text_of(group);
  if (group < c.plan.pp) {
    c.violate("plan.microbatch_group", both + " is below pp " + text_of(c.plan.pp),
              {"microbatch_group " + text_of(c.plan.pp)});
  } else if (group > m) {
    c.violate("plan.microbatch_group",
              both + " is above the " + counted(m, "microbatch", "microbatches") + " of a step",
              {"a global_batch_size of at least " + text_of(group * c.plan.micro_batch_size * c.plan.dp)});
  } else if (c.preset.even_rounds && m % std::max<std::int64_t>(1, m / c.plan.pp) != 0) {
    return;  // said by check_framework_rules
  } else if (m % group != 0 && m % group < c.plan.pp) {
    std::vector<std::int64_t> groups;
    for (std::int64_t g = c.plan.pp; g <= std::min<std::int64_t>(m, c.plan.pp + 4096) && groups.size() < 8; ++g) {
      if (m % g == 0 || m % g >= c.plan.pp) groups.push_back(g);
    }
    std::vector<std::string> help{"a multiple of " + text_of(group) + " microbatches"};
    if (!groups.empty()) help.insert(help.begin(), "microbatch_group " + list_of(groups));
    c.violate("plan.microbatch_group",
              text_of(m) + " microbatches leave a last group of " + text_of(m) + " mod " + text_of(group) + " = " +
                  text_of(m % group) + ", below pp " + text_of(c.plan.pp),
              std::move(help));
  }
}

}  // namespace

void check_pipeline_rules(RuleContext& c) {
  check_batch(c);
  check_pipeline(c);
  check_interleaving(c);
}

}  // namespace stepcast::plan
