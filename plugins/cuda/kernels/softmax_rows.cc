// Softmax by a library of NVIDIA, for rows long enough that several threads share one.
#include "dnn.h"
#include "kernels/kernel.h"
#include "kernels/product.h"

namespace thalweg::opencl {

bool SoftmaxByLibrary(Device& device, const tw_frame* f, uint32_t type, cl_long rows, cl_long n, bool logarithm, const Place& x,
                      const Place& y) {
  constexpr cl_long kShort = 32;
  if (n < kShort) return false;
  const uint32_t element = ElementBytes(type);
  bool done = false;
  cuda::Submit(device, f->stream, "cuDNN softmax", [&](CUstream queue) {
    done = device.dnn().Softmax(f->host, queue, type, rows, n, logarithm, Address(x, queue, element), Address(y, queue, element));
  });
  return done;
}

}  // namespace thalweg::opencl
