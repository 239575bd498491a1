// The truth value of a tensor.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_TRUTH_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_TRUTH_H_

#include <string>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// A scalar is true if it is a number other than zero or a string that is not empty. A tensor of
// higher rank is true if it has elements. what() returns the tensor's name for an error message.
template <class What>
bool IsTrue(const tw_view& v, const What& what) {
  if (v.rank != 0) return v.count > 0;
  switch (v.dtype) {
    case TW_STRING: return static_cast<const tw_string*>(v.data)->size > 0;
    case TW_FLOAT: return *static_cast<const float*>(v.data) != 0;
    case TW_DOUBLE: return *static_cast<const double*>(v.data) != 0;
    case TW_HALF:
    case TW_BFLOAT16: return (*static_cast<const uint16_t*>(v.data) & 0x7fff) != 0;
    case TW_BOOL:
    case TW_INT8:
    case TW_UINT8: return *static_cast<const uint8_t*>(v.data) != 0;
    case TW_INT16:
    case TW_UINT16: return *static_cast<const uint16_t*>(v.data) != 0;
    case TW_INT32:
    case TW_UINT32: return *static_cast<const uint32_t*>(v.data) != 0;
    case TW_INT64:
    case TW_UINT64: return *static_cast<const uint64_t*>(v.data) != 0;
    default: throw tw::Error{TW_INVALID_ARGUMENT, what() + " is a " + tw::dtype_text(v.dtype) + ", which is neither true nor false"};
  }
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_TRUTH_H_
