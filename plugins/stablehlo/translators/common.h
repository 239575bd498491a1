// Steps that translators share: arithmetic on sizes, element types, and elements in row-major order. Threads: those of Translation.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../translate.h"

namespace thalweg::stablehlo {

// Our element types.
bool IsBool(const Value& v);
bool IsComplex(const Value& v);
bool IsReal(const Value& v);          // half, bfloat16, float, double and the 8-bit forms
bool IsWhole(const Value& v);         // signed or unsigned integers, not bool
bool IsUnsigned(const Value& v);      // unsigned integers
uint32_t BitsOf(uint32_t dtype);      // of an element
uint32_t UnsignedOf(uint32_t dtype);  // the unsigned integer of as many bits; fails with Error if there is none
uint32_t SignedOf(uint32_t dtype);
uint32_t PartOf(uint32_t complex);  // the type of the parts of a complex type

// A scalar of v's type, complex types included.
Value Like(Translation& t, const Value& v, double value);
// An integer scalar with these low bits.
Value Whole(Translation& t, uint32_t dtype, uint64_t bits);
// The same bits under an element type of the same size.
Value Bits(Translation& t, const Value& v, uint32_t dtype);

// Arithmetic on int64 scalars; the result is constant if both operands are. op: AddV2, Sub, Mul, TruncateDiv, Maximum or Minimum.
Value Known(Translation& t, int64_t size);
Value Sized(Translation& t, const char* op, const Value& a, const Value& b);
inline Value Plus(Translation& t, const Value& a, const Value& b) { return Sized(t, "AddV2", a, b); }
inline Value Minus(Translation& t, const Value& a, const Value& b) { return Sized(t, "Sub", a, b); }
inline Value Times(Translation& t, const Value& a, const Value& b) { return Sized(t, "Mul", a, b); }
// The number that a size is; -1 if it is not known now.
int64_t NumberOf(const Value& size);
// The int64 vector of int64 scalars, constant if all are.
Value Vector(Translation& t, const std::vector<Value>& sizes);
// Sizes of all axes, each an int64 scalar. Fails if the rank is unknown.
std::vector<Value> SizesOf(Translation& t, const Value& v);
// Elements of a vector of `count` integers as int64 scalars.
std::vector<Value> Parts(Translation& t, const Value& vector, int64_t count);
// Indices as int64. Numbers of uint64 beyond it become 2^62, which is beyond every size.
Value Places(Translation& t, const Value& indices);
// Reshapes to these sizes.
Value ReshapeTo(Translation& t, const Value& v, const std::vector<Value>& sizes);
// Repeats `v` to these sizes; v has as many axes as `sizes`, each of that size or of size 1, or is a scalar.
Value BroadcastTo(Translation& t, const Value& v, const std::vector<Value>& sizes);
// The product of sizes[begin, end).
Value Product(Translation& t, const std::vector<Value>& sizes, size_t begin, size_t end);
// 0, 1, ... up to and without `end`, an int64 vector.
Value Count(Translation& t, const Value& end);
// Numbers 0, 1, ... along axis `axis` of a value of `rank` axes, the others of size 1; int64.
Value CountAlong(Translation& t, const Value& end, int rank, int axis);

// What is declared of an operand or result must be static for `why`; else fails.
void WantStatic(const Op& op, const Value& v, const char* why);
int RankOf(const Op& op, const Value& v);
// An axis of a value of this rank; fails outside.
int AxisOf(const Op& op, int64_t axis, int rank);
// Fails if a part is known to be longer than the axis that it is taken from.
void CheckParts(const Op& op, const std::vector<Value>& sizes, const std::vector<Value>& parts);
bool Contains(const std::vector<int64_t>& all, int64_t one);
// Axes of a value of this rank that are not among `axes`, rising.
std::vector<int64_t> Others(const std::vector<int64_t>& axes, int rank);
std::vector<int64_t> Inverse(const std::vector<int64_t>& perm);

}  // namespace thalweg::stablehlo
