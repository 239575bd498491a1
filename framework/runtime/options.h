// The options of a runtime. Threads: a value.
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

// RuntimeOptionRows gives the names, defaults and meanings.
struct RuntimeOptions {
  uint32_t threads = 0;  // 0: as many as the CPUs that the process may use
  bool load_plugins = true;
  std::vector<std::string> plugin_path;       // searched before the default places
  std::vector<std::string> disabled_plugins;  // patterns
  bool trust_plugin_folders = false;
  PluginProbe plugin_probe = PluginProbe::kRefuse;
  std::string plugin_allow;                            // file of digests; empty: all plugins are allowed
  std::vector<std::string> plugin_prefer;              // ids that win if two plugins provide the same thing
  std::string plugin_cache;                            // folder; empty: in the user's cache; "off": none
  std::map<std::string, uint64_t> memory_limit;        // by device kind, or "KIND:1" for one device; bytes
  std::vector<std::string> visible_devices;            // "KIND" or "KIND:1"; empty: the list in THALWEG_VISIBLE_DEVICES, or all
  std::map<std::string, std::string> plugin_settings;  // "plugin.<id>.<key>"
  std::string compile_cache;                           // folder; empty: none
  // Plugins linked into the program; they are loaded first, in this order. `name` is for messages.
  // Create fails if one of them fails.
  struct StaticPlugin {
    std::string name;
    tw_query_fn query;
    bool checked = false;  // its schemas and specs are known to be valid, so they are parsed on first use
  };
  std::vector<StaticPlugin> static_plugins;
  void (*log)(void* arg, uint32_t level, const char* text, uint64_t len) = nullptr;  // see Runtime::SetLog
  void* log_arg = nullptr;
  uint32_t log_level = 0;
  std::optional<tw_thread_pool> program_threads;  // the program's threads, used instead of the runtime's own
};
std::span<const OptionRow<RuntimeOptions>> RuntimeOptionRows();
// INVALID_ARGUMENT names the option, the value and the accepted values.
Status SetRuntimeOption(RuntimeOptions* options, std::string_view key, std::string_view value);

}  // namespace thalweg
