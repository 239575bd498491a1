// A file system that only reads: every call that would change something is PERMISSION_DENIED.
// Threads: as file_system.h.
#pragma once
#include <memory>

#include "framework/files/file_system.h"

namespace thalweg {

std::unique_ptr<FileSystem> ReadOnlyFiles(std::unique_ptr<FileSystem> files);

}  // namespace thalweg
