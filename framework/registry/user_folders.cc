#include "framework/registry/user_folders.h"

#include <cstdlib>

namespace thalweg {

std::string UserPluginFolder() {
  const char* data = secure_getenv("XDG_DATA_HOME");
  if (data && *data) return std::string(data) + "/thalweg/plugins";
  const char* home = secure_getenv("HOME");
  return home && *home ? std::string(home) + "/.local/share/thalweg/plugins" : "";
}

std::string UserCacheFolder() {
  const char* cache = secure_getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/thalweg";
  const char* home = secure_getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/thalweg" : "";
}

}  // namespace thalweg
