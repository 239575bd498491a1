// The user's folders for plugins and for what is kept between processes. The environment of a process
// with more rights than the user who started it (set-user-ID, file capabilities) is not trusted: such
// a process has neither folder. Threads: any.
#pragma once
#include <string>

namespace thalweg {

// Returns thalweg/plugins below XDG_DATA_HOME or ~/.local/share; "" if there is no such place.
std::string UserPluginFolder();
// Returns thalweg below XDG_CACHE_HOME or ~/.cache; "" if there is no such place.
std::string UserCacheFolder();

}  // namespace thalweg
