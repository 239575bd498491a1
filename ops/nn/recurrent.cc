#include "ops/nn/recurrent.h"

namespace thalweg::ops {
namespace {

Dims Known(const tw::Shape& s, uint32_t i, int32_t rank, const char* name) {
  WantRank(s, i, rank, name);
  return In(s, i).value_or(Dims(static_cast<size_t>(rank), -1));
}

void WantSize(const tw::Shape& s, int64_t size, int64_t wanted, const char* name, const char* what) {
  MergeSize(s, size, wanted, "the " + std::string(what) + " of '" + name + "' and what the cell's sizes make it");
}

}  // namespace

CellSizes WantCell(const tw::Shape& s, uint32_t x, std::initializer_list<std::pair<uint32_t, const char*>> states, bool sequence) {
  const Dims in = Known(s, x, sequence ? 3 : 2, "x");
  CellSizes sizes{in[in.size() - 2], in.back(), -1};
  for (const auto& [i, name] : states) {
    const Dims state = Known(s, i, 2, name);
    sizes.batch = MergeSize(s, sizes.batch, state[0], "the batch of 'x' and the rows of '" + std::string(name) + "'");
    sizes.cell = MergeSize(s, sizes.cell, state[1], "the size of the cell and the columns of '" + std::string(name) + "'");
  }
  return sizes;
}

void WantWeights(const tw::Shape& s, const CellSizes& sizes, uint32_t i, const char* name, int64_t gates) {
  const Dims w = Known(s, i, 2, name);
  WantSize(s, w[0], s.calc('+', sizes.input, sizes.cell), name, "rows");
  WantSize(s, w[1], s.calc('*', sizes.cell, gates), name, "columns");
}

void WantBias(const tw::Shape& s, const CellSizes& sizes, uint32_t i, const char* name, int64_t gates) {
  WantSize(s, Known(s, i, 1, name)[0], s.calc('*', sizes.cell, gates), name, "length");
}

void WantShape(const tw::Shape& s, uint32_t i, const char* name, const Dims& dims) {
  WantRank(s, i, static_cast<int32_t>(dims.size()), name);
  Merge(s, In(s, i), dims, "the shape of '" + std::string(name) + "' and what the cell's sizes make it");
}

tw_edge Sums::Beside(std::vector<tw_edge> matrices) const {
  matrices.push_back(Int(g, 1));
  return g.op("ConcatV2", matrices);
}

std::vector<tw_edge> Sums::Parts(tw_edge matrix, int64_t parts) const {
  const tw_edge first = g.op("Split", {Int(g, 1), matrix}, {{"num_split", parts}});
  std::vector<tw_edge> found = {first};
  for (uint32_t k = 1; k < parts; ++k) found.push_back(g.out(first, k));
  return found;
}

std::pair<tw_edge, tw_edge> Sums::Cut(tw_edge matrix, uint32_t i, uint32_t j) const {
  const MaybeDims dims = ShapeIn(g, i);
  const bool known = dims && ops::Known(dims->back());
  const tw_edge begin = known ? Ints(g, {0, dims->back()}) : g.op("Mul", {g.shape(i), Ints(g, {0, 1})});
  return {g.op("Slice", {matrix, Ints(g, {0, 0}), g.shape(i)}), g.op("Slice", {matrix, begin, g.shape(j)})};
}

}  // namespace thalweg::ops
