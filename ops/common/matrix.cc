#include "ops/common/matrix.h"

namespace thalweg::ops {

MaybeDims Matrices(const tw::Shape& s, uint32_t i, const char* name) {
  WantRankAtLeast(s, i, 2, name);
  return In(s, i);
}

MaybeDims SquareMatrices(const tw::Shape& s, uint32_t i, const char* name) {
  MaybeDims dims = Matrices(s, i, name);
  if (!dims) return dims;
  int64_t &rows = (*dims)[dims->size() - 2], &columns = dims->back();
  rows = columns = MergeSize(s, rows, columns, "the rows and the columns of '" + std::string(name) + "', which is " + Text(dims) + ",");
  return dims;
}

MaybeDims BatchOf(const MaybeDims& matrices) {
  if (!matrices) return std::nullopt;
  return Sub(*matrices, 0, matrices->size() - 2);
}

tw_edge Product(const tw::Grad& g, tw_edge a, tw_edge b, bool adjoint_a, bool adjoint_b) {
  return g.op("BatchMatMulV2", {a, b}, {{"adj_x", adjoint_a}, {"adj_y", adjoint_b}});
}

tw_edge Adjoint(const tw::Grad& g, tw_edge a) {
  const MaybeDims dims = DimsOf(g, a);
  tw_edge order;
  if (dims) {
    Dims axes = Iota(static_cast<int64_t>(dims->size()));
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    order = Ints(g, axes);
  } else {
    const tw_edge rank = g.op("Rank", {a}), two = Int(g, 2);
    order = Concat(
        g, {g.op("Range", {Int(g, 0), g.op("Sub", {rank, two}), Int(g, 1)}),
            g.op("Reshape", {g.op("Sub", {rank, Int(g, 1)}), Ints(g, {1})}), g.op("Reshape", {g.op("Sub", {rank, two}), Ints(g, {1})})});
  }
  return g.op("Transpose", {Conj(g, a), order});
}

tw_edge Band(const tw::Grad& g, tw_edge a, int64_t below, int64_t above) {
  return g.op("MatrixBandPart", {a, g.scalar(double(below), TW_INT64), g.scalar(double(above), TW_INT64)});
}

tw_edge Diagonal(const tw::Grad& g, tw_edge vectors) {
  return g.op("MatrixDiagV3", {vectors, Int(g, 0), Int(g, -1), Int(g, -1), Number(g, 0, vectors)});
}

tw_edge DiagonalOf(const tw::Grad& g, tw_edge a) { return g.op("MatrixDiagPartV3", {a, Int(g, 0), Number(g, 0, a)}); }

tw_edge Scale(const tw::Grad& g, tw_edge a, double factor) { return g.op("Mul", {a, Number(g, factor, a)}); }

tw_edge PerMatrix(const tw::Grad& g, tw_edge factors) {
  return g.op("ExpandDims", {g.op("ExpandDims", {factors, Int(g, -1)}), Int(g, -1)});
}

}  // namespace thalweg::ops
