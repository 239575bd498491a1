#include "framework/registry/plugin_search.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "framework/base/strings.h"
#include "framework/registry/own_file.h"
#include "framework/registry/user_folders.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;

// Returns thalweg/`name` beside the library (or program) of this code; "" if its place cannot be
// determined.
std::string BesideUs(const char* name) {
  const fs::path self = OwnFile();
  return self.empty() ? "" : (self.parent_path() / "thalweg" / name).string();
}

std::string FolderBesideUs() { return BesideUs("plugins"); }

// A default folder is searched only if it exists. A missing folder that somebody named is reported.
void AddIfThere(std::vector<std::string>* folders, const std::string& folder) {
  std::error_code error;
  if (!folder.empty() && fs::is_directory(folder, error)) folders->push_back(folder);
}

}  // namespace

// secure_getenv: in a process with more rights than its starter the environment is not trusted.
PluginSearch DefaultPluginSearch() {
  PluginSearch search;
  const char* variable = secure_getenv("THALWEG_PLUGIN_PATH");
  std::string_view rest = variable ? variable : "";
  bool only = rest.substr(0, 5) == "only:";
  if (only) rest.remove_prefix(5);
  for (bool more = !rest.empty(); more;) {
    size_t colon = rest.find(':');
    std::string_view folder = rest.substr(0, colon);
    if (folder.empty()) {
      AddIfThere(&search.folders, FolderBesideUs());
    } else {
      search.folders.emplace_back(folder);
    }
    more = colon != rest.npos;
    if (more) rest.remove_prefix(colon + 1);
  }
  if (only) return search;
  AddIfThere(&search.folders, UserPluginFolder());
  AddIfThere(&search.folders, FolderBesideUs());
  return search;
}

std::string PluginHelperBesideUs() { return BesideUs("thalweg-probe"); }

}  // namespace thalweg
