// Random values. A model's seed is a real number, which becomes the seed of our op; without one, every step draws other numbers.
#include <bit>
#include <iterator>

#include "../model.h"
#include "common.h"

namespace thalweg::onnx {
namespace {

Attrs Seeds(const Node& n, Attrs more = {}) {
  if (n.has_attr("seed")) {
    more.emplace_back("seed", static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(n.f("seed")))));
    more.emplace_back("seed2", 1);  // both seeds 0 would ask for other numbers in every step
  }
  return more;
}

uint32_t TypeOf(const Node& n, uint32_t otherwise) { return n.has_attr("dtype") ? DtypeOf(static_cast<int32_t>(n.i("dtype"))) : otherwise; }

Value Normal(Builder& b, const Node& n, const Value& shape, uint32_t type) {
  const Value drawn = b.op("RandomStandardNormal", {shape}, Seeds(n, {{"dtype", Type{type}}}));
  return b.op("AddV2", {b.op("Mul", {drawn, b.like(drawn, n.f("scale", 1))}), b.like(drawn, n.f("mean", 0))});
}

Value Uniform(Builder& b, const Node& n, const Value& shape, uint32_t type) {
  const Value drawn = b.op("RandomUniform", {shape}, Seeds(n, {{"dtype", Type{type}}}));
  const double low = n.f("low", 0), high = n.f("high", 1);
  return b.op("AddV2", {b.op("Mul", {drawn, b.like(drawn, high - low)}), b.like(drawn, low)});
}

void RandomNormal(Builder& b, Node& n) { n.out(Normal(b, n, b.ints(n.ints("shape")), TypeOf(n, TW_FLOAT))); }
void RandomUniform(Builder& b, Node& n) { n.out(Uniform(b, n, b.ints(n.ints("shape")), TypeOf(n, TW_FLOAT))); }
void RandomNormalLike(Builder& b, Node& n) { n.out(Normal(b, n, b.shape(n.in(0)), TypeOf(n, n.in(0).dtype()))); }
void RandomUniformLike(Builder& b, Node& n) { n.out(Uniform(b, n, b.shape(n.in(0)), TypeOf(n, n.in(0).dtype()))); }

void Multinomial(Builder& b, Node& n) {
  const uint32_t type = TypeOf(n, TW_INT32);
  n.out(b.op("Multinomial", {n.in(0), b.scalar(TW_INT32, static_cast<double>(n.i("sample_size", 1)))},
             Seeds(n, {{"output_dtype", Type{type}}})));
}

// Each element is 1 with the chance that the input gives, else 0.
void Bernoulli(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const Value drawn = b.op("RandomUniform", {b.shape(x)}, Seeds(n, {{"dtype", Type{x.dtype()}}}));
  n.out(b.cast(b.op("Less", {drawn, x}), TypeOf(n, x.dtype())));
}

// Outside of training the value passes. `training_mode` is an input since opset 12; before, an exported graph is not in training unless an
// attribute says so (`is_test`, up to opset 6).
void Dropout(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const uint32_t mask_type = n.opset < 10 ? x.dtype() : static_cast<uint32_t>(TW_BOOL);
  const Value training = n.opset >= 12 && n.has(2) ? ScalarOf(b, n.in(2)) : Value();
  const Tensor* known = training ? training.constant() : nullptr;
  if (!training || (known && known->integer(0) == 0)) {
    n.out(0, x);
    if (n.wants(1)) n.out(1, b.op("Fill", {b.shape(x), b.scalar(mask_type, 1)}));
    return;
  }
  const uint32_t type = x.dtype();
  const Value ratio = n.has(1) ? b.cast(ScalarOf(b, n.in(1)), type) : b.scalar(type, 0.5);
  const Value drawn = b.op("RandomUniform", {b.shape(x)}, Seeds(n, {{"dtype", Type{type}}}));
  const Value kept = b.op("GreaterEqual", {drawn, ratio});
  const Value scaled = b.op("RealDiv", {x, b.op("Sub", {b.scalar(type, 1), ratio})});
  const Value dropped = b.op("SelectV2", {kept, scaled, b.scalar(type, 0)});
  n.out(0, b.op("SelectV2", {training, dropped, x}));
  if (n.wants(1)) n.out(1, b.op("LogicalOr", {kept, b.op("LogicalNot", {training})}));
}

constexpr Entry kRandom[] = {
    {"Bernoulli", 15, kLatest, &Bernoulli},
    {"Dropout", 1, kLatest, &Dropout},
    {"Multinomial", 7, kLatest, &Multinomial},
    {"RandomNormal", 1, kLatest, &RandomNormal},
    {"RandomNormalLike", 1, kLatest, &RandomNormalLike},
    {"RandomUniform", 1, kLatest, &RandomUniform},
    {"RandomUniformLike", 1, kLatest, &RandomUniformLike},
};

}  // namespace

Family RandomTranslators() { return {std::begin(kRandom), std::end(kRandom)}; }

}  // namespace thalweg::onnx
