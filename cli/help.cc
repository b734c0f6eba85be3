// Texts only.
#include "cli/help.h"

namespace stepcast::cli {

std::string_view orientation() {
  return R"(stepcast: how long a training step takes on many accelerators, whether it fits, and the plan run for real.

  simulate SCENARIO   predict step time, throughput, MFU and memory of a plan, on this machine, without accelerators
  sweep SCENARIO --vary plan.tp=1,2,4   the same of every combination; diff A B: what makes two plans differ
  check SCENARIO      every broken rule of the plan and what would fix it; --show-config: where each value comes from
  run SCENARIO        execute the plan for real on this machine; --reference compares it with one rank
  coll OP             what a collective takes on a cluster, in the columns of nccl-tests
  hardware, models, calibrations [NAME], explain TERM   every figure with its source; dump SCENARIO: the Program as text
  backtest TABLE.csv  predicts runs that others published, and says how far off it is
  import FORMAT FILE  a scenario from a Megatron script, torchtitan TOML, nanotron YAML or DeepSpeed JSON
  doctor              what this machine can do, and what would let it do the rest

Try
  stepcast simulate scenarios/runs/llama-3.1-8b-h100x8.yaml
  stepcast simulate llama-3.1-8b --cluster hgx-h100 --gpus 8 --seq 8192 --gbs 128 --tp 2 --pp 2
  stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend cpu --reference

stepcast help COMMAND explains a command, stepcast help exit-codes what a script can rely on.
)";
}

std::string_view exit_codes() {
  return R"(0    ok
1    the subject fails: does not fit, breaks a rule under check, differs from the reference
2    usage: unknown command or option
3    bad input: unreadable, malformed, or a plan its framework refuses
4    known, not supported yet
5    this machine lacks what was asked
6    a real run failed
70   a bug in stepcast
130  interrupted
)";
}

}  // namespace stepcast::cli
