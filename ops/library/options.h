// Reading the option records of optimizers: defaults for NULL, the size and ranges checked.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "ops/library/build.h"
#include "thalweg/tensor.h"

namespace thalweg::library {

// A copy of the caller's record over the defaults that `init` fills in. Fails the scope for a record that is too small or has flags.
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

// A number as it was typed.
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

// Fails the scope where value, in [0, 1), is 0 though it was not, or 1, in the type of the variable, which the update op computes its step
// with: 1e-8 is 0 in half, 0.999 is 1 in bfloat16, and the step would be NaN or nothing.
inline void CheckHeld(tw_scope* scope, const char* what, double value, const VariableInfo& variable) {
  const bool half = variable.dtype == TW_HALF, bfloat16 = variable.dtype == TW_BFLOAT16, is_float = variable.dtype == TW_FLOAT;
  const double least = half ? 0x1p-24 : bfloat16 ? 0x1p-133 : is_float ? 0x1p-149 : 0;
  const double below_1 = half ? 0x1p-11 : bfloat16 ? 0x1p-8 : is_float ? 0x1p-24 : 0x1p-53;  // from 1 to the next number below
  const bool is_0 = value > 0 && value <= least / 2, is_1 = value < 1 && value >= 1 - below_1 / 2;
  if (!is_0 && !is_1) return;
  Fail(scope, TW_INVALID_ARGUMENT,
       std::string(what) + " is " + Text(value) + ", which is " + (is_0 ? "0" : "1") + " in " + tw_dtype_name(variable.dtype) +
           ", the type of variable '" + variable.name + "'; take " + (is_0 ? "a larger one" : "a smaller one") +
           " or keep the variable in float");
}

// The learning rate of an option record, or the default; in double, from which it is cast to each variable's type.
inline tw_output RateOr(tw_scope* scope, tw_output given, double otherwise) {
  return given ? given : tw_scope_scalar(scope, TW_DOUBLE, otherwise);
}

}  // namespace thalweg::library
