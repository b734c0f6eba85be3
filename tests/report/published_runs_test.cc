// The table of published runs reads strictly and is embedded.
#include "report/published_runs.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stepcast::report {
namespace {

TEST(PublishedRuns, EmbedsTheRunOfLlama8bOnEightH100) {
  // NVIDIA/dgxc-benchmarking llama3.1/README.md @85380ff, "Llama 3.1 8b BF16", 8x H100: 12.27 s per step.
  const std::vector<PublishedRun> runs = published_runs();
  ASSERT_FALSE(runs.empty());
  EXPECT_EQ(runs[0].id, "dgxc-001");
  EXPECT_EQ(runs[0].model, "llama-3.1-8b");
  EXPECT_EQ(runs[0].gpus, 8);
  EXPECT_EQ(runs[0].cp, 2);
  EXPECT_EQ(runs[0].step_time_s, 12.27);
}

TEST(PublishedRuns, NamesTheLineOfABadRow) {
  const std::string header =
      "id,model,parameters,gpu,gpus,tp,cp,pp,dp,precision,global_batch_size,sequence_length,step_time_s,source\n";
  for (const char* row : {"a,m,7,g,8,1,2,1,4,bf16,128,8192,12.27\n", "a,m,7,g,8,1,2,1,4,bf16,128,8192,fast,s\n",
                          "a,m,7,g,0,1,2,1,4,bf16,128,8192,12.27,s\n", "a,m,7,g,8x,1,2,1,4,bf16,128,8192,12.27,s\n"}) {
    try {
      parse_published_runs(header + row, "runs.csv");
      FAIL() << row;
    } catch (const Error& error) {
      EXPECT_EQ(error.problems()[0].where.line, 2);
      EXPECT_EQ(error.problems()[0].where.file, "runs.csv");
    }
  }
  EXPECT_THROW(parse_published_runs("id,model\n", "runs.csv"), Error);
}

}  // namespace
}  // namespace stepcast::report
