// Checks who else could change a plugin. Loading a plugin runs its code, so anybody who may write
// to its file, or replace it, runs code in this process. Threads: any.
#pragma once
#include <string>

#include "framework/base/status.h"

namespace thalweg {

// Checks the file, its folder and all folders above, with links resolved: each must belong to root
// or to the user of this process, and nobody else may write to it. There are three exceptions: a
// group that is the user's own (the primary one, with the user's name and no other members); a
// folder further up in which only owners may rename and remove (sticky, as /tmp); and folders that
// lead to the runtime's own library, because anybody who may write there controls the process
// already.
// PERMISSION_DENIED names the file or folder; *fix says what to do. *real: the path with links
// resolved, which must be used for loading.
Status CheckPluginWriters(const std::string& path, std::string* real, std::string* fix);

}  // namespace thalweg
