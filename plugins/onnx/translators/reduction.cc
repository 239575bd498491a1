// Reductions over axes, ArgMax and ArgMin.
#include <iterator>

#include "table.h"

namespace thalweg::onnx {
namespace {

// The axes of a reduction; absent if nothing is reduced. They became an input in opset 18, that of ReduceSum in opset 13.
Value AxesOf(Builder& b, Node& n, int since) {
  if (n.opset < since) {
    if (n.has_attr("axes") && !n.ints("axes").empty()) return b.ints(n.ints("axes"));
  } else if (n.has(1)) {
    if (!n.in(1).static_shape() || n.in(1).count() != 0) return n.in(1);
  }
  if (n.opset >= since && n.i("noop_with_empty_axes", 0)) return Value();
  const Value& x = n.in(0);
  if (x.rank() < 0) return b.op("Range", {b.scalar(TW_INT32, 0), b.op("Rank", {x}), b.scalar(TW_INT32, 1)});
  std::vector<int64_t> all;
  for (int i = 0; i < x.rank(); ++i) all.push_back(i);
  return b.ints(all);
}

Value Reduce(Builder& b, Node& n, const char* op, const Value& x, const Value& axes, bool keep) {
  (void)n;
  return b.op(op, {x, axes}, {{"keep_dims", keep}});
}

Value Reduce(Builder& b, Node& n, const char* op, const Value& x, const Value& axes) {
  return Reduce(b, n, op, x, axes, n.i("keepdims", 1) != 0);
}

template <const char* kOp, int kSince = 18>
void Plain(Builder& b, Node& n) {
  const Value axes = AxesOf(b, n, kSince);
  n.out(axes ? Reduce(b, n, kOp, n.in(0), axes) : n.in(0));
}
constexpr char kSum[] = "Sum", kMean[] = "Mean", kProd[] = "Prod";

// Max and Min; of truth values "any" and "all".
template <const char* kOp, const char* kOfBool>
void Extreme(Builder& b, Node& n) {
  const Value axes = AxesOf(b, n, 18);
  n.out(axes ? Reduce(b, n, n.in(0).dtype() == TW_BOOL ? kOfBool : kOp, n.in(0), axes) : n.in(0));
}
constexpr char kMax[] = "Max", kMin[] = "Min", kAny[] = "Any", kAll[] = "All";

void L1(Builder& b, Node& n) {
  const Value axes = AxesOf(b, n, 18), magnitude = b.op("Abs", {n.in(0)});
  n.out(axes ? Reduce(b, n, "Sum", magnitude, axes) : magnitude);
}

void L2(Builder& b, Node& n) {
  const Value axes = AxesOf(b, n, 18);
  n.out(axes ? Reduce(b, n, "EuclideanNorm", n.in(0), axes) : b.op("Abs", {n.in(0)}));
}

// Logarithms of whole numbers are computed in double and cut.
template <class Make>
Value InReal(Builder& b, const Value& x, Make make) {
  return IsFloating(x.dtype()) ? make(x) : b.cast(make(b.cast(x, TW_DOUBLE)), x.dtype());
}

void LogSum(Builder& b, Node& n) {
  const Value axes = AxesOf(b, n, 18);
  n.out(InReal(b, n.in(0), [&](const Value& x) { return b.op("Log", {axes ? Reduce(b, n, "Sum", x, axes) : x}); }));
}

// The largest element is taken off first, so that nothing overflows.
void LogSumExp(Builder& b, Node& n) {
  const Value axes = AxesOf(b, n, 18);
  n.out(InReal(b, n.in(0), [&](const Value& x) {
    if (!axes) return x;
    const Value largest = Reduce(b, n, "Max", x, axes, true);
    const Value base = b.op("SelectV2", {b.op("IsFinite", {largest}), largest, b.like(x, 0)});
    const Value sum = Reduce(b, n, "Sum", b.op("Exp", {b.op("Sub", {x, base})}), axes);
    const Value shift = n.i("keepdims", 1) ? base : b.reshape(base, b.shape(sum));
    return b.op("AddV2", {b.op("Log", {sum}), shift});
  }));
}

void SumSquare(Builder& b, Node& n) {
  const Value axes = AxesOf(b, n, 18), squares = b.op("Square", {n.in(0)});
  n.out(axes ? Reduce(b, n, "Sum", squares, axes) : squares);
}

template <const char* kOp>
void Arg(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int64_t axis = n.i("axis", 0);
  const Value at = b.scalar(TW_INT32, static_cast<double>(axis));
  Value index;
  if (n.i("select_last_index", 0)) {
    const Value reversed = b.op("ReverseV2", {x, b.ints({axis}, TW_INT32)});
    const Value last = b.op("Sub", {b.size(x, static_cast<int>(axis)), b.scalar(TW_INT64, 1)});
    index = b.op("Sub", {last, b.op(kOp, {reversed, at}, {{"output_type", Type{TW_INT64}}})});
  } else {
    index = b.op(kOp, {x, at}, {{"output_type", Type{TW_INT64}}});
  }
  if (n.i("keepdims", 1)) index = b.unsqueeze(index, {axis});
  n.out(index);
}
constexpr char kArgMax[] = "ArgMax", kArgMin[] = "ArgMin";

constexpr Entry kReduction[] = {
    {"ArgMax", 1, kLatest, &Arg<kArgMax>},
    {"ArgMin", 1, kLatest, &Arg<kArgMin>},
    {"ReduceL1", 1, kLatest, &L1},
    {"ReduceL2", 1, kLatest, &L2},
    {"ReduceLogSum", 1, kLatest, &LogSum},
    {"ReduceLogSumExp", 1, kLatest, &LogSumExp},
    {"ReduceMax", 1, kLatest, &Extreme<kMax, kAny>},
    {"ReduceMean", 1, kLatest, &Plain<kMean>},
    {"ReduceMin", 1, kLatest, &Extreme<kMin, kAll>},
    {"ReduceProd", 1, kLatest, &Plain<kProd>},
    {"ReduceSum", 1, kLatest, &Plain<kSum, 13>},
    {"ReduceSumSquare", 1, kLatest, &SumSquare},
};

}  // namespace

Family ReductionTranslators() { return {std::begin(kReduction), std::end(kReduction)}; }

}  // namespace thalweg::onnx
