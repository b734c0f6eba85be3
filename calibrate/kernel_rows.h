// Measured kernels as rows of a table: what of a table of matmuls or of fused attention can be fitted, and why the rest
// cannot.
//
// Columns of matmuls: source, gpu, dtype, M, N, K, layout, time_us, note. "accumulate=True" in a note says that the
// product was added to its output, "out=fp32" that this has 4 bytes an element. Columns of attention: source, gpu,
// impl, pass, seq, batch, heads, head_dim, v_head_dim, causal, tflops, note. FLOPs are 4 s^2 d heads batch forward,
// half of that under the causal mask, and 2.5 times as many backward; a `causal` that says "non-causal FLOP count"
// counts the masked half too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibrate/table.h"
#include "sim/cost/kernel_time.h"

namespace stepcast::calibrate {

struct MatmulRow {
  sim::MatmulShape shape;  // 16-bit operands; FLOPs and bytes are those of the shape
  double seconds = 0;
  int line = 0;
};

struct AttentionRow {
  std::string kernel;  // "FA3 fwd": the implementation and the pass
  double head_dim = 0;
  double keys = 0;      // that a query sees in the mean
  double tiles = 0;     // heads x sequences x tiles of 128 queries
  bool masked = false;  // causally
  double rate = 0;      // FLOP/s, not counting what is masked
  int line = 0;
};

// Rows of one device, in the table's order; `sources` are those of the rows taken, `skipped` counts others by reason.
template <class Row>
struct KernelRows {
  std::string file;
  std::vector<Row> rows;
  std::vector<std::string> sources;
  std::map<std::string, int> skipped;
};

// What a table is of, by its columns.
enum class KernelTable { kMatmul, kAttention };
// Throws Error (kInput) for a table that is neither, kUnsupported for one of collectives.
KernelTable kind_of(const Table& table);

// `gpu` as the table's column has it, in full. Throws Error (kInput) with file, line and column for what is not a
// number, or not above zero, and for a device that the table does not have, with those that it has.
KernelRows<MatmulRow> read_matmul_rows(const Table& table, const std::string& gpu);
KernelRows<AttentionRow> read_attention_rows(const Table& table, const std::string& gpu);

}  // namespace stepcast::calibrate
