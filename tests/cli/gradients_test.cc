// What a simulation says of gradients that stand beside their sum.
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

const std::string kTorchtitan =
    "simulate llama-3.1-8b --cluster hgx-h100 --gpus 8 --seq 4096 --gbs 16 --set model.num_hidden_layers=2 "
    "--set framework=torchtitan ";

nlohmann::json answer_to(const std::string& arguments) {
  const ProgramRun run = stepcast(arguments + " --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return nlohmann::json::parse(run.out);
}

// Two stages of one layer each, with the embedding or the head. The peak is that of the second one, in the head: it
// has h(2h + 2kv) + 3fh + 2h parameters of the layer, V h of the head and h of the final norm, h 4096, kv 1024, f
// 14336, V 128256, whose gradients are kept in fp32.
TEST(Gradients, AreKeptWholeInAPipelineAndSaidSo) {
  const nlohmann::json answer = answer_to(kTorchtitan + "--pp 2");
  EXPECT_EQ(answer.at("memory").at("peak_at").at("stage"), 1);
  const nlohmann::json kept = answer.at("other_gradients").at(0);
  EXPECT_EQ(kept.at("name"), "unsharded_gradients*");
  const std::int64_t h = 4096;
  EXPECT_EQ(kept.at("bytes"), 4 * (h * (2 * h + 2 * 1024) + 3 * 14336 * h + 2 * h + 128256 * h + h));
  const std::string screen = stepcast(kTorchtitan + "--pp 2").out;
  EXPECT_NE(screen.find("\ngrads"), std::string::npos) << screen;
  EXPECT_NE(screen.find("unsharded_gradients* 2.8 GiB (whole, until the"), std::string::npos) << screen;
}

// Reduced every microbatch, from a ring of two buffers (prefetch 1), each of the largest unit: head and final norm have
// V h + h parameters.
TEST(Gradients, AreThoseOfTwoUnitsWithoutAPipeline) {
  const nlohmann::json ring = answer_to(kTorchtitan).at("other_gradients").at(0);
  EXPECT_EQ(ring.at("name"), "gradient_ring*");
  EXPECT_EQ(ring.at("bytes"), 2 * 4 * std::int64_t{128256 + 1} * 4096);
}

}  // namespace
}  // namespace stepcast::cli
