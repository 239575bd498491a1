// SquaredDistances: the squared distance of each row of x to each row of y, as nearest-neighbour
// search and radial kernels need them. Written from plugins/first_op.md and the public headers alone.
#include <algorithm>
#include <string>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace {

// The sum of squares of differences is never negative, unlike |x|^2 - 2 x.y + |y|^2 in few bits.
template <class T>
T Distance(const T* x, const T* y, uint64_t depth) {
  T sum = 0;
  for (uint64_t k = 0; k < depth; ++k) sum += (x[k] - y[k]) * (x[k] - y[k]);
  return sum;
}

template <class T>
void Run(tw::Frame f, tw::In<T> x, tw::In<T> y, tw::Out<T> distances) {
  const auto rows = uint64_t(x.dim(0)), columns = uint64_t(y.dim(0)), depth = uint64_t(x.dim(1));
  if (distances.size() == 0) return;
  const uint64_t grain = std::max<uint64_t>(1, 16384 / (columns * std::max<uint64_t>(1, depth)));
  f.parallel(rows, grain, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      for (uint64_t j = 0; j < columns; ++j) {
        distances[i * columns + j] = Distance(x.data() + i * depth, y.data() + j * depth, depth);
      }
    }
  });
}

// Of sum_ij dy_ij |x_i - y_j|^2 by x_i: 2 (x_i sum_j dy_ij - sum_j dy_ij y_j), and by y_j likewise.
void Gradient(const tw::Grad& g) {
  const tw_edge x = g.x(0), y = g.x(1), dy = g.dy(), two = g.scalar(2);
  const auto side = [&](tw_edge own, tw_edge other, int64_t axis, bool transpose) {
    const tw_edge sums = g.op("Sum", {dy, g.ints({axis})});
    const tw_edge weighted = g.op("Mul", {own, g.op("ExpandDims", {sums, g.ints({1})})});
    const tw_edge pulled = g.op("MatMul", {dy, other}, {{"transpose_a", transpose}});
    return g.op("Mul", {two, g.op("Sub", {weighted, pulled})});
  };
  g.dx(0, side(x, y, 1, false));
  g.dx(1, side(y, x, 0, true));
}

}  // namespace

TW_CPP_PLUGIN("org.example.distances", "1.0", p) {
  p.op<Gradient>(
      "SquaredDistances(x: T[n, d], y: T[m, d]) -> (distances: T[n, m]); T: {float, double}; ?data x y;"
      " doc \"squared distances between the rows of two matrices\"");
  p.kernel<Run<float>, Run<double>>("SquaredDistances @CPU");
}
