// EagerOptions: the options of an eager context. Threads: values, not shared.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "framework/base/option.h"
#include "framework/base/status.h"

namespace thalweg {

// EagerOptionRows has names, defaults and meanings.
struct EagerOptions {
  uint32_t max_entries = 1024;
  std::string container;  // empty: the context's own
  std::string device;
  std::string fallback = "fail";
  uint32_t threads = 0;
  uint64_t memory_limit = 0;
  std::string check_values = "off";  // see SessionOptions
};
std::span<const OptionRow<EagerOptions>> EagerOptionRows();
// Errors: INVALID_ARGUMENT naming the option, the value and the values that it takes.
Status SetEagerOption(EagerOptions* options, std::string_view key, std::string_view value);

}  // namespace thalweg
