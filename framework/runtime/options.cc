#include "framework/runtime/options.h"

#include <iterator>

namespace thalweg {
namespace {

bool SetMemoryLimit(RuntimeOptions* options, const tw_option& about, std::string_view key, std::string_view value) {
  int64_t bytes = 0;
  if (!ParseOption(about, value, &bytes)) return false;
  std::string kind(key.substr(key.find('.') + 1));
  for (char& c : kind) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  options->memory_limit[kind] = uint64_t(bytes);
  return true;
}

bool SetPluginSetting(RuntimeOptions* options, const tw_option&, std::string_view key, std::string_view value) {
  options->plugin_settings[std::string(key)] = value;
  return true;
}

constexpr const char* kProbeChoices[] = {"refuse", "trust", "in_process"};  // in the order of PluginProbe

bool SetProbe(RuntimeOptions* options, const tw_option& about, std::string_view, std::string_view value) {
  std::string text;
  if (!ParseOption(about, value, &text)) return false;
  for (size_t i = 0; i < std::size(kProbeChoices); ++i) {
    if (text == kProbeChoices[i]) options->plugin_probe = PluginProbe(i);
  }
  return true;
}

constexpr int64_t kMostThreads = 4096;  // a larger number is probably a typing error

}  // namespace

std::span<const OptionRow<RuntimeOptions>> RuntimeOptionRows() {
  using O = RuntimeOptions;
  static constexpr OptionRow<O> rows[] = {
      {IntOption("threads", "0", 0, kMostThreads,
                 "threads that compute at once, the caller's included; 0: as many as the CPUs that the process may use"),
       SetMember<&O::threads>},
      {BoolOption("load_plugins", "true", "look for plugins and load them; false leaves only those that are linked in or loaded by name"),
       SetMember<&O::load_plugins>},
      {ListOption("plugin_path", ':', "folders or .so files to look in before the default places, separated by ':'"),
       SetMember<&O::plugin_path>},
      {ListOption("disabled_plugins", ',', "patterns (as for file names) of plugin ids or files that are not loaded, separated by ','"),
       SetMember<&O::disabled_plugins>},
      {BoolOption("trust_plugin_folders", "false", "load plugins also where others than root and the user may write"),
       SetMember<&O::trust_plugin_folders>},
      {ChoiceOption("plugin_probe", "refuse", kProbeChoices,
                    "what to do with a plugin that is new where the helper that looks at it first cannot run: refuse it, trust it, or look "
                    "at it in_process"),
       SetProbe},
      {TextOption("plugin_allow", "", "a file with the SHA-256 of each plugin that may be loaded, as sha256sum prints it; empty: all may"),
       SetMember<&O::plugin_allow>},
      {ListOption("plugin_prefer", ',', "ids of plugins that win where two bring the same op, kernel or scheme, separated by ','"),
       SetMember<&O::plugin_prefer>},
      {TextOption("plugin_cache", "", "folder where what is known of plugins is kept; empty: thalweg in the user's cache; off: nowhere"),
       SetMember<&O::plugin_cache>},
      {BytesOption(
           "memory_limit.<KIND>", "0",
           "most bytes to hold on each device of a kind, such as memory_limit.KIND=2G, or on one, such as memory_limit.KIND:1=2G; 0: "
           "no limit"),
       SetMemoryLimit},
      {ListOption(
           "visible_devices", ',',
           "devices to use, as kinds (KIND) or one of a kind (KIND:1), separated by ','; those left are numbered anew from 0. Devices "
           "with host memory are always there. Empty: what the environment variable THALWEG_VISIBLE_DEVICES lists, or all"),
       SetMember<&O::visible_devices>},
      {TextOption("compile_cache", "",
                  "a folder in which what graph compilers made is kept for other processes; only the user may be able to write there; "
                  "empty: none"),
       SetMember<&O::compile_cache>},
      {TextOption("plugin.<id>.<key>", "", "a setting of a plugin; its documentation says which there are"), SetPluginSetting},
  };
  return rows;
}

Status SetRuntimeOption(RuntimeOptions* options, std::string_view key, std::string_view value) {
  return SetOption("runtime", RuntimeOptionRows(), options, key, value);
}

}  // namespace thalweg
