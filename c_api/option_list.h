// Lists of options, "key=value" each, for runtimes, sessions and servers.
#pragma once
#include <cstdint>
#include <string_view>

#include "c_api/handles.h"
#include "framework/base/status.h"

namespace thalweg {

// Sets each option with `set`, which checks it.
template <class Options>
Status SetOptions(const char* const* options, uint32_t n, Status (*set)(Options*, std::string_view, std::string_view), Options* to) {
  for (uint32_t i = 0; i < n; ++i) {
    std::string_view key, value;
    RETURN_IF_ERROR(SplitOption(options[i], &key, &value));
    RETURN_IF_ERROR(set(to, key, value));
  }
  return Status();
}

}  // namespace thalweg
