// Vocabulary-parallel embedding: the holder with index i has rows [i*V, (i+1)*V) of the table. It gives zero for tokens
// of other holders, so that a sum over holders is the whole lookup (Megatron-LM, arXiv:1909.08053, section 3).
#include <algorithm>

#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

// Which tokens this holder has, and in which of its rows. Tokens beyond all holders are a broken contract.
class VocabularyRange {
 public:
  VocabularyRange(const KernelContext& context, std::int64_t local_rows)
      : begin_(context.index * local_rows), rows_(local_rows), total_(context.index_count * local_rows) {
    CHECK(context.index >= 0 && context.index < context.index_count, context.index, context.index_count);
  }
  bool holds(std::int32_t token) const {
    CHECK(token >= 0 && token < total_, token, total_);
    return token >= begin_ && token < begin_ + rows_;
  }
  std::int64_t local(std::int32_t token) const { return token - begin_; }

 private:
  std::int64_t begin_;
  std::int64_t rows_;
  std::int64_t total_;
};

template <class S>
void forward(const KernelContext& context) {
  const auto tokens = rows<std::int32_t>(context, 0);
  const auto table = rows<S>(context, 1);
  const auto out = rows<S>(context, 2);
  CHECK(tokens.size() == out.count && table.width == out.width, tokens.size(), out.count, table.width, out.width);
  const VocabularyRange range(context, table.count);
  for (std::int64_t t = 0; t < out.count; ++t) {
    const std::int32_t token = tokens.data[t];
    if (range.holds(token)) {
      std::copy_n(table[range.local(token)], out.width, out[t]);
    } else {
      std::fill_n(out[t], out.width, narrow<S>(0.0F));
    }
  }
}

template <class S, class G>
void backward(const KernelContext& context) {
  const auto tokens = rows<std::int32_t>(context, 0);
  const auto dout = rows<S>(context, 1);
  const auto dtable = rows<G>(context, 2);
  CHECK(tokens.size() == dout.count && dtable.width == dout.width, tokens.size(), dout.count, dtable.width, dout.width);
  const VocabularyRange range(context, dtable.count);
  for (std::int64_t t = 0; t < dout.count; ++t) {
    const std::int32_t token = tokens.data[t];
    if (!range.holds(token)) continue;
    G* row = dtable[range.local(token)];
    for (std::int64_t c = 0; c < dout.width; ++c) row[c] = narrow<G>(widen(row[c]) + widen(dout[t][c]));
  }
}

}  // namespace

void embedding_forward(const KernelContext& context) {
  for_storage(dtype(context, 2), [&]<class S>() { forward<S>(context); });
}

void embedding_backward(const KernelContext& context) {
  for_source_and_result(dtype(context, 1), dtype(context, 2), [&]<class S, class G>() { backward<S, G>(context); });
}

}  // namespace stepcast::kernels::cpu
