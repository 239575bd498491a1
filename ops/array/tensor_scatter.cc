// TensorScatterUpdate, TensorScatterAdd, -Sub, -Max, -Min: copies of a tensor in which the blocks
// at the index vectors are replaced by updates or combined with them, in the order of the updates.
#include <algorithm>

#include "ops/common/gather.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  CheckBadIndicesPolicy(s);
  WantRankAtLeast(s, 1, 1, "indices");
  const MaybeDims tensor = In(s, 0), indices = In(s, 1), updates = In(s, 2);
  Set(s, 0, tensor);
  if (!indices) return;
  const int64_t length = IndexLength(indices, tensor, "tensor");
  if (!tensor || !Known(length)) return;
  Merge(s, updates, Join(Sub(*indices, 0, indices->size() - 1), Sub(*tensor, static_cast<size_t>(length), tensor->size())),
        "the shape of 'updates' and what 'indices' and 'tensor' ask for");
}

// The indices in a type that GatherNd supports.
tw_edge Indices(const tw::Grad& g) { return g.type_in(1) == TW_UINT16 ? CastTo(g, g.x(1), TW_INT32) : g.x(1); }
tw_edge Picked(const tw::Grad& g, tw_edge from) {
  return g.op("GatherNd", {from, Indices(g)}, {{"bad_indices_policy", g.s("bad_indices_policy")}});
}

// Returns true if all index vectors are known to be different.
bool AllDifferent(const tw::Grad& g) {
  Dims indices;
  const MaybeDims shape = ShapeIn(g, 1);
  if (!AllKnown(shape)) return false;
  const size_t length = static_cast<size_t>(shape->back());
  int64_t vectors = 1;
  for (size_t k = 0; k + 1 < shape->size(); ++k) vectors *= (*shape)[k];
  if (vectors <= 1) return true;
  if (length == 0 || !g.value(1, &indices)) return false;
  std::vector<Dims> sorted;
  for (size_t k = 0; k < indices.size(); k += length) sorted.push_back(Sub(indices, k, k + length));
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

// Marks the updates that survive: among updates of one place only the last one counts. Scattering
// the numbers of the updates finds it. The mask broadcasts to the shape of the updates.
tw_edge Survives(const tw::Grad& g) {
  const tw_edge rows = Head(g, g.shape(1), -1), depth = Tail(g, g.shape(1), -1);
  const tw_edge outer = g.op("StridedSlice", {g.shape(0), Ints(g, {0}), depth, Ints(g, {1})}, {{"begin_mask", 1}});
  const tw_edge count = g.op("Prod", {rows, Int(g, 0)});
  const tw_edge numbers = g.op("Reshape", {g.op("Range", {Int(g, 0), count, Int(g, 1)}), rows});
  const tw_edge sent = g.op("TensorScatterUpdate", {g.op("Fill", {outer, Int(g, -1)}), g.x(1), numbers});
  const tw_edge last = g.op("Equal", {Picked(g, sent), numbers});
  const tw_edge block_rank = g.op("Sub", {g.op("Size", {g.shape(2)}), g.op("Size", {rows})});
  return g.op("Reshape", {last, Concat(g, {rows, Ones(g, block_rank)})});
}

void UpdateGradient(const tw::Grad& g) {
  const tw_edge picked = Picked(g, g.dy());
  g.dx(0, g.op("TensorScatterUpdate", {g.dy(), g.x(1), g.op("ZerosLike", {picked})}));
  g.dx(2, AllDifferent(g) ? picked : g.op("SelectV2", {Survives(g), picked, Number(g, 0, picked)}));
}

void AddGradient(const tw::Grad& g) {
  g.dx(0, g.dy());
  g.dx(2, Picked(g, g.dy()));
}

void SubGradient(const tw::Grad& g) {
  g.dx(0, g.dy());
  g.dx(2, g.op("Neg", {Picked(g, g.dy())}));
}

// All elements that equal the extreme of their place share its gradient evenly.
void ExtremeGradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(0);
  const tw_edge mine = CastTo(g, g.op("Equal", {g.x(0), g.y()}), type), theirs = CastTo(g, g.op("Equal", {g.x(2), Picked(g, g.y())}), type);
  const tw_edge sharers = g.op("AddV2", {mine, g.op("ScatterNd", {g.x(1), theirs, CastTo(g, g.shape(0), g.type_in(1))})});
  const tw_edge share = g.op("RealDiv", {g.dy(), sharers});
  g.dx(0, g.op("Mul", {share, mine}));
  g.dx(2, g.op("Mul", {Picked(g, share), theirs}));
}

std::string Schema(const std::string& name, const char* index_types, const char* doc) {
  return name + "(tensor: T, indices: Tindices, updates: T) -> (output: T); T: type; Tindices: " + index_types +
         "; bad_indices_policy: string = \"\"; ?data tensor updates; doc \"the tensor with updates[i] " + doc + "\"";
}

}  // namespace

void register_tensor_scatter(tw::Plugin& p) {
  p.op<UpdateGradient, Rule>(
      Schema("TensorScatterUpdate", "{int16, int32, int64, uint16}", "in place of the block at indices[i]; of several the last one stays"));
  p.op<AddGradient, Rule>(Schema("TensorScatterAdd", OPS_INDEX, "added to the block at indices[i]; equal indices add up"));
  p.op<SubGradient, Rule>(Schema("TensorScatterSub", OPS_INDEX, "taken from the block at indices[i]; equal indices add up"));
  p.op<ExtremeGradient, Rule>(Schema("TensorScatterMax", OPS_INDEX, "wherever it is larger than the block at indices[i]"));
  p.op<ExtremeGradient, Rule>(Schema("TensorScatterMin", OPS_INDEX, "wherever it is smaller than the block at indices[i]"));
}

}  // namespace thalweg::ops
