// What a runtime can be told.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/option.h"
#include "framework/base/status.h"
#include "framework/registry/plugin_loading.h"
#include "thalweg/plugin/plugin.h"
#include "thalweg/thread_pool.h"

namespace thalweg {

// Names, defaults and meanings stand in the rows.
struct RuntimeOptions {
  uint32_t threads = 0;  // 0: as many as the CPUs we may use
  bool load_plugins = true;
  std::vector<std::string> plugin_path;       // in front of the default search
  std::vector<std::string> disabled_plugins;  // patterns
  bool trust_plugin_folders = false;
  PluginProbe plugin_probe = PluginProbe::kRefuse;
  std::string plugin_allow;                            // file of digests; empty: all are allowed
  std::vector<std::string> plugin_prefer;              // ids that win where two plugins bring the same
  std::string plugin_cache;                            // folder; empty: the user's; "off": none
  std::map<std::string, uint64_t> memory_limit;        // by device kind, or "KIND:1" for one device; bytes
  std::vector<std::string> visible_devices;            // "KIND" or "KIND:1"; empty: what THALWEG_VISIBLE_DEVICES lists, or all
  std::map<std::string, std::string> plugin_settings;  // "plugin.<id>.<key>"
  std::string compile_cache;                           // folder; empty: none
  // Linked into the program and loaded first, in this order; a name for messages. One that fails is an error of Create.
  struct StaticPlugin {
    std::string name;
    tw_query_fn query;
    bool checked = false;  // its schemas and specs are known to be right; they are read when they are first used
  };
  std::vector<StaticPlugin> static_plugins;
  void (*log)(void* arg, uint32_t level, const char* text, uint64_t len) = nullptr;  // see Runtime::SetLog
  void* log_arg = nullptr;
  uint32_t log_level = 0;
  std::optional<tw_thread_pool> program_threads;  // that compute, instead of threads of the runtime's
};
std::span<const OptionRow<RuntimeOptions>> RuntimeOptionRows();
// INVALID_ARGUMENT naming the option, the value and what it takes.
Status SetRuntimeOption(RuntimeOptions* options, std::string_view key, std::string_view value);

}  // namespace thalweg
