// Reductions, running sums, places of extremes, segments, and normalisations over an axis.
#include <iterator>

#include "../graph.h"

namespace thalweg::tflite {
namespace {

template <const char* kOp>
void Reduce(Graph& g, Node& n) {
  n.out(g.op(kOp, {n.in(0), n.in(1)}, {{"keep_dims", n.flag(0)}}));
}

template <const char* kOp>
void Segments(Graph& g, Node& n) {
  n.out(g.op(kOp, n.all()));
}

#define NAME(op) constexpr char k##op[] = #op
NAME(Mean);
NAME(Sum);
NAME(Prod);
NAME(Max);
NAME(Min);
NAME(Any);
NAME(All);
NAME(SegmentSum);
NAME(UnsortedSegmentProd);
NAME(UnsortedSegmentMax);
NAME(UnsortedSegmentSum);
NAME(UnsortedSegmentMin);
#undef NAME

void ArgMax(Graph& g, Node& n) { n.out(g.op("ArgMax", {n.in(0), g.reshape(n.in(1), {})}, {{"output_type", Dtype{n.out_dtype()}}})); }
void ArgMin(Graph& g, Node& n) { n.out(g.op("ArgMin", {n.in(0), g.reshape(n.in(1), {})}, {{"output_type", Dtype{n.out_dtype()}}})); }

void CumSum(Graph& g, Node& n) {
  n.out(g.op("Cumsum", {n.in(0), g.reshape(n.in(1), {})}, {{"exclusive", n.flag(0)}, {"reverse", n.flag(1)}}));
}

// Vectors of length 1 along the last axis. The runtime divides by 1e-6 at least.
void L2Normalization(Graph& g, Node& n) {
  const Value x = n.in(0);
  const Value square = g.op("Sum", {g.op("Square", {x}), g.ints({-1})}, {{"keep_dims", true}});
  n.out(g.op("Div", {x, g.op("Maximum", {g.op("Sqrt", {square}), g.like(x, 1e-6)})}));
}

void LocalResponse(Graph& g, Node& n) {
  n.out(g.op("LRN", {n.in(0)}, {{"depth_radius", n.i(0)}, {"bias", n.f(1)}, {"alpha", n.f(2)}, {"beta", n.f(3)}}));
}

constexpr Entry kTable[] = {
    {11, "L2_NORMALIZATION", &L2Normalization},
    {13, "LOCAL_RESPONSE_NORMALIZATION", &LocalResponse},
    {40, "MEAN", &Reduce<kMean>},
    {56, "ARG_MAX", &ArgMax},
    {74, "SUM", &Reduce<kSum>},
    {79, "ARG_MIN", &ArgMin},
    {81, "REDUCE_PROD", &Reduce<kProd>},
    {82, "REDUCE_MAX", &Reduce<kMax>},
    {89, "REDUCE_MIN", &Reduce<kMin>},
    {91, "REDUCE_ANY", &Reduce<kAny>},
    {125, "SEGMENT_SUM", &Segments<kSegmentSum>},
    {128, "CUMSUM", &CumSum},
    {140, "REDUCE_ALL", &Reduce<kAll>},
    {153, "UNSORTED_SEGMENT_PROD", &Segments<kUnsortedSegmentProd>},
    {154, "UNSORTED_SEGMENT_MAX", &Segments<kUnsortedSegmentMax>},
    {155, "UNSORTED_SEGMENT_SUM", &Segments<kUnsortedSegmentSum>},
    {157, "UNSORTED_SEGMENT_MIN", &Segments<kUnsortedSegmentMin>},
};

}  // namespace

Family reduce_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
