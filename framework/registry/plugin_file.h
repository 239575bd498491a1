// A look at a plugin file before the dynamic loader sees it: what would end the process or make a riddle of an error is refused here.
#pragma once
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace thalweg {

// What a shared library says about itself.
struct PluginFile {
  std::vector<std::string> needed;  // DT_NEEDED: libraries that come with it
};

// Errors say what the file is instead: NOT_FOUND, INVALID_ARGUMENT (no shared library, another machine's, cut short).
StatusOr<PluginFile> ReadPluginFile(const std::string& path);

// The sanitizer that the file was built with, judged by the runtime that it brings along: "address", "thread", ...; empty: none.
std::string SanitizerOf(const PluginFile& file);
// The same of the code that asks.
std::string_view HostSanitizer();

}  // namespace thalweg
