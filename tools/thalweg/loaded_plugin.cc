#include "loaded_plugin.h"

#include <cstdlib>
#include <filesystem>

#include "utf8.h"

namespace thalweg::cli {

std::string ContentsOf(const tw_plugins* plugins, uint32_t i) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const uint32_t ops = tw_plugins_op_count(plugins, i)) add(std::to_string(ops) + " ops");
  if (const uint32_t kernels = tw_plugins_kernel_count(plugins, i)) add(std::to_string(kernels) + " kernels");
  for (uint32_t k = 0; k < tw_plugins_device_kind_count(plugins, i); ++k)
    add((k ? "" : "devices ") + std::string(tw_plugins_device_kind(plugins, i, k)));
  for (uint32_t k = 0; k < tw_plugins_role_count(plugins, i); ++k) add(OneLine(tw_plugins_role(plugins, i, k)));
  return text;
}

LoadedPlugin LoadPlugin(const Args& args, const std::string& file) {
  const std::string path = std::filesystem::canonical(file).string();
  if (path.find(':') != path.npos)
    throw std::runtime_error("'" + path + "' has a colon, which separates folders of plugins; use another folder");
  setenv("THALWEG_PLUGIN_PATH", ("only:" + path + ":").c_str(), 1);
  const tw::Runtime runtime = MakeRuntime(args);
  const Plugins plugins(runtime);
  const tw_plugins* p = plugins.c();
  for (uint32_t i = 0; i < tw_plugins_count(p); ++i) {
    if (tw_plugins_path(p, i) != path) continue;
    const uint32_t state = tw_plugins_state(p, i);
    if (state != TW_PLUGIN_LOADED && state != TW_PLUGIN_KNOWN)
      throw UnusablePlugin("'" + file + "' cannot be used: " + tw_plugins_reason(p, i) + "; " + tw_plugins_fix(p, i));
    return {tw_plugins_id(p, i), tw_plugins_version(p, i), tw_plugins_build(p, i), ContentsOf(p, i)};
  }
  throw UnusablePlugin("'" + file + "' is no plugin");
}

}  // namespace thalweg::cli
