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

nlohmann::json first_of(const std::string& arguments) {
  const ProgramRun run = stepcast(arguments + " --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return nlohmann::json::parse(run.out).at("other_gradients").at(0);
}

// Two stages of one layer each, with the embedding or the head: 4 bytes of h(2h + 2kv) + 3fh + 2h and V h parameters, h
// 4096, kv 1024, f 14336, V 128256, and h more of the final norm on the second one, in fp32.
TEST(Gradients, AreKeptWholeInAPipelineAndSaidSo) {
  const nlohmann::json kept = first_of(kTorchtitan + "--pp 2");
  EXPECT_EQ(kept.at("name"), "unsharded_gradients*");
  const std::int64_t h = 4096;
  const std::int64_t stage = h * (2 * h + 2 * 1024) + 3 * 14336 * h + 2 * h + 128256 * h;
  EXPECT_TRUE(kept.at("bytes") == 4 * stage || kept.at("bytes") == 4 * (stage + h)) << kept;
  const std::string screen = stepcast(kTorchtitan + "--pp 2").out;
  EXPECT_NE(screen.find("\ngrads"), std::string::npos) << screen;
  EXPECT_NE(screen.find("unsharded_gradients* 2.8 GiB (whole, until the"), std::string::npos) << screen;
}

// Reduced every microbatch: two units' at most, of which the largest has V h + h parameters.
TEST(Gradients, AreThoseOfTwoUnitsWithoutAPipeline) {
  const nlohmann::json ring = first_of(kTorchtitan);
  EXPECT_EQ(ring.at("name"), "gradient_ring*");
  EXPECT_LE(ring.at("bytes"), 2 * 4 * std::int64_t{128256 + 1} * 4096);
}

}  // namespace
}  // namespace stepcast::cli
