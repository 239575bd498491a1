// A file system that ends at a folder: whatever a path says, nothing outside is read, written or looked at.
//
// A path is relative to the folder, or absolute and begins with the folder's name. Every part of it is opened beneath the part before, from
// a descriptor of the folder, so that nothing that is renamed or linked meanwhile leads out. Refused with PERMISSION_DENIED: `..`, any
// symbolic link on the way or at the end, other absolute paths, and for reading files with several names (hard links), one of which may be
// outside. Mounts inside the folder are part of it.
// Threads: as file_system.h.
#pragma once
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/io/file_system.h"

namespace thalweg {

// How a path is walked: by the kernel in one call (openat2, Linux 5.6), or part by part. Both hold the same.
enum class PathWalk { kBest, kByParts };

// folder: as the program names it, links and `..` included; must be there. Errors: those of the system.
StatusOr<std::unique_ptr<FileSystem>> OpenFilesBeneath(const std::string& folder, PathWalk walk = PathWalk::kBest);

// The same for a folder `scheme://...` of `files`, which must outlive it. Paths are compared as texts: relative to the folder, or with its
// scheme and name in front; whether a name leads elsewhere is up to the plugin. Errors: INVALID_ARGUMENT for a scheme without a folder.
StatusOr<std::unique_ptr<FileSystem>> FilesBeneathScheme(const std::string& folder, FileSystem* files);

}  // namespace thalweg
