// Attention and RotaryEmbedding.
#include <cmath>
#include <iterator>

#include "../model.h"
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

// How the queries of a block lie among the keys.
struct Places {
  Value offset;  // keys before the first query, which broadcasts to [batch, 1, queries, keys]; absent: none
  Value valid;   // keys that are no padding, [batch, 1, 1, 1]; absent: all
};

// Whether a query sees a key, which broadcasts to [batch, heads, queries, keys]. Absent: each sees all.
Value Seen(Builder& b, Node& n, const Value& q, const Value& k, const Places& places) {
  const auto count = [&](const Value& v) { return b.op("Range", {b.scalar(TW_INT64, 0), b.size(v, 2), b.scalar(TW_INT64, 1)}); };
  const Value key = b.unsqueeze(count(k), {0});
  Value seen;
  const auto add = [&](const Value& more) { seen = seen ? b.op("LogicalAnd", {seen, more}) : more; };
  if (places.valid) add(b.op("Less", {key, places.valid}));
  Value query = b.unsqueeze(count(q), {1});
  if (places.offset) query = b.op("AddV2", {query, places.offset});
  if (n.i("is_causal", 0) != 0) add(b.op("LessEqual", {key, query}));
  if (const int64_t left = n.i("left_window_size", -1); left >= 0)
    add(b.op("GreaterEqual", {key, b.op("Sub", {query, b.scalar(TW_INT64, double(left))})}));
  if (const int64_t right = n.i("right_window_size", -1); right >= 0)
    add(b.op("LessEqual", {key, b.op("AddV2", {query, b.scalar(TW_INT64, double(right))})}));
  return seen;
}

// 0 for truth and -infinity for falsehood.
Value Additive(Builder& b, const Value& seen, uint32_t dtype) {
  return b.op("SelectV2", {seen, b.scalar(dtype, 0), b.scalar(dtype, -INFINITY)});
}

// The mask as numbers to add. Keys behind the end of a mask that is shorter are not seen.
Value Mask(Builder& b, const Value& given, const Value& k, uint32_t dtype) {
  const Value mask = given.dtype() == TW_BOOL ? Additive(b, given, dtype) : b.cast(given, dtype);
  const int64_t own = mask.dim(-1), keys = k.dim(2);
  if (own == keys && own >= 0) return mask;
  if (own == 1 || mask.rank() < 1) return mask;
  const Value missing = b.op("Maximum", {b.op("Sub", {b.size(k, 2), b.size(mask, mask.rank() - 1)}), b.scalar(TW_INT64, 0)});
  const int64_t axes = mask.rank();
  const Value before = b.ints(std::vector<int64_t>(size_t(2 * axes - 1), 0));
  const Value pads = b.reshape(b.concat({before, b.unsqueeze(missing, {0})}, 0), Dims{axes, 2});
  return b.op("PadV2", {mask, pads, b.scalar(dtype, -INFINITY)});
}

// The shares of the keys. Rows without a key are 0.
Value Shares(Builder& b, const Value& scores) {
  const Value largest = b.op("Max", {scores, b.ints({-1}, TW_INT32)}, {{"keep_dims", true}});
  const Value any = b.op("Greater", {largest, b.like(scores, -INFINITY)});
  return b.op("SelectV2", {any, b.op("Softmax", {scores}), b.like(scores, 0)});
}

// The softmax's element type; by default that of the scores.
uint32_t SoftmaxType(Node& n, uint32_t dtype) {
  if (n.i("softmax_precision", 0) == 0) return dtype;
  const uint32_t wanted = DtypeOf(static_cast<int32_t>(n.i("softmax_precision")));
  if (!IsFloating(wanted)) n.fail(std::string("'softmax_precision' is ") + DtypeName(wanted) + ", which is no type of real numbers");
  return wanted;
}

void Attention(Builder& b, Node& n) {
  const bool flat = n.in(0).rank() == 3;
  const uint32_t dtype = n.in(0).dtype();
  const Value q = Heads(b, n, n.in(0), n.i("q_num_heads", 0));
  Value k = Heads(b, n, n.in(1), n.i("kv_num_heads", 0)), v = Heads(b, n, n.in(2), n.i("kv_num_heads", 0));
  if (n.has(4) != n.has(5)) n.fail("'past_key' and 'past_value' must be given together");
  if (n.has(4) && n.has(6)) n.fail("'past_key' and 'nonpad_kv_seqlen' must not be given together");
  Places places;
  if (n.has(4)) {
    k = b.concat({n.in(4), k}, 2);
    v = b.concat({n.in(5), v}, 2);
    places.offset = b.size(n.in(4), 2);
  } else if (n.has(6)) {
    places.valid = b.unsqueeze(b.cast(n.in(6), TW_INT64), {1, 2, 3});
    places.offset = b.op("Sub", {places.valid, b.size(q, 2)});
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
  const bool windows = n.i("left_window_size", -1) >= 0 || n.i("right_window_size", -1) >= 0;
  const bool triangle = n.i("is_causal", 0) != 0 && !places.offset && !windows;  // the kernel's own form
  const bool plain = cap == 0 && !n.wants(3) && scale != 0 && SoftmaxType(n, dtype) != TW_DOUBLE;
  Value mask = n.has(3) ? Mask(b, n.in(3), k, dtype) : Value();
  if (!plain || !triangle) {
    if (const Value seen = Seen(b, n, q, k, places)) {
      const Value hidden = Additive(b, seen, dtype);
      mask = mask ? b.op("AddV2", {mask, hidden}) : hidden;
    }
  }
  Value y;
  if (plain) {
    std::vector<Value> in = {q, k, v};
    if (mask) in.push_back(mask);
    y = b.op("ScaledDotProductAttention", in,
             {{"N", static_cast<int64_t>(in.size()) - 3},
              {"scale", scale},
              {"is_causal", triangle},
              {"U", Type{dtype == TW_DOUBLE ? TW_DOUBLE : TW_FLOAT}}});
  } else {
    const int64_t mode = n.i("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) n.fail("'qk_matmul_output_mode' is " + std::to_string(mode) + ", not 0 to 3");
    Value scores = b.op("BatchMatMulV2", {b.op("Mul", {q, b.like(q, scale)}), k}, {{"adj_y", true}});
    if (mode == 0) n.out(3, scores);
    if (cap != 0) scores = b.op("Mul", {b.op("Tanh", {b.op("RealDiv", {scores, b.like(scores, cap)})}), b.like(scores, cap)});
    if (mode == 1) n.out(3, scores);
    if (mask) scores = b.op("AddV2", {scores, mask});
    if (mode == 2) n.out(3, scores);
    const Value shares = b.cast(Shares(b, b.cast(scores, SoftmaxType(n, dtype))), dtype);
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

constexpr Entry kAttention[] = {
    {"Attention", 23, kLatest, &Attention},
    {"RotaryEmbedding", 23, kLatest, &RotaryEmbedding},
};

}  // namespace

Family AttentionTranslators() { return {std::begin(kAttention), std::end(kAttention)}; }

}  // namespace thalweg::onnx
