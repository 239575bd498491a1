// DecodeRaw reinterprets the bytes of strings as numbers.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_decode_raw(tw::Plugin& p) {
  p.op(R"(
      DecodeRaw(bytes: string [*s]) -> (output: out_type [*s, _]);
      out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16};
      little_endian: bool = true; no_gradient "bytes have no derivative";
      doc "the bytes of each text as numbers, along a new last axis; all texts are of one length")");
}

}  // namespace thalweg::ops
