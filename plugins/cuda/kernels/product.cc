// Matrix products by a library of NVIDIA.
#include "kernels/product.h"

#include <algorithm>

#include "blas.h"
#include "kernels/matmul.h"

namespace thalweg::opencl {
namespace {

// Below this size a launch costs more than the product, in either kernel.
constexpr Size kSmall = 4096;

}  // namespace

uint32_t Alignment(const Place& p, uint32_t element) {
  constexpr uint64_t kMost = 256;
  const uint64_t at = uint64_t(p.of ? 0 : p.memory) + uint64_t(p.first) * element;
  return uint32_t(at == 0 ? kMost : std::min<uint64_t>(kMost, at & (~at + 1)));
}

CUdeviceptr Address(const Place& p, CUstream queue, uint32_t element) {
  return (p.of ? p.of->On(queue) : p.memory) + CUdeviceptr(p.first) * element;
}

bool ByLibrary(Device& device, const tw_frame* f, uint32_t type, const MatrixSizes& s, const Matrix& a, const Matrix& b, const Place& y,
               Size y_row_step, bool more, const Layout& batch) {
  if (batch.axes.count > 1 || s.m * s.n < kSmall) return false;
  const uint32_t element = ElementBytes(type);
  const bool many = batch.axes.count == 1;
  const auto step = [&](size_t k) { return many ? batch.steps[k].by[0] : 0; };
  const uint32_t aligned = std::min({Alignment(a.at, element), Alignment(b.at, element), Alignment(y, element)});
  const cuda::Product p{type,          s.m,        s.n,           s.depth,    a.row_step,
                        a.column_step, b.row_step, b.column_step, y_row_step, many ? batch.axes.size[0] : 1,
                        step(0),       step(1),    step(2),       more,       aligned};
  device.Enter();
  const std::shared_ptr<const cuda::Blas::Way> way = device.blas().Find(f->host, p);
  if (!way) return false;
  const uint64_t bytes = cuda::Blas::Workspace(*way);
  const Temporary workspace(device, bytes);
  cuda::Submit(device, f->stream, "cublasLtMatmul", [&](CUstream queue) {
    device.blas().Enqueue(*way, queue, Address(a.at, queue, element), Address(b.at, queue, element), Address(y, queue, element),
                          bytes ? workspace.On(queue) : 0);
  });
  return true;
}

}  // namespace thalweg::opencl
