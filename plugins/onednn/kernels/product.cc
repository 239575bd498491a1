#include "kernels/product.h"

#include <csignal>

namespace thalweg::onednn {
namespace {

// While it exists, the calling thread blocks all signals that can be deferred. If a is deeper than
// some 80 columns, code that oneDNN's sgemm generates (2.6 to 3.x: jit_avx512_common_gemm_f32,
// jit_avx_gemm_f32) sets the stack pointer to the start of a heap buffer. A signal handler would
// then write below that buffer, over other data.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t waiting;
    sigfillset(&waiting);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&waiting, fault);
    pthread_sigmask(SIG_BLOCK, &waiting, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

double Work(int64_t m, int64_t n, int64_t k) { return double(m) * double(n) * double(k); }

// Returns where piece i of `pieces` begins: at a multiple of a vector, so only the last piece has a
// partial vector.
int64_t Begin(int64_t size, int64_t i, int64_t pieces) { return i == pieces ? size : size * i / pieces / 16 * 16; }

}  // namespace

// Small products are as fast on the own tiles, which take no heap memory. Products with a vector
// are bound by memory in both cases.
bool Pays(int64_t m, int64_t n, int64_t k, const Library& library) {
  return m > 1 && n > 1 && Work(m, n, k) >= std::max(1.0, library.least_work());
}

// A cell packs its rows of a and its columns of b, so cells should be large and square. There
// should be two cells for every processor of the machine, whether the process may use it or not.
// But if cells would become so small that packing dominates, there is only one.
Cells CellsOf(const Api& api, int64_t m, int64_t n, int64_t k) {
  constexpr double kCellWork = 6e6;  // about 50 us
  constexpr int64_t kLeastSide = 32, kLeastArea = 256 * 256;
  const double most = double(std::clamp<int64_t>(2 * api.processors, 4, 128));
  const auto wanted = int64_t(std::min(most, Work(m, n, k) / kCellWork));
  Cells cells{1, 1};
  while (cells.count() * 2 <= wanted) {
    const int64_t rows = m / cells.rows, columns = n / cells.columns;
    if (std::max(rows, columns) < 2 * kLeastSide) break;
    if (cells.count() >= api.processors && rows * columns < 2 * kLeastArea) break;
    (rows >= columns ? cells.rows : cells.columns) *= 2;
  }
  return cells;
}

Cell CellAt(const Cells& cells, int64_t cell, int64_t m, int64_t n) {
  const int64_t row = cell / cells.columns, column = cell % cells.columns;
  const int64_t i = Begin(m, row, cells.rows), j = Begin(n, column, cells.columns);
  return {i, j, Begin(m, row + 1, cells.rows) - i, Begin(n, column + 1, cells.columns) - j};
}

dnnl_status_t MultiplyCell(const Api& api, const MatrixProduct<float>& p, const Epilogue& e, const Cells& cells, int64_t cell) {
  const auto [i, j, m, n] = CellAt(cells, cell, p.m, p.n);
  const float* a = p.trans_a ? p.a + i : p.a + i * p.lda;
  const float* b = p.trans_b ? p.b + j * p.ldb : p.b + j;
  dnnl_status_t s = dnnl_success;
  {
    const SignalsBlocked blocked;
    s = api.dnnl_sgemm(p.trans_a ? 'T' : 'N', p.trans_b ? 'T' : 'N', m, n, p.k, 1, a, p.lda, b, p.ldb, 0, p.c + i * p.ldc + j, p.ldc);
  }
  if (!e.empty()) Finish(e, p.c + i * p.ldc + j, m, n, p.ldc, j);
  return s;
}

}  // namespace thalweg::onednn
