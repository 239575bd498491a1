// Products of matrices by cuBLASLt, which is opened with the first of them; without it the plugin's own kernel serves. Threads: any.
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

// y = a b, or y + a b, for each matrix of a batch; steps in elements.
struct Product {
  uint32_t type;
  int64_t m, n, depth;
  int64_t a_row_step, a_column_step, b_row_step, b_column_step, y_row_step;
  int64_t matrices, a_step, b_step, y_step;
  bool more;
  uint32_t aligned;  // bytes, of all three
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
  ~Blas();  // REQUIRES: the device's context
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  // How the library computes a product; kept. NULL: not at all. REQUIRES: the device's context.
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
