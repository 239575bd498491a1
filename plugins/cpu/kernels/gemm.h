// Dense products of any size on the host's thread pool. Cuts a product into cells of c, and cells
// into the blocks of gemm_block.h. Results have the same bits for any number of threads: a sum over
// all of k runs inside one cell, in pieces that depend only on k.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_GEMM_H_
#define THALWEG_PLUGINS_CPU_KERNELS_GEMM_H_

#include <cstdint>

#include "kernels/common/types.h"
#include "kernels/gemm_block.h"
#include "kernels/vector.h"

namespace thalweg::cpu {

// c[m, n] = op(a) op(b), or term + op(a) op(b). All matrices are row-major with the given row
// strides. trans_a: a is stored [k, m]; trans_b: b is stored [n, k]. T: float, double, half,
// bfloat16; the last two are multiplied and summed in float and rounded once.
template <class T>
struct MatrixProduct {
  int64_t m, n, k;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc;
  bool trans_a, trans_b;
  const T* term;  // [m, n], rows ldc apart; may be c or NULL; only for float and double, and for products without a vector
};

// The tables that products use, both of one instruction set.
struct GemmTables {
  const GemmTable* gemm;
  const VectorTable* vector;
  template <class T>
  const GemmEntries<T>& entries() const {
    if constexpr (std::is_same_v<T, float>)
      return gemm->f32;
    else
      return gemm->f64;
  }
};

// Returns the tables of this machine's best instruction set, or of the one that the plugin's
// setting `isa` names.
GemmTables GemmTablesFor(const tw_host* host);

// Returns the scratch bytes of one worker.
template <class T>
uint64_t ProductScratch(const MatrixProduct<T>& p);

// Computes the part of c in rows [i0, i1) and columns [j0, j1) on the calling thread. scratch: ProductScratch bytes, 64-byte aligned.
template <class T>
void MultiplyCell(const GemmTables& t, const MatrixProduct<T>& p, int64_t i0, int64_t i1, int64_t j0, int64_t j1, char* scratch);

// Computes all of c, shared between up to `slots` workers. scratch: slots * ProductScratch bytes.
template <class T>
void Multiply(const GemmTables& t, const tw_frame* f, const MatrixProduct<T>& p, int slots, char* scratch);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_GEMM_H_
