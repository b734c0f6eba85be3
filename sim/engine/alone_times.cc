// Prices with what-ifs laid over them.
#include <cmath>

#include "base/check.h"
#include "base/random.h"
#include "sim/engine/engine.h"

namespace stepcast::sim {
AloneTimes::AloneTimes(const Workload& w, const EngineOptions& options)
    : w_(w),
      options_(options),
      free_local_(options.free == Free::kOptimizer || exposed_of(options.free).has_value()),
      free_exposed_(exposed_of(options.free)) {}

// Local ops on a communication or copy stream are part of that kind of time.
bool AloneTimes::is_free(const RankShape& shape, std::uint32_t op) const {
  if (options_.free == Free::kOptimizer) {
    return shape.ops[op].stream == program::Stream::kCompute &&
           shape.program->calls[shape.resolution->call_of[op]].tag.pass == program::Pass::kOptimizer;
  }
  return exposed_on(shape.ops[op].stream) == free_exposed_;
}

Duration AloneTimes::jittered(Duration alone, std::uint32_t subject, bool communication) const {
  const JitterOptions& j = options_.jitter->options;
  const double sigma = communication ? j.communication_sigma : j.compute_sigma;
  if (sigma == 0 || alone.ps == 0) return alone;
  const RandomStream stream(j.seed, communication ? "jitter.communication" : "jitter.compute");
  const double z = stream.normal_at((options_.jitter->sample << 32) + subject);
  return duration_rounded_up(alone.seconds() * std::exp(sigma * z));
}

}  // namespace stepcast::sim
