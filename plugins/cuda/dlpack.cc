// Memory shared with other libraries. It lies in the device's primary context, which CUDA's runtime
// library also uses, so any address of the device is valid.
#include "dlpack.h"

#include "device.h"

namespace thalweg::cuda {
namespace {

constexpr uint32_t kDlCuda = 2;

// Checks the first and the last byte, not the range that the driver knows. Memory that was mapped
// in pieces, as PyTorch's with expandable segments, has one range per piece.
void CheckMemory(Device& device, CUdeviceptr at) {
  const Driver& driver = device.driver();
  CUmemorytype kind{};
  int ordinal = -1;
  if (driver.cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS ||
      driver.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at) != CUDA_SUCCESS)
    throw tw::Error{TW_INVALID_ARGUMENT, "its memory, or the end of it, is none that the driver knows"};
  if (kind != CU_MEMORYTYPE_DEVICE) throw tw::Error{TW_INVALID_ARGUMENT, "its memory is the host's"};
  if (ordinal != device.ordinal())
    throw tw::Error{TW_INVALID_ARGUMENT, "its memory is of CUDA device " + std::to_string(ordinal) + ", not of " +
                                             std::to_string(device.ordinal()) + " as it says"};
}

int32_t Number(const tw_host*, void* self) { return static_cast<Device*>(self)->ordinal(); }
tw_status* Take(const tw_host* host, void* self, void* memory, uint64_t offset, uint64_t bytes, void* stream) {
  return tw::guard(host, [&] {
    Device& device = *static_cast<Device*>(self);
    device.Enter();
    const CUdeviceptr first = reinterpret_cast<CUdeviceptr>(memory) + offset;
    CheckMemory(device, first);
    CheckMemory(device, first + bytes - 1);
    if (stream) device.others().Add(static_cast<CUstream>(stream));
  });
}

}  // namespace

const tw_dlpack_set kDlpack = {TW_SIZED(tw_dlpack_set), kDlCuda, 0, Number, Take};

}  // namespace thalweg::cuda
