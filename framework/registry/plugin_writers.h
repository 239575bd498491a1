// Who else could change a plugin: loading one runs its code, so whoever may write to its file, or put another in its place, runs code in
// this process.
// Threads: any.
#pragma once
#include <string>

#include "framework/base/status.h"

namespace thalweg {

// Looks at the file, the folder that holds it and those above, links resolved: each must belong to root or to the user of this process, and
// be writable by nobody else. Three things are fine all the same: a group that is the user's own (the primary one, of the user's name,
// without other members); a folder further up in which only owners may rename and remove (sticky, as /tmp); and folders that lead to the
// runtime's own library, since whoever may write there has the process already.
// PERMISSION_DENIED names file or folder; *fix says what to do. *real: the path without links, which is the one to load.
Status CheckPluginWriters(const std::string& path, std::string* real, std::string* fix);

}  // namespace thalweg
