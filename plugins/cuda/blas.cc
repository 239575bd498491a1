#include "blas.h"

#include <optional>

namespace thalweg::cuda {
namespace {

constexpr uint64_t kMostWorkspace = 32 << 20;  // NVIDIA's recommendation for newer devices

// A column-major matrix, as the library sees it: the elements of a column are consecutive.
struct Columns {
  int64_t rows, columns, step;
  bool turned;  // it is the transpose of the requested matrix
};

// Describes a matrix to the library; a row-major matrix is the transpose in column-major order.
// Empty if neither rows nor columns are consecutive, or if they overlap.
std::optional<Columns> ByColumns(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step) {
  if (column_step == 1 && row_step >= columns) return Columns{columns, rows, row_step, false};
  if (row_step == 1 && column_step >= rows) return Columns{rows, columns, column_step, true};
  return {};
}

struct Types {
  cudaDataType_t data, scale;
  cublasComputeType_t compute;
};

std::optional<Types> TypesOf(uint32_t type, Precision precision) {
  switch (type) {
    case TW_FLOAT: {
      const cublasComputeType_t compute = precision == Precision::kTf32       ? CUBLAS_COMPUTE_32F_FAST_TF32
                                          : precision == Precision::kBfloat16 ? CUBLAS_COMPUTE_32F_FAST_16BF
                                          : precision == Precision::kHalf     ? CUBLAS_COMPUTE_32F_FAST_16F
                                                                              : CUBLAS_COMPUTE_32F;
      return Types{CUDA_R_32F, CUDA_R_32F, compute};
    }
    case TW_HALF: return Types{CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case TW_BFLOAT16: return Types{CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case TW_DOUBLE: return Types{CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    default: return {};
  }
}

}  // namespace

bool BlasLibrary::Open(const tw_host* host) {
  return library_.Open(host, [&](Library& l) {
    bool all = true;
#define THALWEG_BLAS_FIND(name)                           \
  name = reinterpret_cast<decltype(name)>(l.Find(#name)); \
  all = all && name;
    THALWEG_BLAS_FUNCTIONS(THALWEG_BLAS_FIND)
#undef THALWEG_BLAS_FIND
    return all;
  });
}

// Descriptors of the library. In column-major order y is the transpose of the requested result, so
// b comes first.
struct Blas::Way {
  explicit Way(const BlasLibrary& l) : library(l) {}
  ~Way() {
    if (operation) library.cublasLtMatmulDescDestroy(operation);
    for (cublasLtMatrixLayout_t layout : {b, a, y})
      if (layout) library.cublasLtMatrixLayoutDestroy(layout);
  }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

  const BlasLibrary& library;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t b = nullptr, a = nullptr, y = nullptr;
  cublasLtMatmulHeuristicResult_t chosen{};
  bool is_double = false, more = false;
};

Blas::Blas(BlasLibrary& library, const Vendors& vendors) : library_(library), vendors_(vendors) {}

Blas::~Blas() {
  ways_.Clear();
  if (handle_) library_.cublasLtDestroy(handle_);
}

bool Blas::Start(const tw_host* host) {
  if (tried_) return handle_ != nullptr;
  tried_ = true;
  return library_.Open(host) && library_.cublasLtCreate(&handle_) == CUBLAS_STATUS_SUCCESS && handle_;
}

std::unique_ptr<Blas::Way> Blas::Make(const Product& p) {
  const BlasLibrary& l = library_;
  const std::optional<Types> types = TypesOf(p.type, vendors_.precision);
  const auto b = ByColumns(p.depth, p.n, p.b_row_step, p.b_column_step), a = ByColumns(p.m, p.depth, p.a_row_step, p.a_column_step);
  if (!types || !a || !b || p.depth == 0 || p.y_row_step < p.n || p.matrices > INT32_MAX) return nullptr;
  auto way = std::make_unique<Way>(l);
  way->is_double = p.type == TW_DOUBLE;
  way->more = p.more;
  bool ok = l.cublasLtMatmulDescCreate(&way->operation, types->compute, types->scale) == CUBLAS_STATUS_SUCCESS;
  const auto set = [&](cublasLtMatmulDescAttributes_t what, cublasOperation_t value) {
    ok = ok && l.cublasLtMatmulDescSetAttribute(way->operation, what, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
  };
  const auto lay = [&](cublasLtMatrixLayout_t* layout, const Columns& c, int64_t step) {
    const auto count = int32_t(p.matrices);
    ok = ok && l.cublasLtMatrixLayoutCreate(layout, types->data, uint64_t(c.rows), uint64_t(c.columns), c.step) == CUBLAS_STATUS_SUCCESS &&
         l.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count) == CUBLAS_STATUS_SUCCESS &&
         l.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step) ==
             CUBLAS_STATUS_SUCCESS;
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, b->turned ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, a->turned ? CUBLAS_OP_T : CUBLAS_OP_N);
  lay(&way->b, *b, p.b_step);
  lay(&way->a, *a, p.a_step);
  lay(&way->y, {p.n, p.m, p.y_row_step, false}, p.y_step);
  cublasLtMatmulPreference_t wish = nullptr;
  ok = ok && l.cublasLtMatmulPreferenceCreate(&wish) == CUBLAS_STATUS_SUCCESS;
  const auto ask = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    ok = ok && l.cublasLtMatmulPreferenceSetAttribute(wish, what, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
  };
  ask(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
  for (auto matrix : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    ask(matrix, p.aligned);
  int found = 0;
  ok = ok && l.cublasLtMatmulAlgoGetHeuristic(handle_, way->operation, way->b, way->a, way->y, way->y, wish, 1, &way->chosen, &found) ==
                 CUBLAS_STATUS_SUCCESS;
  if (wish) l.cublasLtMatmulPreferenceDestroy(wish);
  return ok && found > 0 && way->chosen.state == CUBLAS_STATUS_SUCCESS ? std::move(way) : nullptr;
}

std::shared_ptr<const Blas::Way> Blas::Find(const tw_host* host, const Product& p) {
  std::lock_guard lock(mutex_);
  if (!Start(host)) return nullptr;
  return ways_.Find(p, [&] { return Make(p); });
}

uint64_t Blas::Workspace(const Way& way) { return way.chosen.workspaceSize; }

void Blas::Enqueue(const Way& way, CUstream queue, CUdeviceptr a, CUdeviceptr b, CUdeviceptr y, CUdeviceptr workspace) const {
  const auto at = [](CUdeviceptr p) { return reinterpret_cast<void*>(p); };
  const float one = 1, more = way.more ? 1 : 0;
  const double double_one = 1, double_more = more;
  const cublasStatus_t status =
      library_.cublasLtMatmul(handle_, way.operation, way.is_double ? static_cast<const void*>(&double_one) : &one, at(b), way.b, at(a),
                              way.a, way.is_double ? static_cast<const void*>(&double_more) : &more, at(y), way.y, at(y), way.y,
                              &way.chosen.algo, at(workspace), way.chosen.workspaceSize, reinterpret_cast<cudaStream_t>(queue));
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw tw::Error{status == CUBLAS_STATUS_ALLOC_FAILED ? TW_RESOURCE_EXHAUSTED : TW_INTERNAL,
                  std::string("cublasLtMatmul failed with ") + library_.cublasLtGetStatusName(status)};
}

}  // namespace thalweg::cuda
