// Shared parts of shape rules: shapes of possibly unknown rank, values of inputs, broadcasting,
// axes, windows. For shape callbacks only; every check throws tw::Error{TW_INVALID_ARGUMENT} with a
// text that names the values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::ops {

using Dims = std::vector<int64_t>;      // below 0: an unknown size
using MaybeDims = std::optional<Dims>;  // nullopt: unknown rank

inline bool Known(int64_t size) { return size >= 0; }
// True if both sizes are certainly equal: equal numbers or the same symbol.
inline bool SameSize(int64_t a, int64_t b) { return a == b && a != -1; }
bool AllKnown(const MaybeDims& dims);
bool SameShape(const MaybeDims& a, const MaybeDims& b);

[[noreturn]] void Fail(const std::string& text);
std::string Text(const MaybeDims& dims);
std::string Text(const Dims& values);
std::string Text(double value);  // shortest text for this number, as a float if it is one
// Returns the name of a type in schemas.
std::string TypeName(uint32_t type);

MaybeDims ToDims(const tw_shape& shape);
MaybeDims In(const tw::Shape& s, uint32_t i);
void Set(const tw::Shape& s, uint32_t o, const MaybeDims& dims);

// Returns the element of input i, which must be a scalar; nullopt if the value is unknown.
std::optional<int64_t> ScalarValue(const tw::Shape& s, uint32_t i, const char* name);
// Returns the sizes in a size vector; unknown sizes if only its length is known. Refuses negative
// sizes.
MaybeDims ShapeValue(const tw::Shape& s, uint32_t i, const char* name);

void WantRank(const tw::Shape& s, uint32_t i, int32_t rank, const char* name);
void WantRankAtLeast(const tw::Shape& s, uint32_t i, int32_t rank, const char* name);
inline void WantScalar(const tw::Shape& s, uint32_t i, const char* name) { WantRank(s, i, 0, name); }
inline void WantVector(const tw::Shape& s, uint32_t i, const char* name) { WantRank(s, i, 1, name); }
// Converts an axis counted from either end to one counted from the front. REQUIRES: rank is known.
int64_t Axis(int64_t axis, int64_t rank, const char* name);

// Merges two sizes or shapes that must agree. what: names the two, for instance "batch sizes of 'x'
// and 'y'".
int64_t MergeSize(const tw::Shape& s, int64_t a, int64_t b, const std::string& what);
MaybeDims Merge(const tw::Shape& s, const MaybeDims& a, const MaybeDims& b, const std::string& what);
// Returns the number of elements; -1 if a size is unknown. Refuses products that overflow.
int64_t Product(const tw::Shape& s, const Dims& dims);
// Returns dims[from .. to); both count from the front.
Dims Sub(const Dims& dims, size_t from, size_t to);
Dims Join(const Dims& a, const Dims& b);

// NumPy's broadcasting of two shapes. Broadcastable: false if the known sizes exclude it.
bool Broadcastable(const MaybeDims& a, const MaybeDims& b);
MaybeDims Broadcast(const MaybeDims& a, const MaybeDims& b);

// Complete rules. BinaryRule: output 0 is input 0 broadcast with input 1.
void BinaryRule(const tw::Shape& s);
// SameShapesRule: output 0 has the shape that all inputs share.
void SameShapesRule(const tw::Shape& s);

}  // namespace thalweg::ops
