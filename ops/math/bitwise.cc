// Element-wise bit operations on integers; two arguments broadcast as in NumPy.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

#define WHOLE "{int8, int16, int32, int64, uint8, uint16, uint32, uint64}; no_gradient \"whole numbers have no derivative\"; "

void Binary(tw::Plugin& p, const std::string& name, const std::string& clauses) {
  p.op<nullptr, BinaryRule>(name + "(x: T, y: T) -> (z: T); T: " WHOLE + clauses);
}

}  // namespace

void register_bitwise(tw::Plugin& p) {
  Binary(p, "BitwiseAnd", R"(commutative; doc "the bits that are set in both x and y")");
  Binary(p, "BitwiseOr", R"(commutative; neutral x 0 y 0; doc "the bits that are set in x or y")");
  Binary(p, "BitwiseXor", R"(commutative; neutral x 0 y 0; doc "the bits that differ in x and y")");
  Binary(p, "LeftShift", R"(neutral y 0; doc "x shifted left by y bits: by none if y is negative, by one less than the type has at most")");
  Binary(p, "RightShift", R"(neutral y 0; doc "x shifted right by y bits, keeping its sign; y as in LeftShift")");
  p.op("Invert(x: T[*s]) -> (y: T[*s]); T: " WHOLE "involution; doc \"every bit of x turned over\"");
}

}  // namespace thalweg::ops
