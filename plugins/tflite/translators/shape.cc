// Operators that change shapes or move elements, and those that make values out of shapes.
#include <iterator>

#include "../graph.h"

namespace thalweg::tflite {
namespace {

void Reshape(Graph& g, Node& n) {
  if (n.has(1)) return n.out(g.op("Reshape", {n.in(0), n.in(1)}));
  Dims dims = n.op.options.numbers<int32_t>(0);
  if (dims == Dims{0}) dims = {};  // a scalar in old files
  n.out(g.reshape(n.in(0), dims));
}

void Squeeze(Graph& g, Node& n) { n.out(g.op("Squeeze", {n.in(0)}, {{"squeeze_dims", n.op.options.numbers<int32_t>(0)}})); }

// The op takes the inputs of the operator in its order, and no options.
template <const char* kOp>
void Same(Graph& g, Node& n) {
  n.out(g.op(kOp, n.all()));
}

#define NAME(op) constexpr char k##op[] = #op
NAME(Transpose);
NAME(ExpandDims);
NAME(Slice);
NAME(Pad);
NAME(PadV2);
NAME(Tile);
NAME(Fill);
NAME(Range);
NAME(ReverseV2);
NAME(BroadcastTo);
NAME(BroadcastArgs);
NAME(SpaceToBatchND);
NAME(BatchToSpaceND);
#undef NAME

void Concatenation(Graph& g, Node& n) {
  std::vector<Value> in = n.all();
  if (in.size() == 1) return n.out(g.activated(n, in[0], n.byte(1)));
  in.push_back(g.scalar(TW_INT32, static_cast<double>(n.i(0))));
  n.out(g.activated(n, g.op("ConcatV2", in), n.byte(1)));
}

void Pack(Graph& g, Node& n) { n.out(g.op("Pack", n.all(), {{"axis", n.i(1)}})); }

void SetAll(Node& n, const std::vector<Value>& values) {
  for (size_t i = 0; i < values.size(); ++i) n.out(i, values[i]);
}

size_t Parts(const Node& n, int64_t wanted) {
  if (wanted < 1 || static_cast<uint64_t>(wanted) != n.outputs())
    n.fail("it makes " + std::to_string(wanted) + " parts, but has " + std::to_string(n.outputs()) + " outputs");
  return n.outputs();
}

void Unpack(Graph& g, Node& n) {
  const size_t parts = Parts(n, n.i(0));
  SetAll(n, g.ops("Unpack", {n.in(0)}, {{"num", n.i(0)}, {"axis", n.i(1)}}, parts));
}

void Split(Graph& g, Node& n) {
  const size_t parts = Parts(n, n.i(0));
  SetAll(n, g.ops("Split", {n.in(0), n.in(1)}, {{"num_split", n.i(0)}}, parts));
}

void SplitV(Graph& g, Node& n) {
  const size_t parts = Parts(n, n.i(0));
  SetAll(n, g.ops("SplitV", {n.in(0), n.in(1), n.in(2)}, {{"num_split", n.i(0)}}, parts));
}

void StridedSlice(Graph& g, Node& n) {
  enum { kBegin, kEnd, kEllipsis, kNew, kShrink, kOffset };
  const Value begin = n.in(1);
  const Value end = n.flag(kOffset) ? g.op("AddV2", {begin, n.in(2)}) : n.in(2);
  n.out(g.op("StridedSlice", {n.in(0), begin, end, n.in(3)},
             {{"begin_mask", n.i(kBegin)},
              {"end_mask", n.i(kEnd)},
              {"ellipsis_mask", n.i(kEllipsis)},
              {"new_axis_mask", n.i(kNew)},
              {"shrink_axis_mask", n.i(kShrink)}}));
}

void MirrorPad(Graph& g, Node& n) { n.out(g.op("MirrorPad", {n.in(0), n.in(1)}, {{"mode", n.byte(0) == 0 ? "REFLECT" : "SYMMETRIC"}})); }

void Shape(Graph& g, Node& n) { n.out(g.op("Shape", {n.in(0)}, {{"out_type", Dtype{n.out_dtype()}}})); }
void Rank(Graph& g, Node& n) { n.out(g.op("Rank", {n.in(0)})); }

void OneHot(Graph& g, Node& n) { n.out(g.op("OneHot", n.all(), {{"axis", n.i(0, 0)}})); }

void ReverseSequence(Graph& g, Node& n) {
  n.out(g.op("ReverseSequence", {n.in(0), n.in(1)}, {{"seq_dim", n.i(0)}, {"batch_dim", n.i(1)}}));
}

void SpaceToDepth(Graph& g, Node& n) { n.out(g.op("SpaceToDepth", {n.in(0)}, {{"block_size", n.i(0)}})); }
void DepthToSpace(Graph& g, Node& n) { n.out(g.op("DepthToSpace", {n.in(0)}, {{"block_size", n.i(0)}})); }

void MatrixDiag(Graph& g, Node& n) {
  const Value x = n.in(0), any = g.scalar(TW_INT32, -1);
  n.out(g.op("MatrixDiagV3", {x, g.scalar(TW_INT32, 0), any, any, g.like(x, 0)}));
}
void MatrixSetDiag(Graph& g, Node& n) { n.out(g.op("MatrixSetDiagV3", {n.in(0), n.in(1), g.scalar(TW_INT32, 0)})); }

constexpr Entry kTable[] = {
    {2, "CONCATENATION", &Concatenation},
    {5, "DEPTH_TO_SPACE", &DepthToSpace},
    {22, "RESHAPE", &Reshape},
    {26, "SPACE_TO_DEPTH", &SpaceToDepth},
    {34, "PAD", &Same<kPad>},
    {37, "BATCH_TO_SPACE_ND", &Same<kBatchToSpaceND>},
    {38, "SPACE_TO_BATCH_ND", &Same<kSpaceToBatchND>},
    {39, "TRANSPOSE", &Same<kTranspose>},
    {43, "SQUEEZE", &Squeeze},
    {45, "STRIDED_SLICE", &StridedSlice},
    {49, "SPLIT", &Split},
    {60, "PADV2", &Same<kPadV2>},
    {65, "SLICE", &Same<kSlice>},
    {69, "TILE", &Same<kTile>},
    {70, "EXPAND_DIMS", &Same<kExpandDims>},
    {77, "SHAPE", &Shape},
    {83, "PACK", &Pack},
    {85, "ONE_HOT", &OneHot},
    {88, "UNPACK", &Unpack},
    {94, "FILL", &Same<kFill>},
    {96, "RANGE", &Same<kRange>},
    {100, "MIRROR_PAD", &MirrorPad},
    {102, "SPLIT_V", &SplitV},
    {105, "REVERSE_V2", &Same<kReverseV2>},
    {110, "RANK", &Rank},
    {112, "REVERSE_SEQUENCE", &ReverseSequence},
    {113, "MATRIX_DIAG", &MatrixDiag},
    {115, "MATRIX_SET_DIAG", &MatrixSetDiag},
    {130, "BROADCAST_TO", &Same<kBroadcastTo>},
    {145, "BROADCAST_ARGS", &Same<kBroadcastArgs>},
};

}  // namespace

Family shape_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
