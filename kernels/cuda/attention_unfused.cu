// The matmuls of attention as stacks without a fused kernel run it, on materialised scores and probabilities
// (cpu/attention_unfused.cc): products of strided matrices, one for each (sequence, head), or for each (sequence, kv
// head) where query heads that share it are summed over.
#include "kernels/cpu/attention_layout.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/product.h"

namespace stepcast::kernels::cuda {
namespace {

using Layout = cpu::AttentionLayout;

void check_scores(const KernelContext& context, std::size_t position, const Layout& at) {
  const std::int64_t elements = operand(context, position).type.shape.elements();
  CHECK(elements == at.batch * at.heads * at.sequence * at.sequence, position, elements, at.batch, at.heads);
}

// Positions of a head in rows of `width`, as the outer side of a factor or as its depth.
template <class S>
Factor<S> by_position(const S* rows, std::int64_t width, const Layout& at, std::int64_t shared) {
  return {rows, at.batch * width, 1, {width, at.dim, shared}};
}
template <class S>
Factor<S> by_channel(const S* rows, std::int64_t width, const Layout& at, std::int64_t shared) {
  return {rows, 1, at.batch * width, {width, at.dim, shared}};
}

// One matrix for each (sequence, head).
MatrixPlace score_place(const Layout& at) {
  return {at.heads * at.sequence * at.sequence, at.sequence * at.sequence, 1};
}

// [s, s] of every head: left and right are rows of `dim` channels.
template <class S>
Product<S, S> scores_product(const Layout& at, const Factor<S>& left, const Factor<S>& right, S* scores) {
  Product<S, S> product;
  product.left = left;
  product.right = right;
  product.result = scores;
  product.row_stride = at.sequence;
  product.place = score_place(at);
  product.rows = product.columns = at.sequence;
  product.depth = at.dim;
  product.sequences = at.batch;
  product.heads = at.heads;
  return product;
}

// [s, dim] of every head: mixtures of right's rows, by row i of the scores.
template <class S>
Product<S, S> mixture_product(const Layout& at, const S* scores, const Factor<S>& right, S* rows, std::int64_t width) {
  Product<S, S> product;
  product.left = {scores, at.sequence, 1, score_place(at)};
  product.right = right;
  product.result = rows;
  product.row_stride = at.batch * width;
  product.place = {width, at.dim, 1};
  product.rows = at.sequence;
  product.columns = at.dim;
  product.depth = at.sequence;
  product.sequences = at.batch;
  product.heads = at.heads;
  return product;
}

// [s, dim] of every kv head: by column j of the scores, summed over the query heads that share it, whose rows are
// `queries`.
template <class S>
Product<S, S> shared_product(const Layout& at, const S* scores, const S* queries, std::int64_t queries_width, S* rows) {
  Product<S, S> product = mixture_product(at, scores, by_channel(queries, queries_width, at, 1), rows, at.width());
  product.left.outer = 1;
  product.left.depth = at.sequence;
  product.left.place.by_head *= at.group();
  product.left.part = at.sequence * at.sequence;
  product.right.place.by_head *= at.group();
  product.right.part = at.dim;
  product.heads = at.kv_heads;
  product.parts = at.group();
  return product;
}

template <class S>
__global__ void clear(S* data, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) data[i] = narrow<S>(0.0F);
}

template <class S>
Layout layout_of(const KernelContext& context, const Rows<S>& qkv, std::size_t scores) {
  const Layout at = cpu::attention_layout(context, qkv.count, qkv.width);
  check_scores(context, scores, at);
  return at;
}

}  // namespace

void attention_scores_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto qkv = rows<S>(context, 0);
    const Layout at = layout_of(context, qkv, 1);
    auto product =
        scores_product<S>(at, by_position<S>(qkv.data, qkv.width, at, 1),
                          by_position<S>(qkv.data + at.key(0), qkv.width, at, at.group()), rows<S>(context, 1).data);
    product.scale = cpu::scale_of<float>(at);
    launch_product(context, product);
  });
}

void attention_scores_backward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const S* dscores = rows<S>(context, 0).data;
    const auto qkv = rows<S>(context, 1);
    const auto dqkv = rows<S>(context, 2);
    const Layout at = layout_of(context, qkv, 0);
    CHECK(dqkv.size() == qkv.size(), dqkv.size(), qkv.size());
    auto dqueries = mixture_product<S>(at, dscores, by_channel<S>(qkv.data + at.key(0), qkv.width, at, at.group()),
                                       dqkv.data, dqkv.width);
    auto dkeys = shared_product<S>(at, dscores, qkv.data, qkv.width, dqkv.data + at.key(0));
    for (Product<S, S>* product : {&dqueries, &dkeys}) {
      product->add = true;
      product->scale = cpu::scale_of<float>(at);
      launch_product(context, *product);
    }
  });
}

void attention_context_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto qkv = rows<S>(context, 1);
    const auto out = rows<S>(context, 2);
    const Layout at = layout_of(context, qkv, 0);
    CHECK(out.count == qkv.count && out.width == at.heads * at.dim, out.count, out.width);
    launch_product(context, mixture_product<S>(at, rows<S>(context, 0).data,
                                               by_channel<S>(qkv.data + at.value(0), qkv.width, at, at.group()),
                                               out.data, out.width));
  });
}

void attention_context_backward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto dout = rows<S>(context, 0);
    const S* probabilities = rows<S>(context, 1).data;
    const auto qkv = rows<S>(context, 2);
    const auto dqkv = rows<S>(context, 4);
    const Layout at = layout_of(context, qkv, 1);
    check_scores(context, 3, at);
    CHECK(dqkv.size() == qkv.size() && dout.count == qkv.count && dout.width == at.heads * at.dim, dout.count);
    launch_elements(context, dqkv.size(), &clear<S>, dqkv.data, dqkv.size());
    launch_product(context, scores_product<S>(at, by_position<S>(dout.data, dout.width, at, 1),
                                              by_position<S>(qkv.data + at.value(0), qkv.width, at, at.group()),
                                              rows<S>(context, 3).data));
    launch_product(context, shared_product<S>(at, probabilities, dout.data, dout.width, dqkv.data + at.value(0)));
  });
}

}  // namespace stepcast::kernels::cuda
