// The places to search for plugins, and the helper that examines them. Threads: any.
#pragma once
#include <string>
#include <vector>

namespace thalweg {

struct PluginSearch {
  std::vector<std::string> folders;   // in order; a name that ends in .so is a file
  std::vector<std::string> disabled;  // patterns (fnmatch) of ids or file names to leave out
};
// Returns THALWEG_PLUGIN_PATH (folders separated by `:`), the user's folder, then the folder beside
// libthalweg.so. An empty element of the variable means the folder beside the library;
// `THALWEG_PLUGIN_PATH=only:DIR` excludes the other places. A process with more rights than the
// user who started it (set-user-ID, file capabilities) searches only beside the library.
PluginSearch DefaultPluginSearch();

// Returns thalweg/thalweg-probe beside libthalweg.so; "" if its place cannot be determined.
std::string PluginHelperBesideUs();

}  // namespace thalweg
