// cuBLASLt without a GPU: the functions that the plugin calls, on the stub driver's streams.
// Matrices are column-major, as in the library; sums are in double. It has no algorithm for
// integers, for more workspace than the limit, or with the option blas=0.
#include <cublasLt.h>

#include <cstring>
#include <vector>

#include "library.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Operation {
  cublasComputeType_t compute;
  cublasOperation_t left = CUBLAS_OP_N, right = CUBLAS_OP_N;
};
struct Matrices {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t step, batch_step = 0;
  int32_t count = 1;
};
struct Wish {
  uint64_t workspace = 0;
  uint32_t aligned = 256;
};

template <class T>
Matrices& Of(T layout) {
  return *reinterpret_cast<Matrices*>(layout);
}

size_t Bytes(cudaDataType type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

double Get(const Matrices& m, const void* from, int64_t i) {
  const char* at = static_cast<const char*>(from) + i * int64_t(Bytes(m.type));
  if (m.type == CUDA_R_64F) return *reinterpret_cast<const double*>(at);
  if (m.type == CUDA_R_32F) return *reinterpret_cast<const float*>(at);
  if (m.type == CUDA_R_16F) return double(*reinterpret_cast<const _Float16*>(at));
  const uint32_t bits = uint32_t(*reinterpret_cast<const uint16_t*>(at)) << 16;
  float v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

void Put(const Matrices& m, void* to, int64_t i, double v) {
  char* at = static_cast<char*>(to) + i * int64_t(Bytes(m.type));
  if (m.type == CUDA_R_64F)
    *reinterpret_cast<double*>(at) = v;
  else if (m.type == CUDA_R_32F)
    *reinterpret_cast<float*>(at) = float(v);
  else if (m.type == CUDA_R_16F)
    *reinterpret_cast<_Float16*>(at) = static_cast<_Float16>(v);
  else {
    const float f = float(v);
    uint32_t bits;
    std::memcpy(&bits, &f, sizeof bits);
    *reinterpret_cast<uint16_t*>(at) = uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

// Returns the bytes from the first element of the first matrix to the last of the last.
size_t Span(const Matrices& m) {
  return size_t((m.count - 1) * m.batch_step + int64_t(m.columns - 1) * m.step + int64_t(m.rows)) * Bytes(m.type);
}

struct Product {
  Operation op;
  Matrices a, b, d;
  const void *left, *right;
  void* to;
  double alpha, beta;

  void operator()() const {
    const int64_t depth = int64_t(op.left == CUBLAS_OP_N ? a.columns : a.rows);
    for (int32_t k = 0; k < d.count; ++k)
      for (int64_t j = 0; j < int64_t(d.columns); ++j)
        for (int64_t i = 0; i < int64_t(d.rows); ++i) {
          double sum = 0;
          for (int64_t l = 0; l < depth; ++l)
            sum += Get(a, left, k * a.batch_step + (op.left == CUBLAS_OP_N ? l * a.step + i : i * a.step + l)) *
                   Get(b, right, k * b.batch_step + (op.right == CUBLAS_OP_N ? j * b.step + l : l * b.step + j));
          const int64_t at = k * d.batch_step + j * d.step + i;
          Put(d, to, at, alpha * sum + (beta == 0 ? 0 : beta * Get(d, to, at)));
        }
  }
};

}  // namespace

EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = nullptr;
  if (EnterLibrary("cublasLtCreate")) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  EnterLibrary("cublasLtDestroy");
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_ALLOC_FAILED ? "CUBLAS_STATUS_ALLOC_FAILED" : "CUBLAS_STATUS_OF_THE_STUB";
}
EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute});
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete reinterpret_cast<Operation*>(operation);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t what, const void* value,
                                                     size_t bytes) {
  Operation& op = *reinterpret_cast<Operation*>(operation);
  if (bytes != sizeof(cublasOperation_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(what == CUBLASLT_MATMUL_DESC_TRANSA ? &op.left : &op.right, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t step) {
  if (step < int64_t(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Matrices{type, rows, columns, step});
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Matrices*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t what,
                                                       const void* value, size_t bytes) {
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof(int32_t))
    std::memcpy(&Of(layout).count, value, bytes);
  else if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof(int64_t))
    std::memcpy(&Of(layout).batch_step, value, bytes);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Wish);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t wish) {
  delete reinterpret_cast<Wish*>(wish);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t wish, cublasLtMatmulPreferenceAttributes_t what,
                                                           const void* value, size_t bytes) {
  Wish& w = *reinterpret_cast<Wish*>(wish);
  if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof w.workspace)
    std::memcpy(&w.workspace, value, bytes);
  else if (bytes == sizeof w.aligned)
    std::memcpy(&w.aligned, value, bytes);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                                     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                                     cublasLtMatmulPreference_t wish, int wanted, cublasLtMatmulHeuristicResult_t* result,
                                                     int* found) {
  *found = 0;
  if (EnterLibrary("cublasLtMatmulAlgoGetHeuristic")) return CUBLAS_STATUS_INTERNAL_ERROR;
  const Operation& op = *reinterpret_cast<Operation*>(operation);
  const uint64_t depth = op.left == CUBLAS_OP_N ? Of(a).columns : Of(a).rows, other = op.right == CUBLAS_OP_N ? Of(b).rows : Of(b).columns;
  const uint64_t m = op.left == CUBLAS_OP_N ? Of(a).rows : Of(a).columns, n = op.right == CUBLAS_OP_N ? Of(b).columns : Of(b).rows;
  if (depth != other || m != Of(d).rows || n != Of(d).columns) {
    WrongInLibrary("a product's matrices do not fit");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const Wish& w = *reinterpret_cast<Wish*>(wish);
  if (wanted < 1 || !LibraryOption("blas", 1) || w.workspace < 1024) return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {};
  result->workspaceSize = 1024;
  result->algo.data[0] = w.aligned;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                                     cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                                     const void*, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                                     const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  Product p{*reinterpret_cast<Operation*>(operation), Of(a_layout), Of(b_layout), Of(d_layout), a, b, d, 0, 0};
  for (const void* at : {a, b, static_cast<const void*>(d)})
    if (uintptr_t(at) % algo->data[0]) WrongInLibrary("a matrix is not aligned as was said");
  const bool wide = p.op.compute == CUBLAS_COMPUTE_64F;
  p.alpha = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  p.beta = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  std::vector<LibraryTouch> touches = {{a, Span(p.a), false}, {b, Span(p.b), false}, {d, Span(p.d), true}};
  if (workspace) touches.push_back({workspace, workspace_bytes, true});
  const CUresult error = EnqueueOfLibrary(reinterpret_cast<CUstream>(stream), "cublasLtMatmul", touches, p);
  return error == CUDA_SUCCESS               ? CUBLAS_STATUS_SUCCESS
         : error == CUDA_ERROR_OUT_OF_MEMORY ? CUBLAS_STATUS_ALLOC_FAILED
                                             : CUBLAS_STATUS_EXECUTION_FAILED;
}
