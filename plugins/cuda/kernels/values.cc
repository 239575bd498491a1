// Properties of views and arguments that kernels need, without a device.
#include "kernels/kernel.h"

namespace thalweg::opencl {

Place At(const tw_view* v) {
  const uint32_t bytes = ElementBytes(v->dtype);
  return {reinterpret_cast<CUdeviceptr>(v->data), bytes ? cl_long(v->offset / bytes) : 0};
}

void Arguments::Add(const void* value, size_t bytes) {
  used_ = (used_ + 15) / 16 * 16;
  if (used_ + bytes > kMost)
    throw tw::Error{TW_UNIMPLEMENTED, "so many inputs do not fit into one call of a CUDA kernel; join fewer, or place the op on a CPU"};
  std::memcpy(room_ + used_, value, bytes);
  pointers_.push_back(room_ + used_);
  used_ += bytes;
}

}  // namespace thalweg::opencl
