// Ops that reduce axes, search along them or accumulate over them.
#include <algorithm>

#include "table.h"

namespace thalweg::cli::onnx {
namespace {

Name Reduced(Op& o, const char* twin, const Name& x, const Name& axes) {
  return o.net.Add(twin, {x, axes}, {{"keepdims", int64_t{o.b("keep_dims")}}, {"noop_with_empty_axes", int64_t{1}}});
}

// An image with channels first is reduced in that form if the result has it too, or has only batch and channels left.
bool ReduceFirst(Op& o, const char* twin) {
  const std::optional<Sizes> axes = o.ints(1);
  if (!axes || !o.prefers_first(0)) return false;
  const int32_t rank = o.known_rank(0);
  const Sizes order = ToLast(rank);
  std::vector<bool> gone(size_t(rank), false);
  Sizes moved;
  for (const int64_t axis : *axes) {
    const int64_t own = axis < 0 ? axis + rank : axis;
    if (own < 0 || own >= rank) return false;
    gone[size_t(own)] = true;
    moved.push_back(order[size_t(own)]);
  }
  const bool positions = !gone[0] && !gone.back() && std::all_of(gone.begin() + 1, gone.end() - 1, [](bool g) { return g; });
  if (!o.b("keep_dims") && !positions) return false;
  const Name y = Reduced(o, twin, o.first(0), o.net.Ints(moved));
  o.b("keep_dims") ? o.out_first(0, y) : o.out(0, y);
  return true;
}

void Reduce(Op& o, const char* twin) {
  if (!ReduceFirst(o, twin)) o.out(0, Reduced(o, twin, o.in(0), o.vector(1)));
}

void ReduceBool(Op& o, const char* twin) { o.out(0, o.net.Cast(Reduced(o, twin, o.net.Cast(o.in(0), TW_INT32), o.vector(1)), TW_BOOL)); }

void Arg(Op& o, const char* twin) {
  const Sizes axis = o.known_ints(1, "the axis");
  const Name y = o.net.Add(twin, {o.in(0)}, {{"axis", axis.at(0)}, {"keepdims", int64_t{0}}});
  o.out(0, o.type("output_type") == TW_INT64 ? y : o.net.Cast(y, o.type("output_type")));
}

void TopK(Op& o, const char*) {
  const auto y = o.net.AddMany("TopK", {o.in(0), o.vector(1)}, 2, {{"sorted", int64_t{o.b("sorted")}}});
  o.out(0, y[0]);
  o.out(1, o.out_dtype(1) == TW_INT64 ? y[1] : o.net.Cast(y[1], o.out_dtype(1)));
}

void CumSum(Op& o, const char*) {
  o.out(0, o.net.Add("CumSum", {o.in(0), o.in(1)}, {{"exclusive", int64_t{o.b("exclusive")}}, {"reverse", int64_t{o.b("reverse")}}}));
}

void Softmax(Op& o, const char* twin) { o.out(0, o.net.Add(twin, {o.in(0)}, {{"axis", int64_t{-1}}})); }

constexpr Translator kTable[] = {
    {"All", ReduceBool, "ReduceMin"},
    {"Any", ReduceBool, "ReduceMax"},
    {"ArgMax", Arg, "ArgMax"},
    {"ArgMin", Arg, "ArgMin"},
    {"Cumsum", CumSum},
    {"LogSoftmax", Softmax, "LogSoftmax"},
    {"Max", Reduce, "ReduceMax"},
    {"Mean", Reduce, "ReduceMean"},
    {"Min", Reduce, "ReduceMin"},
    {"Prod", Reduce, "ReduceProd"},
    {"Softmax", Softmax, "Softmax"},
    {"Sum", Reduce, "ReduceSum"},
    {"TopKV2", TopK},
};

}  // namespace

std::span<const Translator> ReductionTranslators() { return kTable; }

}  // namespace thalweg::cli::onnx
