// Sealing: copies a plugin's record into our memory, cut or zero-extended to our size, and checks
// required entries. After that no code needs to check sizes or NULL. Threads: any.
#pragma once
#include <algorithm>
#include <cstring>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg {

// Every field behind the head has eight bytes (or is a pair of four), so cutting to a multiple of
// eight leaves out exactly the fields that the plugin covers only partly.
template <class T>
Status Seal(const T* d, std::string_view what, T* out) {
  static_assert(sizeof(T) % 8 == 0);
  if (!d) return InvalidArgument(what, " is NULL");
  if (d->size < 2 * sizeof(uint32_t))
    return InvalidArgument(what, ": size is ", d->size, ", less than its own head; fill it with TW_SIZED");
  if (d->flags != 0) return InvalidArgument(what, ": flags ", d->flags, " are unknown to this runtime");
  *out = T{};
  std::memcpy(static_cast<void*>(out), d, std::min(size_t{d->size} / 8 * 8, sizeof(T)));
  out->size = sizeof(T);
  return Status();
}

inline StatusOr<std::string_view> SealText(const char* text, uint64_t len, std::string_view what) {
  constexpr uint64_t kLongest = 1 << 20;  // far beyond any schema; an uninitialised length is probably larger
  if (!text || len == 0) return InvalidArgument(what, " is missing");
  if (len > kLongest) return InvalidArgument(what, " has ", len, " bytes; the most is ", kLongest);
  return std::string_view(text, len);
}

inline Status Needs(bool present, std::string_view what, std::string_view entry) {
  return present ? Status() : InvalidArgument(what, ": required entry '", entry, "' is missing");
}

}  // namespace thalweg
