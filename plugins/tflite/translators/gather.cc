// Elements by their places: gathers, scatters, updates of a part, sorting and choosing.
#include <iterator>

#include "../graph.h"

namespace thalweg::tflite {
namespace {

void Gather(Graph& g, Node& n) {
  n.out(g.op("GatherV2", {n.in(0), n.in(1), g.scalar(TW_INT32, static_cast<double>(n.i(0)))}, {{"batch_dims", n.i(1)}}));
}
void GatherNd(Graph& g, Node& n) { n.out(g.op("GatherNd", {n.in(0), n.in(1)})); }
void ScatterNd(Graph& g, Node& n) { n.out(g.op("ScatterNd", {n.in(0), n.in(1), n.in(2)})); }

void SparseToDense(Graph& g, Node& n) {
  n.out(g.op("SparseToDense", {n.in(0), n.in(1), n.in(2), n.in(3)}, {{"validate_indices", n.flag(0)}}));
}

// The part is moved so that it lies inside.
void DynamicUpdateSlice(Graph& g, Node& n) {
  const Value x = n.in(0), part = n.in(1);
  const Value room = g.op("Sub", {g.shape(x), g.shape(part)}), start = g.cast(n.in(2), TW_INT32);
  const Value before = g.op("Minimum", {g.op("Maximum", {start, g.scalar(TW_INT32, 0)}), room});
  const Value around = g.op("Pack", {before, g.op("Sub", {room, before})}, {{"axis", 1}});
  const Value inside = g.op("Pad", {g.op("Fill", {g.shape(part), g.scalar(TW_BOOL, 1)}), around});
  n.out(g.op("SelectV2", {inside, g.op("Pad", {part, around}), x}));
}

void TopK(Graph& g, Node& n) {
  const std::vector<Value> v = g.ops("TopKV2", {n.in(0), g.reshape(n.in(1), {})}, {{"sorted", true}}, 2);
  n.out(0, v[0]);
  n.out(1, g.cast(v[1], n.out_dtype(1)));
}

void Unique(Graph& g, Node& n) {
  const std::vector<Value> v = g.ops("Unique", {n.in(0)}, {{"out_idx", Dtype{n.out_dtype(1)}}}, 2);
  n.out(0, v[0]);
  n.out(1, v[1]);
}

void Where(Graph& g, Node& n) { n.out(g.op("Where", {n.in(0)})); }

void Bucketize(Graph& g, Node& n) { n.out(g.op("Bucketize", {n.in(0)}, {{"boundaries", n.op.options.reals(0)}})); }

// Padded to the wanted number; the last output says how many are real.
void NonMaxSuppressionV4(Graph& g, Node& n) {
  const std::vector<Value> v = g.ops("NonMaxSuppressionV4", n.all(), {{"pad_to_max_output_size", true}}, 2);
  n.out(0, v[0]);
  n.out(1, v[1]);
}

void NonMaxSuppressionV5(Graph& g, Node& n) {
  const std::vector<Value> v = g.ops("NonMaxSuppressionV5", n.all(), {{"pad_to_max_output_size", true}}, 3);
  for (size_t i = 0; i < 3; ++i) n.out(i, v[i]);
}

constexpr Entry kTable[] = {
    {36, "GATHER", &Gather},
    {48, "TOPK_V2", &TopK},
    {68, "SPARSE_TO_DENSE", &SparseToDense},
    {103, "UNIQUE", &Unique},
    {107, "GATHER_ND", &GatherNd},
    {109, "WHERE", &Where},
    {120, "NON_MAX_SUPPRESSION_V4", &NonMaxSuppressionV4},
    {121, "NON_MAX_SUPPRESSION_V5", &NonMaxSuppressionV5},
    {122, "SCATTER_ND", &ScatterNd},
    {147, "BUCKETIZE", &Bucketize},
    {151, "DYNAMIC_UPDATE_SLICE", &DynamicUpdateSlice},
};

}  // namespace

Family gather_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
