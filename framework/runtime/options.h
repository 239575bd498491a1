// What a runtime can be told.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/option.h"
#include "framework/base/status.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

// Names, defaults and meanings stand in the rows.
struct RuntimeOptions {
  uint32_t threads = 0;  // 0: as many as the CPUs we may use
  bool load_plugins = true;
  std::vector<std::string> plugin_path;                // in front of the default search
  std::vector<std::string> disabled_plugins;           // patterns
  std::map<std::string, uint64_t> memory_limit;        // by device kind, bytes
  std::map<std::string, std::string> plugin_settings;  // "plugin.<id>.<key>"
  // Linked into the program and loaded first, in this order; a name for messages. One that fails is an error of Create.
  std::vector<std::pair<std::string, tw_query_fn>> static_plugins;
};
std::span<const OptionRow<RuntimeOptions>> RuntimeOptionRows();
// INVALID_ARGUMENT naming the option, the value and what it takes.
Status SetRuntimeOption(RuntimeOptions* options, std::string_view key, std::string_view value);

}  // namespace thalweg
