// A file system that is confined to a folder: no path reads, writes or examines anything outside
// it.
//
// A path is relative to the folder, or absolute and begins with the folder's name. Each part of it
// is opened beneath the previous part, from a descriptor of the folder, so that no concurrent
// rename or link leads outside. PERMISSION_DENIED for: `..`, any symbolic link on the way or at the
// end, other absolute paths, and reads of files with several names (hard links), one of which may
// be outside. Mounts inside the folder are part of it.
// Threads: as file_system.h.
#pragma once
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/files/file_system.h"

namespace thalweg {

// The way to resolve a path: by the kernel in one call (openat2, Linux 5.6), or part by part. Both
// enforce the same rules.
enum class PathWalk { kBest, kByParts };

// folder: as the program names it, links and `..` included; must exist. Errors: those of the
// system.
StatusOr<std::unique_ptr<FileSystem>> OpenFilesBeneath(const std::string& folder, PathWalk walk = PathWalk::kBest);

// The same for a folder `scheme://...` of `files`, which must outlive it. Paths are compared as
// texts: relative to the folder, or with its scheme and name in front; the plugin decides whether a
// name leads elsewhere. Errors: INVALID_ARGUMENT for a scheme without a folder.
StatusOr<std::unique_ptr<FileSystem>> FilesBeneathScheme(const std::string& folder, FileSystem* files);

}  // namespace thalweg
