// Attention and RotaryEmbedding.
#include <cmath>
#include <iterator>

#include "table.h"

namespace thalweg::onnx {
namespace {

// Sizes of leading axes of v, then others, of which one may be -1.
Value Shaped(Builder& b, const Value& v, const std::vector<int>& kept, const std::vector<int64_t>& rest) {
  std::vector<Value> parts;
  for (const int axis : kept) parts.push_back(b.unsqueeze(b.size(v, axis), {0}));
  parts.push_back(b.ints(rest));
  return b.concat(parts, 0);
}

// [batch, rows, heads size] becomes [batch, heads, rows, size]; values of rank 4 have that form.
Value Heads(Builder& b, Node& n, const Value& v, int64_t heads) {
  if (v.rank() == 4) return v;
  if (v.rank() != 3) n.fail("query, key and value need rank 3 or 4, not " + std::to_string(v.rank()));
  if (heads < 1) n.fail("'q_num_heads' and 'kv_num_heads' are needed for inputs of rank 3");
  const int64_t width = v.dim(2);
  if (width >= 0 && width % heads)
    n.fail("a width of " + std::to_string(width) + " cannot be divided among " + std::to_string(heads) + " heads");
  return b.transpose(b.reshape(v, Shaped(b, v, {0, 1}, {heads, width >= 0 ? width / heads : -1})), {0, 2, 1, 3});
}

// Each head `times` times, one after the other.
Value Repeated(Builder& b, const Value& v, int64_t times) {
  if (times == 1) return v;
  const Value one = b.unsqueeze(v, {2});
  Value many = b.op("Tile", {one, b.ints({1, 1, times, 1, 1})});
  return b.reshape(many, b.concat({b.unsqueeze(b.size(v, 0), {0}), b.ints({v.dim(1) * times}), b.unsqueeze(b.size(v, 2), {0}),
                                   b.unsqueeze(b.size(v, 3), {0})},
                                  0));
}

// 0 where a query sees a key, -infinity where it does not: query i sees keys up to i + past.
Value Causal(Builder& b, const Value& q, const Value& k, const Value& past, uint32_t dtype) {
  const auto places = [&](const Value& v) { return b.op("Range", {b.scalar(TW_INT64, 0), b.size(v, 2), b.scalar(TW_INT64, 1)}); };
  Value rows = b.unsqueeze(places(q), {1});
  if (past) rows = b.op("AddV2", {rows, b.size(past, 2)});
  const Value sees = b.op("LessEqual", {b.unsqueeze(places(k), {0}), rows});
  return b.op("SelectV2", {sees, b.scalar(dtype, 0), b.scalar(dtype, -INFINITY)});
}

void Attention(Builder& b, Node& n) {
  const bool flat = n.in(0).rank() == 3;
  const uint32_t dtype = n.in(0).dtype();
  const Value q = Heads(b, n, n.in(0), n.i("q_num_heads", 0));
  Value k = Heads(b, n, n.in(1), n.i("kv_num_heads", 0)), v = Heads(b, n, n.in(2), n.i("kv_num_heads", 0));
  if (n.has(6)) n.unsupported("'nonpad_kv_seqlen'");
  const Value past = n.maybe(4);
  if (n.has(4) != n.has(5)) n.fail("'past_key' and 'past_value' must be given together");
  if (past) {
    k = b.concat({n.in(4), k}, 2);
    v = b.concat({n.in(5), v}, 2);
  }
  n.out(1, k);
  n.out(2, v);
  const int64_t heads = q.dim(1), own = k.dim(1);
  if (heads < 0 || own < 1) n.unsupported("the number of heads is unknown");
  if (heads % own) n.fail(std::to_string(heads) + " heads of queries cannot share " + std::to_string(own) + " heads of keys");
  k = Repeated(b, k, heads / own);
  v = Repeated(b, v, heads / own);
  const int64_t size = q.dim(3);
  if (size < 1 && !n.has_attr("scale")) n.unsupported("the size of a head is unknown");
  const double scale = n.f("scale", 1 / std::sqrt(static_cast<double>(size))), cap = n.f("softcap", 0);
  const bool causal = n.i("is_causal", 0) != 0;
  Value mask;
  if (n.has(3)) {
    mask = n.in(3);
    mask = mask.dtype() == TW_BOOL ? b.op("SelectV2", {mask, b.scalar(dtype, 0), b.scalar(dtype, -INFINITY)}) : b.cast(mask, dtype);
  }
  Value y;
  const bool plain = cap == 0 && !n.wants(3) && scale != 0 && (!causal || !past);
  if (plain) {
    std::vector<Value> in = {q, k, v};
    if (mask) in.push_back(mask);
    y = b.op("ScaledDotProductAttention", in,
             {{"N", static_cast<int64_t>(in.size()) - 3},
              {"scale", scale},
              {"is_causal", causal},
              {"U", Type{dtype == TW_DOUBLE ? TW_DOUBLE : TW_FLOAT}}});
  } else {
    const int64_t mode = n.i("qk_matmul_output_mode", 0);
    if (causal) {
      const Value hidden = Causal(b, q, k, past, dtype);
      mask = mask ? b.op("AddV2", {mask, hidden}) : hidden;
    }
    Value scores = b.op("BatchMatMulV2", {b.op("Mul", {q, b.like(q, scale)}), k}, {{"adj_y", true}});
    if (mode == 0) n.out(3, scores);
    if (mode < 0 || mode > 3 || (n.wants(3) && (mode == 1 || mode == 2) && cap != 0 && mask))
      n.unsupported("'qk_matmul_output_mode' " + std::to_string(mode));
    if (cap != 0) scores = b.op("Mul", {b.op("Tanh", {b.op("RealDiv", {scores, b.like(scores, cap)})}), b.like(scores, cap)});
    if (mask) scores = b.op("AddV2", {scores, mask});
    if (mode == 1 || mode == 2) n.out(3, scores);
    const Value shares = b.op("Softmax", {scores});
    if (mode == 3) n.out(3, shares);
    y = b.op("BatchMatMulV2", {shares, v});
  }
  if (flat) y = b.reshape(b.transpose(y, {0, 2, 1, 3}), Shaped(b, n.in(0), {0, 1}, {-1}));
  n.out(0, y);
}

// Elements begin, begin + step, ... of the last axis, up to `end`; 0: the end.
Value Last(Builder& b, const Value& v, int64_t begin, int64_t end, int64_t step) {
  const auto axis = static_cast<size_t>(v.rank()) - 1;
  std::vector<int64_t> from(axis + 1, 0), to(axis + 1, 0), by(axis + 1, 1);
  from[axis] = begin;
  to[axis] = end;
  by[axis] = step;
  const int64_t others = (int64_t{1} << axis) - 1;
  return b.op("StridedSlice", {v, b.ints(from), b.ints(to), b.ints(by)},
              {{"begin_mask", others}, {"end_mask", end == 0 ? others | (int64_t{1} << axis) : others}});
}

void RotaryEmbedding(Builder& b, Node& n) {
  Value x = n.in(0);
  const bool flat = x.rank() == 3;
  if (flat) {  // [batch, rows, heads, size]
    const int64_t heads = n.i("num_heads", 0);
    if (heads < 1) n.fail("'num_heads' is needed for an input of rank 3");
    x = b.reshape(x, Shaped(b, x, {0, 1}, {heads, x.dim(2) >= 0 ? x.dim(2) / heads : -1}));
  } else {
    if (x.rank() != 4) n.fail("the input has rank " + std::to_string(x.rank()) + ", not 3 or 4");
    x = b.transpose(x, {0, 2, 1, 3});
  }
  int64_t size = n.i("rotary_embedding_dim", 0);
  const int64_t whole = x.dim(3);
  if (size == 0) size = whole;
  if (size < 1) n.unsupported("the size of a head is unknown");
  Value cosines = n.in(1), sines = n.in(2);
  if (n.has(3)) {
    cosines = b.op("GatherV2", {cosines, n.in(3), b.scalar(TW_INT32, 0)});
    sines = b.op("GatherV2", {sines, n.in(3), b.scalar(TW_INT32, 0)});
  }
  cosines = b.unsqueeze(cosines, {2});
  sines = b.unsqueeze(sines, {2});
  const Value turned = size == whole ? x : Last(b, x, 0, size, 1);
  const bool pairs = n.i("interleaved", 0) != 0;
  const Value first = pairs ? Last(b, turned, 0, 0, 2) : Last(b, turned, 0, size / 2, 1);
  const Value second = pairs ? Last(b, turned, 1, 0, 2) : Last(b, turned, size / 2, 0, 1);
  const Value real = b.op("Sub", {b.op("Mul", {first, cosines}), b.op("Mul", {second, sines})});
  const Value imaginary = b.op("AddV2", {b.op("Mul", {first, sines}), b.op("Mul", {second, cosines})});
  Value y = pairs ? b.reshape(b.op("Pack", {real, imaginary}, {{"axis", -1}}), b.shape(turned)) : b.concat({real, imaginary}, 3);
  if (size != whole) y = b.concat({y, Last(b, x, size, 0, 1)}, 3);
  n.out(flat ? b.reshape(y, b.shape(n.in(0))) : b.transpose(y, {0, 2, 1, 3}));
}

constexpr Entry kEntries[] = {
    {"Attention", 23, kLatest, &Attention},
    {"RotaryEmbedding", 23, kLatest, &RotaryEmbedding},
};

}  // namespace

Family AttentionTranslators() { return {std::begin(kEntries), std::end(kEntries)}; }

}  // namespace thalweg::onnx
