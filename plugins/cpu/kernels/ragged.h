// Row splits: a vector that begins with 0 and never falls; row i is the elements splits[i] to
// splits[i + 1] - 1 of the values, or the rows of the next splits.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_RAGGED_H_
#define THALWEG_PLUGINS_CPU_KERNELS_RAGGED_H_

#include <string>

#include "kernels/common/element.h"

namespace thalweg::cpu {

// Writes element i of an int32 or int64 tensor. REQUIRES: the value fits.
inline void PutIndex(const tw_view* v, uint64_t i, int64_t value) {
  if (v->dtype == TW_INT32)
    reinterpret_cast<int32_t*>(Bytes(v))[i] = int32_t(value);
  else
    reinterpret_cast<int64_t*>(Bytes(v))[i] = value;
}

// Throws if splits of int32 cannot count `n` elements.
inline void CheckCountable(uint32_t dtype, int64_t n) {
  if (dtype == TW_INT32 && n > INT32_MAX) Invalid(std::to_string(n) + " elements do not fit splits of int32; use int64");
}

// Throws unless the splits are valid and end with `values`.
inline void CheckSplits(const tw_view* splits, int64_t values, const std::string& name) {
  if (splits->rank != 1 || splits->count == 0) Invalid(name + " " + DimsText(splits) + " must be a vector with at least one entry");
  for (uint64_t i = 0; i < splits->count; ++i) {
    const int64_t at = IndexAt(splits, i);
    if (i == 0 ? at != 0 : at < IndexAt(splits, i - 1))
      Invalid(name + "[" + std::to_string(i) + "] is " + std::to_string(at) + "; splits begin with 0 and never fall");
  }
  const int64_t end = IndexAt(splits, splits->count - 1);
  if (end != values) Invalid(name + " end with " + std::to_string(end) + ", but they split " + std::to_string(values) + " elements");
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_RAGGED_H_
