// What shape rules share: shapes of perhaps unknown rank, values of inputs, broadcasting, axes, windows.
// For shape callbacks only; everything that refuses throws tw::Error{TW_INVALID_ARGUMENT} with a text that names the values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::ops {

using Dims = std::vector<int64_t>;      // below 0: a size that is not known
using MaybeDims = std::optional<Dims>;  // nullopt: not even the rank is known

inline bool Known(int64_t size) { return size >= 0; }
// True where both sizes are certainly the same: equal numbers or the same symbol.
inline bool SameSize(int64_t a, int64_t b) { return a == b && a != -1; }
bool AllKnown(const MaybeDims& dims);
bool SameShape(const MaybeDims& a, const MaybeDims& b);

[[noreturn]] void Fail(const std::string& text);
std::string Text(const MaybeDims& dims);
std::string Text(const Dims& values);
std::string Text(double value);  // the shortest text that stands for this number, as a float where it is one
// As schemas spell it.
std::string TypeName(uint32_t type);

MaybeDims ToDims(const tw_shape& shape);
MaybeDims In(const tw::Shape& s, uint32_t i);
void Set(const tw::Shape& s, uint32_t o, const MaybeDims& dims);

// The only element of input i, which must be a scalar; nullopt where the value is not known.
std::optional<int64_t> ScalarValue(const tw::Shape& s, uint32_t i, const char* name);
// A size vector: the sizes where the value is known, as many unknown ones where only its length is. Refuses negative sizes.
MaybeDims ShapeValue(const tw::Shape& s, uint32_t i, const char* name);

void WantRank(const tw::Shape& s, uint32_t i, int32_t rank, const char* name);
void WantRankAtLeast(const tw::Shape& s, uint32_t i, int32_t rank, const char* name);
inline void WantScalar(const tw::Shape& s, uint32_t i, const char* name) { WantRank(s, i, 0, name); }
inline void WantVector(const tw::Shape& s, uint32_t i, const char* name) { WantRank(s, i, 1, name); }
// An axis counted from either end becomes one counted from the front. REQUIRES: rank is known.
int64_t Axis(int64_t axis, int64_t rank, const char* name);

// One size or shape out of two that must agree. what: says who disagrees, for instance "batch sizes of 'x' and 'y'".
int64_t MergeSize(const tw::Shape& s, int64_t a, int64_t b, const std::string& what);
MaybeDims Merge(const tw::Shape& s, const MaybeDims& a, const MaybeDims& b, const std::string& what);
// The number of elements; -1 where a size is unknown. Refuses products that overflow.
int64_t Product(const tw::Shape& s, const Dims& dims);
// dims[from .. to), to counted from the front.
Dims Sub(const Dims& dims, size_t from, size_t to);
Dims Join(const Dims& a, const Dims& b);

// NumPy's broadcasting of two shapes. Compatible: whether it can work, as far as known.
bool Broadcastable(const MaybeDims& a, const MaybeDims& b);
MaybeDims Broadcast(const MaybeDims& a, const MaybeDims& b);

// Whole rules. BinaryRule: output 0 is input 0 broadcast with input 1.
void BinaryRule(const tw::Shape& s);
// SameShapesRule: output 0 has the shape that all inputs share.
void SameShapesRule(const tw::Shape& s);

}  // namespace thalweg::ops
