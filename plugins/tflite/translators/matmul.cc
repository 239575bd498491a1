// Products of matrices, and lookups in one.
#include <algorithm>
#include <iterator>

#include "../graph.h"

namespace thalweg::tflite {
namespace {

// Weights are [out, in]. The input's elements are taken in rows of `in`.
void FullyConnected(Graph& g, Node& n) {
  enum { kActivation, kFormat, kKeepDims };
  const Value x = n.in(0), w = n.in(1);
  const int64_t in = w.dim(1), out = w.dim(0);
  if (w.rank() != 2 || in < 1 || out < 1) n.fail("the weights' shape " + importer::Text(w.shape().dims) + " is not [out, in]");
  if (n.byte(kFormat) != 0) n.unsupported("shuffled weights are not supported");
  const bool plain = x.rank() == 2 && x.dim(1) == in;
  Value y = g.op("MatMul", {plain ? x : g.reshape(x, {-1, in}), w}, {{"transpose_b", true}});
  if (n.has(2)) y = g.op("AddV2", {y, n.bias(2)});
  if (n.flag(kKeepDims) && !plain) {
    Dims dims = x.shape().dims;
    if (x.rank() >= 1 && std::count(dims.begin(), dims.end(), -1) <= 1) {
      dims.back() = out;
      y = g.reshape(y, dims);
    } else {
      const Value lead = g.op("StridedSlice", {g.shape(x), g.ints({0}), g.ints({-1}), g.ints({1})}, {{"begin_mask", 1}});
      y = g.op("Reshape", {y, g.op("ConcatV2", {lead, g.ints({out}), g.scalar(TW_INT32, 0)})});
    }
  }
  n.out(g.activated(n, y, n.byte(kActivation)));
}

void BatchMatMul(Graph& g, Node& n) { n.out(g.op("BatchMatMulV2", {n.in(0), n.in(1)}, {{"adj_x", n.flag(0)}, {"adj_y", n.flag(1)}})); }

void EmbeddingLookup(Graph& g, Node& n) { n.out(g.op("GatherV2", {n.in(1), n.in(0), g.scalar(TW_INT32, 0)})); }

constexpr Entry kTable[] = {
    {7, "EMBEDDING_LOOKUP", &EmbeddingLookup}, {9, "FULLY_CONNECTED", &FullyConnected}, {126, "BATCH_MATMUL", &BatchMatMul}};

}  // namespace

Family matmul_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
