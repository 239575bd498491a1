// Checks a plugin file before the dynamic loader sees it, and refuses what would end the process or
// give an obscure error. Threads: any.
#pragma once
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace thalweg {

// The metadata of a shared library.
struct PluginFile {
  std::vector<std::string> needed;  // DT_NEEDED: libraries that it needs
};

// NOT_FOUND; INVALID_ARGUMENT if the file is not a shared library, is for another machine or is cut
// short; the message says which.
StatusOr<PluginFile> ReadPluginFile(const std::string& path);

// Returns the sanitizer that the file was built with, judged by the sanitizer runtime among its
// libraries: "address", "thread", ...; "" if none.
std::string SanitizerOf(const PluginFile& file);
// Returns the sanitizer that this code was built with; "" if none.
std::string_view HostSanitizer();

}  // namespace thalweg
