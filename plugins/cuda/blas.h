// Matrix products by cuBLASLt, which is opened for the first product. Without it the plugin uses
// its own kernel. Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_BLAS_H_
#define THALWEG_PLUGINS_CUDA_BLAS_H_

#include <cublasLt.h>
#include <cuda.h>

#include <compare>
#include <memory>
#include <mutex>

#include "vendors.h"
#include "ways.h"

namespace thalweg::cuda {

// y = a b, or with `more` y += a b, for each matrix of a batch; steps in elements.
struct Product {
  uint32_t type;
  int64_t m, n, depth;
  int64_t a_row_step, a_column_step, b_row_step, b_column_step, y_row_step;
  int64_t matrices, a_step, b_step, y_step;
  bool more;
  uint32_t aligned;  // alignment of all three addresses, in bytes
  auto operator<=>(const Product&) const = default;
};

// clang-format off
#define THALWEG_BLAS_FUNCTIONS(X) \
  X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtGetStatusName) X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic) \
  X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatmulPreferenceCreate) \
  X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute) X(cublasLtMatrixLayoutCreate) \
  X(cublasLtMatrixLayoutDestroy) X(cublasLtMatrixLayoutSetAttribute)
// clang-format on

// One per runtime.
struct BlasLibrary {
#define THALWEG_BLAS_POINTER(name) decltype(&::name) name = nullptr;
  THALWEG_BLAS_FUNCTIONS(THALWEG_BLAS_POINTER)
#undef THALWEG_BLAS_POINTER
  bool Open(const tw_host* host);

 private:
  Library library_{"cublaslt", VersionsOf("libcublasLt.so")};
};

// One per device.
class Blas {
 public:
  Blas(BlasLibrary& library, const Vendors& vendors);
  ~Blas();  // REQUIRES: the device's context is current
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  // Returns the cached plan of the library for a product, or makes one. NULL: the library cannot
  // compute it. REQUIRES: the device's context is current.
  struct Way;
  std::shared_ptr<const Way> Find(const tw_host* host, const Product& p);
  static uint64_t Workspace(const Way& way);
  void Enqueue(const Way& way, CUstream queue, CUdeviceptr a, CUdeviceptr b, CUdeviceptr y, CUdeviceptr workspace) const;

 private:
  std::unique_ptr<Way> Make(const Product& p);
  bool Start(const tw_host* host);

  BlasLibrary& library_;
  const Vendors& vendors_;
  std::mutex mutex_;
  bool tried_ = false;
  cublasLtHandle_t handle_ = nullptr;
  Ways<Product, Way> ways_{vendors_.plans};
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_BLAS_H_
