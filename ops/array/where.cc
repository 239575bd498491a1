// Where returns the indices of all elements that are not 0.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The number of rows depends on the values, so the kernel allocates the output.
void Rule(const tw::Shape& s) { s.out(0, Dims{-1, s.rank(0)}); }

}  // namespace

void register_where(tw::Plugin& p) {
  p.op<nullptr, Rule>(
      "Where(input: T) -> (index: int64); T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
      "complex64, complex128, qint8, qint16, qint32, quint8, quint16, bool} = bool; ?limits index 0 elements input; no_gradient \"whole "
      "numbers\"; "
      "doc \"one row per element that is not 0, in row-major order: its index on each axis\"");
}

}  // namespace thalweg::ops
