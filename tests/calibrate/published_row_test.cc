// Columns become values; what is missing, malformed or measured in another way.
#include "calibrate/published_row.h"

#include <gtest/gtest.h>

namespace stepcast::calibrate {
namespace {

const std::string kHeader =
    "id,source_short,gpu,num_gpus,precision,model,layers,hidden,ffn_hidden,heads,vocab,seq_len,global_batch_seqs,"
    "micro_batch_seqs,tp,pp,sp,dp,complete,excluded,step_time_s,derived_step_time_s,tokens_per_s_per_gpu,"
    "memory_gb_per_gpu,novel\n";
// Up to and with pp.
const std::string kStart = ",S,A100-SXM-80GB,16,bf16,llama2-7b,32,4096,11008,32,32000,2048,64,1,2,2,";

std::vector<MeasuredRun> runs_of(const std::string& rows) {
  return measured_runs(parse_table(kHeader + rows, "t.csv"));
}

Problem problem_of(const std::string& text) {
  try {
    measured_runs(parse_table(text, "t.csv"));
  } catch (const Error& error) {
    return error.problems()[0];
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(PublishedRow, HasTheColumnsValues) {
  const MeasuredRun run = runs_of("a" + kStart + "yes,,yes,,2.5,,,40,x\n").at(0);
  EXPECT_EQ(run.row.id, "a");
  EXPECT_EQ(run.row.gpus, 16);
  EXPECT_EQ(run.row.ffn, 11008);
  EXPECT_EQ(run.row.kv_heads, 32);  // as many as heads, where the table has no such column
  EXPECT_EQ(run.row.vp, 1);
  EXPECT_EQ(run.row.cp, 1);
  EXPECT_EQ(run.row.dp, 4);  // 16 / (2 * 2)
  EXPECT_TRUE(run.row.sequence_parallel);
  EXPECT_EQ(run.row.unusable, "");
  EXPECT_EQ(run.measured.step_time_s, 2.5);
  EXPECT_EQ(run.measured.memory_bytes, std::int64_t{40} << 30);
}

// 64 sequences of 2,048 tokens on 16 GPUs at 4,096 tokens/s each are 131,072 / 65,536 = 2 s.
TEST(PublishedRow, TakesTheDerivedTimeThenTheStatedOneThenTheRate) {
  EXPECT_EQ(runs_of("a" + kStart + ",,,,2.5,1.5,4096,,\n").at(0).measured.step_time_s, 1.5);
  EXPECT_EQ(runs_of("a" + kStart + ",,,,2.5,,4096,,\n").at(0).measured.step_time_s, 2.5);
  EXPECT_EQ(runs_of("a" + kStart + ",,,,,,4096,,\n").at(0).measured.step_time_s, 2.0);
}

TEST(PublishedRow, SaysWhyItIsUnusable) {
  EXPECT_EQ(runs_of("a" + kStart + ",,no,,2.5,,,,\n").at(0).row.unusable, "the table marks it incomplete");
  EXPECT_EQ(runs_of("a" + kStart + ",,yes,a stall,2.5,,,,\n").at(0).row.unusable, "excluded by the table: a stall");
  EXPECT_EQ(runs_of("a" + kStart + ",,yes,,,,,,\n").at(0).row.unusable, "no measured step time");
  EXPECT_EQ(
      runs_of("a,S,A100-SXM-80GB,16,bf16,llama2-7b,32,4096,11008,32,,2048,64,,2,2,,,yes,,2.5,,,,\n").at(0).row.unusable,
      "the source does not state vocab, micro_batch_seqs");
}

TEST(PublishedRow, RefusesWhatIsNoNumberWithItsPlace) {
  const Problem word = problem_of(kHeader + "a" + kStart + ",two,yes,,2.5,,,,\n");
  EXPECT_EQ(word.where.line, 2);
  EXPECT_EQ(word.where.field, "dp");
  EXPECT_EQ(problem_of(kHeader + "a" + kStart + ",0,yes,,2.5,,,,\n").where.field, "dp");
  EXPECT_EQ(problem_of(kHeader + "a" + kStart + ",1.5,yes,,2.5,,,,\n").where.field, "dp");
  EXPECT_EQ(problem_of(kHeader + "a" + kStart + ",1048577,yes,,2.5,,,,\n").where.field, "dp");
  EXPECT_EQ(problem_of(kHeader + "a" + kStart + "maybe,,yes,,2.5,,,,\n").where.field, "sp");
  EXPECT_EQ(problem_of(kHeader + "a" + kStart + ",,yes,,-1,,,,\n").where.field, "step_time_s");
}

TEST(PublishedRow, RefusesTwoRowsOfOneIdAndMissingColumns) {
  const std::string row = "a" + kStart + ",,yes,,2.5,,,,\n";
  const Problem twice = problem_of(kHeader + row + row);
  EXPECT_EQ(twice.where.line, 3);
  EXPECT_EQ(twice.message, "id 'a' is also that of line 2");
  EXPECT_NE(problem_of("id,gpu,step_time_s\n").message.find("source_short, num_gpus"), std::string::npos);
  EXPECT_NE(problem_of("id,source_short,gpu,num_gpus,precision,model,layers,hidden,ffn_hidden,heads,vocab,seq_len,"
                       "global_batch_seqs,micro_batch_seqs,tp,pp\n")
                .message.find("no column with a measured time"),
            std::string::npos);
}

}  // namespace
}  // namespace stepcast::calibrate
