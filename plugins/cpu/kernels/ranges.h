// The ranges of kernels that quantise: one for the whole tensor (axis -1), or one for each slice
// along an axis. Threads: reads only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_RANGES_H_
#define THALWEG_PLUGINS_CPU_KERNELS_RANGES_H_

#include <algorithm>
#include <string>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"

namespace thalweg::cpu {

// Element i of a tensor belongs to slice i / inner % slices.
struct Slices {
  int64_t slices = 1, inner = 1;

  // One slice of n elements.
  explicit Slices(int64_t n) : inner(n) {}
  // Throws INVALID_ARGUMENT for an axis that the tensor lacks, and if min or max does not have an
  // entry for each slice.
  Slices(const tw_view* input, int64_t axis, const tw_view* min, const tw_view* max) {
    inner = int64_t(input->count);
    if (axis >= 0) {
      const int at = Axis(axis, input->rank);
      slices = input->dims[at];
      inner = Product(input->dims, at + 1, input->rank);
    }
    if (min->count != uint64_t(slices) || max->count != uint64_t(slices))
      Invalid("the minimum " + DimsText(min) + " and the maximum " + DimsText(max) + " must have " + std::to_string(slices) +
              (slices == 1 ? " element" : " elements") + " for input " + DimsText(input) + " and axis " + std::to_string(axis));
  }

  // Calls part(begin, end, slice) for runs of elements of one slice that together are [0, n).
  template <class F>
  void ForEachRun(const tw_frame* f, int64_t n, int64_t cost, F&& part) const {
    ParallelFor(f, n, cost, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t run = begin / inner, stop = std::min(end, (run + 1) * inner);
        part(begin, stop, run % slices);
        begin = stop;
      }
    });
  }
};

// Calls body(int8_t{}) or the like with the whole number that a quantised type stores.
template <class F>
void ByQuantised(uint32_t dtype, F&& body) {
  switch (dtype) {
    case TW_QINT8: return body(int8_t{});
    case TW_QUINT8: return body(uint8_t{});
    case TW_QINT16: return body(int16_t{});
    case TW_QUINT16: return body(uint16_t{});
    case TW_QINT32: return body(int32_t{});
    default: throw tw::Error{TW_UNIMPLEMENTED, TypeText(dtype) + " is no quantised type; use qint8, quint8, qint16, quint16 or qint32"};
  }
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_RANGES_H_
