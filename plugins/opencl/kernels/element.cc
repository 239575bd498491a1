// Properties of element types that kernels need, without a device.
#include "kernels/kernel.h"

namespace thalweg::opencl {

uint32_t ElementBytes(uint32_t dtype) {
  switch (dtype) {
    case TW_BOOL:
    case TW_INT8:
    case TW_UINT8: return 1;
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_INT16:
    case TW_UINT16: return 2;
    case TW_FLOAT:
    case TW_INT32:
    case TW_UINT32: return 4;
    case TW_DOUBLE:
    case TW_INT64:
    case TW_UINT64:
    case TW_COMPLEX64: return 8;
    case TW_COMPLEX128: return 16;
    default: return 0;
  }
}

void Invalid(const std::string& text) { throw tw::Error{TW_INVALID_ARGUMENT, text}; }

}  // namespace thalweg::opencl
