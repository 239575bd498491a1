// Reading the option records of optimizers: defaults for NULL, the size and ranges checked.
#pragma once
#include <cmath>
#include <cstring>
#include <string>

#include "ops/library/build.h"

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

// Fails the scope unless low <= value < high.
inline void CheckRange(tw_scope* scope, const char* what, double value, double low, double high) {
  if (value >= low && value < high) return;
  Fail(scope, TW_INVALID_ARGUMENT,
       std::string(what) + " is " + std::to_string(value) + "; it must be at least " + std::to_string(low) + " and below " +
           std::to_string(high));
}

}  // namespace thalweg::library
