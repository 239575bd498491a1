// The facts that a runtime reports about the file of a plugin.
#pragma once
#include <stdexcept>
#include <string>

#include "handles.h"

namespace thalweg::cli {

struct LoadedPlugin {
  std::string id, version;
  std::string build;     // compiler, ABI and processor, as tw_plugins_build gives them
  std::string contents;  // "2 ops, 4 kernels, devices GPU"
};

// The runtime does not take the file; the text says why, and what to do.
struct UnusablePlugin : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns what plugin `i` of the list brings, in words.
std::string ContentsOf(const tw_plugins* plugins, uint32_t i);

// Has the runtime examine the file in a helper process, beside the plugins that come with the library
// and no others. Sets THALWEG_PLUGIN_PATH of this process. Throws UnusablePlugin.
LoadedPlugin LoadPlugin(const Args& args, const std::string& file);

}  // namespace thalweg::cli
