// Products of float matrices by oneDNN's sgemm, divided over the host's pool. The library may round
// differently if a product is cut differently, so the cells depend on sizes and the machine, never
// on threads.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_PRODUCT_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_PRODUCT_H_

#include <algorithm>
#include <atomic>

#include "kernels/epilogue.h"
#include "kernels/gemm.h"
#include "kernels/slots.h"
#include "library.h"

namespace thalweg::onednn {

using cpu::MatrixProduct;

// Returns true if the library is faster than the CPU plugin's own product, as measured: for large
// products, and for low and wide ones.
bool Pays(int64_t m, int64_t n, int64_t k, const Library& library);

// The number of cells, down and across, of a product.
struct Cells {
  int64_t rows, columns;
  int64_t count() const { return rows * columns; }
};
Cells CellsOf(const Api& api, int64_t m, int64_t n, int64_t k);

// The rows and columns of c in a cell.
struct Cell {
  int64_t i, j, m, n;
};
Cell CellAt(const Cells& cells, int64_t cell, int64_t m, int64_t n);

// Computes one cell of c on the calling thread.
dnnl_status_t MultiplyCell(const Api& api, const MatrixProduct<float>& p, const Epilogue& e, const Cells& cells, int64_t cell);

// Computes product(i) for i < count, all with the sizes of `shape`. A failure is thrown after all
// threads are done.
template <class F>
void MultiplyMany(const Api& api, const tw_frame* f, const MatrixProduct<float>& shape, int64_t count, F&& product,
                  const Epilogue& epilogue = {}) {
  const Cells cells = CellsOf(api, shape.m, shape.n, shape.k);
  std::atomic<dnnl_status_t> failed{dnnl_success};
  cpu::ForEachTask(f, count * cells.count(), api.slots, [&](int64_t task, int) {
    const OneThread one(api);
    const dnnl_status_t s = MultiplyCell(api, product(task / cells.count()), epilogue, cells, task % cells.count());
    if (s != dnnl_success) failed = s;
  });
  Check(failed, "a product");
}

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_PRODUCT_H_
