// What is read of tables of kernels, and what is refused, with its place.
#include "calibrate/kernel_rows.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stepcast::calibrate {
namespace {

const std::string kMatmulHead = "source,gpu,dtype,M,N,K,layout,time_us,note\n";
const std::string kAttentionHead = "source,gpu,impl,pass,seq,batch,heads,head_dim,v_head_dim,causal,tflops,note\n";

TEST(KernelRows, MatmulHasItsShapesWorkAndTraffic) {
  // 2 x 10 x 20 x 30 FLOP; 2 (300 + 600) bytes read; the output of 4 bytes read and written.
  const Table table =
      parse_table(kMatmulHead + "s,A,bf16,10,20,30,NT,5,b=1 accumulate=True out=fp32\ns,B,bf16,1,1,1,,1,\n", "t.csv");
  EXPECT_EQ(kind_of(table), KernelTable::kMatmul);
  const KernelRows<MatmulRow> rows = read_matmul_rows(table, "A");
  ASSERT_EQ(rows.rows.size(), 1U);
  EXPECT_EQ(rows.rows[0].shape.flops, 12000);
  EXPECT_EQ(rows.rows[0].shape.bytes, 2 * 900 + 4 * 200 * 2);
  EXPECT_TRUE(rows.rows[0].shape.accumulates);
  EXPECT_DOUBLE_EQ(rows.rows[0].seconds, 5e-6);
  EXPECT_EQ(rows.sources, std::vector<std::string>{"s"});
}

TEST(KernelRows, MatmulsThatAreNoMeansOfKnownShapesAreCountedNotTaken) {
  const Table table = parse_table(kMatmulHead +
                                      "s,A,bf16,1,1,1,,1,MAMF maximum of many trials\n"
                                      "s,A,bf16-grouped,1,1,1,,1,\ns,A,fp8,1,1,1,,1,\ns,A,fp16,1,1,1,,1,\n",
                                  "t.csv");
  const KernelRows<MatmulRow> rows = read_matmul_rows(table, "A");
  EXPECT_EQ(rows.rows.size(), 1U);
  EXPECT_EQ(rows.skipped.size(), 3U);
}

TEST(KernelRows, AttentionCountsWhatIsNotMasked) {
  // 300 queries are 3 tiles of 128; 2 sequences of 4 heads have 24. Under the mask a query sees half of the keys; FLOPs
  // counted without the mask are twice those done.
  const Table table = parse_table(kAttentionHead +
                                      "s,A,X,fwd,300,2,4,64,64,True,100,\ns,A,X,fwd,300,2,4,64,64,False,100,\n"
                                      "s,A,X,bwd,300,2,4,192,128,\"causal model, non-causal FLOP count\",100,\n"
                                      "s,A,X,fwd,300,2,4,64,64,unstated,100,\n",
                                  "t.csv");
  EXPECT_EQ(kind_of(table), KernelTable::kAttention);
  const std::vector<AttentionRow> rows = read_attention_rows(table, "A").rows;
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].keys, 150);
  EXPECT_EQ(rows[1].keys, 300);
  EXPECT_TRUE(rows[0].masked);
  EXPECT_FALSE(rows[1].masked);
  EXPECT_EQ(rows[0].tiles, 24);
  EXPECT_EQ(rows[0].rate, 1e14);
  EXPECT_EQ(rows[2].rate, 5e13);
  EXPECT_EQ(rows[2].head_dim, 160);
  EXPECT_EQ(rows[2].kernel, "X bwd");
}

Location where_refused(const std::string& text) {
  try {
    const Table table = parse_table(text, "t.csv");
    if (kind_of(table) == KernelTable::kMatmul) read_matmul_rows(table, "A");
  } catch (const Error& error) {
    return error.problems()[0].where;
  }
  return {};
}

TEST(KernelRows, FaultsHaveFileLineAndColumn) {
  const Location time = where_refused(kMatmulHead + "s,A,bf16,1,1,1,,1,\ns,A,bf16,1,1,1,,-3,\n");
  EXPECT_EQ(time.file, "t.csv");
  EXPECT_EQ(time.line, 3);
  EXPECT_EQ(time.field, "time_us");
  EXPECT_EQ(where_refused(kMatmulHead + "s,A,bf16,1,2.5,1,,1,\n").field, "N");
  EXPECT_EQ(where_refused(kMatmulHead + "s,C,bf16,1,1,1,,1,\n").field, "gpu");
  EXPECT_EQ(where_refused("a,b\n1,2\n").line, 1);
}

TEST(KernelRows, CollectivesAreNotSupportedYet) {
  try {
    kind_of(parse_table("gpu,busbw_GBps\nA,1\n", "t.csv"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  }
}

}  // namespace
}  // namespace stepcast::calibrate
