// Products of matrices, single or in batches.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_MATMUL_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_MATMUL_H_

#include <deque>

#include "kernels/layout.h"

namespace thalweg::opencl {

// A factor: the place of its first matrix, and the distances of neighbours along a column and along
// a row.
struct Matrix {
  Place at;
  Size row_step, column_step;
};
inline Matrix RowMajor(Place at, Size columns) { return {at, columns, 1}; }
inline Matrix Transposed(Matrix m) { return {m.at, m.column_step, m.row_step}; }

struct MatrixSizes {
  Size m, n, depth;
};

class MatMul {
 public:
  MatMul(const tw::Node& n, uint32_t type);

  // Sets y, whose rows are `y_row_step` apart, to a b; with `more`, adds a b to it.
  void Run(const tw_frame* f, MatrixSizes sizes, Matrix a, Matrix b, Place y, Size y_row_step, bool more = false) const {
    RunBatch(f, sizes, a, b, y, y_row_step, more, {}, {}, {}, {});
  }
  // Does so for each matrix of a batch of these dims. steps: from one matrix to the next.
  void RunBatch(const tw_frame* f, MatrixSizes sizes, Matrix a, Matrix b, Place y, Size y_row_step, bool more, const Dims& batch,
                const Dims& a_steps, const Dims& b_steps, const Dims& y_steps) const;

 private:
  uint32_t type_;
  Device& device_;
  std::vector<Tile> tiles_;         // tiles of the device, for that type
  std::deque<LateKernel> kernels_;  // one per tile
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_MATMUL_H_
