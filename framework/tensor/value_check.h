// Finds NaN and infinities in values, for sessions that look for the first value that is not finite.
// Threads: any.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "thalweg/plugin/tensor.h"

namespace thalweg {

enum class ValueCheck : uint8_t { kOff, kNan, kFinite };

// Returns kOff for "off", kNan for "nan", kFinite for "finite". REQUIRES: it is one of these.
ValueCheck ValueCheckOf(std::string_view text);

// Returns true if an element is NaN or, for kFinite, infinite. Returns false for types without such
// elements. REQUIRES: the value is dense and in host memory.
bool IsRefused(const tw_view& value, ValueCheck check);

// Describes the elements of a value of numbers, with a space in front: " from -1 to 3 with 2 NaN".
// The range is that of the finite elements. Returns "" for other types and for a value without
// elements. REQUIRES: as for IsRefused.
std::string RangeText(const tw_view& value);

// Returns the indices of the first refused element: "[0, 3]"; "[]" for a scalar. REQUIRES: IsRefused.
std::string FirstRefused(const tw_view& value, ValueCheck check);

}  // namespace thalweg
