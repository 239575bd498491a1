// Reads the option records of optimizers: defaults for NULL, checks of the size and of ranges.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "ops/library/build.h"
#include "thalweg/tensor.h"

namespace thalweg::library {

// Returns a copy of the caller's record over the defaults of `init`. Fails the scope for a record
// that is too small or has flags.
template <class T>
T ReadOptions(tw_scope* scope, const char* name, const T* options, void (*init)(T*)) {
  T out;
  init(&out);
  if (!options) return out;
  if (options->size < sizeof(T) || options->flags != 0) {
    Fail(scope, TW_INVALID_ARGUMENT,
         std::string(name) + ": fill the record with " + name + "_init first (its size is " + std::to_string(options->size) +
             ", its flags " + std::to_string(options->flags) + ")");
    return out;
  }
  std::memcpy(&out, options, sizeof(T));
  return out;
}

// Formats a number as the user typed it.
inline std::string Text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// Fails the scope unless low <= value < high.
inline void CheckRange(tw_scope* scope, const char* what, double value, double low, double high) {
  if (value >= low && value < high) return;
  Fail(scope, TW_INVALID_ARGUMENT,
       std::string(what) + " is " + Text(value) + "; it must be at least " + Text(low) + " and below " + Text(high));
}

// Fails the scope unless value > 0, or >= 0, and finite.
inline void CheckAbove0(tw_scope* scope, const char* what, double value) {
  if (value > 0 && std::isfinite(value)) return;
  Fail(scope, TW_INVALID_ARGUMENT, std::string(what) + " is " + Text(value) + "; it must be above 0 and finite");
}
inline void CheckNotBelow0(tw_scope* scope, const char* what, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  Fail(scope, TW_INVALID_ARGUMENT, std::string(what) + " is " + Text(value) + "; it must be finite and not below 0");
}

// Fails the scope if `value`, in [0, 1), rounds to 0 (without being 0) or to 1 in the variable's
// type, in which the update op computes: 1e-8 is 0 in half, 0.999 is 1 in bfloat16, and the step
// would be NaN or nothing.
inline void CheckHeld(tw_scope* scope, const char* what, double value, const VariableInfo& variable) {
  const bool half = variable.dtype == TW_HALF, bfloat16 = variable.dtype == TW_BFLOAT16, is_float = variable.dtype == TW_FLOAT;
  const double least = half ? 0x1p-24 : bfloat16 ? 0x1p-133 : is_float ? 0x1p-149 : 0;
  const double below_1 = half ? 0x1p-11 : bfloat16 ? 0x1p-8 : is_float ? 0x1p-24 : 0x1p-53;  // distance from 1 to the next number below
  const bool is_0 = value > 0 && value <= least / 2, is_1 = value < 1 && value >= 1 - below_1 / 2;
  if (!is_0 && !is_1) return;
  Fail(scope, TW_INVALID_ARGUMENT,
       std::string(what) + " is " + Text(value) + ", which is " + (is_0 ? "0" : "1") + " in " + tw_dtype_name(variable.dtype) +
           ", the type of variable '" + variable.name + "'; take " + (is_0 ? "a larger one" : "a smaller one") +
           " or keep the variable in float");
}

// Returns the learning rate of an option record, or the default, as a double, which is then cast to
// each variable's type.
inline tw_output RateOr(tw_scope* scope, tw_output given, double otherwise) {
  return given ? given : tw_scope_scalar(scope, TW_DOUBLE, otherwise);
}

}  // namespace thalweg::library
