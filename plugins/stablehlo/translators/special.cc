// Composites and CHLO's ops. A composite whose name stands for an op of ours uses that op; every other one uses its decomposition.
#include <iterator>
#include <string>

#include "common.h"
#include "elementwise.h"

namespace thalweg::stablehlo {
namespace {

struct Twin {
  const char* chlo;
  const char* ours;
  bool complex;  // ours also takes complex numbers
};

constexpr Twin kTwins[] = {
    {"chlo.acos", "Acos", true},        {"chlo.acosh", "Acosh", true}, {"chlo.asin", "Asin", true},       {"chlo.asinh", "Asinh", true},
    {"chlo.atan", "Atan", true},        {"chlo.atanh", "Atanh", true}, {"chlo.conj", "Conj", true},       {"chlo.cosh", "Cosh", true},
    {"chlo.digamma", "Digamma", false}, {"chlo.erf", "Erf", false},    {"chlo.erf_inv", "Erfinv", false}, {"chlo.erfc", "Erfc", false},
    {"chlo.lgamma", "Lgamma", false},   {"chlo.sinh", "Sinh", true},   {"chlo.square", "Square", true},   {"chlo.tan", "Tan", true},
};

const Twin* TwinOf(std::string_view name) {
  for (const Twin& twin : kTwins) {
    if (name == twin.chlo) return &twin;
  }
  return nullptr;
}

// The k largest elements of the last axis, the first of equals first. Real numbers stand in IEEE 754's total order, as in XLA: NaN is the
// largest, NaN with a sign the smallest, and 0 is larger than -0.
void Largest(Translation& t, Op& op, int64_t k) {
  const Value& x = op.in(0);
  const bool truth = IsBool(x);
  if (IsReal(x)) {
    const int last = RankOf(op, x) - 1;
    const Value places = t.ops("TopKV2", {TotalOrder(t, x), t.scalar(TW_INT32, static_cast<double>(k))},
                               {{"sorted", true}, {"index_type", Dtype{op.out_dtype(1)}}}, 2)[1];
    op.out(0, t.op("GatherV2", {x, places, t.scalar(TW_INT32, last)}, {{"batch_dims", last}}));
    return op.out(1, places);
  }
  const std::vector<Value> out = t.ops("TopKV2", {truth ? t.cast(x, TW_UINT8) : x, t.scalar(TW_INT32, static_cast<double>(k))},
                                       {{"sorted", true}, {"index_type", Dtype{op.out_dtype(1)}}}, 2);
  op.out(0, truth ? t.cast(out[0], TW_BOOL) : out[0]);
  op.out(1, out[1]);
}

void Twins(Translation& t, Op& op) {
  const Twin& twin = *TwinOf(op.name());
  const Value& x = op.in(0);
  if (op.name() == "chlo.conj" && !IsComplex(x)) return op.out(x);
  op.out(t.op(twin.ours, {x}));
}

void TopK(Translation& t, Op& op) { Largest(t, op, op.i("k")); }

void IsInf(Translation& t, Op& op) { op.out(t.op("IsInf", {op.in(0)})); }

void Composite(Translation& t, Op& op) {
  const std::string name = op.s("name");
  const Attribute* given = op.attr("composite_attributes");
  if (name == "chlo.top_k" && given && op.inputs() == 1 && op.outputs() == 2) {
    const Attribute* k = Find(given->fields, "k");
    if (k && k->kind == Attribute::Kind::kInteger) return Largest(t, op, k->integer);
  }
  const Twin* twin = TwinOf(name);
  if (twin && op.inputs() == 1 && op.outputs() == 1 && (IsReal(op.in(0)) || (twin->complex && IsComplex(op.in(0)))) &&
      op.in(0).dtype() == op.out_dtype() && (IsComplex(op.in(0)) || name != "chlo.conj")) {
    return op.out(t.op(twin->ours, {op.in(0)}));
  }
  const std::vector<Value> out = t.call(op, op.s("decomposition"), op.all());
  for (size_t i = 0; i < out.size(); ++i) op.out(i, out[i]);
}

constexpr Entry kSpecial[] = {
    {"chlo.acos", &Twins},
    {"chlo.acosh", &Twins},
    {"chlo.asin", &Twins},
    {"chlo.asinh", &Twins},
    {"chlo.atan", &Twins},
    {"chlo.atanh", &Twins},
    {"chlo.conj", &Twins},
    {"chlo.cosh", &Twins},
    {"chlo.digamma", &Twins},
    {"chlo.erf", &Twins},
    {"chlo.erf_inv", &Twins},
    {"chlo.erfc", &Twins},
    {"chlo.is_inf", &IsInf},
    {"chlo.lgamma", &Twins},
    {"chlo.sinh", &Twins},
    {"chlo.square", &Twins},
    {"chlo.tan", &Twins},
    {"chlo.top_k", &TopK},
    {"stablehlo.composite", &Composite},
};

}  // namespace

Family special_translators() { return {std::begin(kSpecial), std::end(kSpecial)}; }

}  // namespace thalweg::stablehlo
