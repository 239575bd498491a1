// Where plugins, the helper that looks at them, and what is known of them are looked for.
#pragma once
#include <string>
#include <vector>

namespace thalweg {

struct PluginSearch {
  std::vector<std::string> folders;   // in order; a name that ends in .so is a file
  std::vector<std::string> disabled;  // patterns (fnmatch) of ids or file names that are left out
};
// THALWEG_PLUGIN_PATH (`:` between folders), the user's folder, then the folder beside libthalweg.so. An empty element of the variable
// stands for the folder beside the library; with `THALWEG_PLUGIN_PATH=only:DIR` nothing else is searched. A process that has more rights
// than who started it (set-user-ID, file capabilities) looks only beside the library.
PluginSearch DefaultPluginSearch();

// thalweg/thalweg-probe beside libthalweg.so; empty if that cannot be told.
std::string PluginHelperBesideUs();
// thalweg below XDG_CACHE_HOME or ~/.cache; empty if there is no such place.
std::string UserCacheFolder();

}  // namespace thalweg
