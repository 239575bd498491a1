// Files of this machine by their descriptors: the parts of the file systems in this folder.
// Threads: as file_system.h.
#pragma once
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/descriptor.h"
#include "framework/base/status.h"
#include "framework/files/file_system.h"

namespace thalweg {

// "cannot write '/data/x': No space left on device (errno 28)".
Status SystemError(int error, std::string_view verb, const std::string& path);
// INVALID_ARGUMENT for a path that is empty or contains a NUL character.
Status CheckPath(const std::string& path);
// PERMISSION_DENIED: "'x' " and the reason.
Status Denied(const std::string& path, std::string_view why);

// path: for messages, and for IsAt to compare.
std::unique_ptr<WritableFile> WriteTo(Descriptor fd, std::string path);
// INVALID_ARGUMENT if it is no regular file.
StatusOr<std::unique_ptr<ReadableFile>> ReadFrom(Descriptor fd, std::string path);
Status SyncFolder(const Descriptor& folder, const std::string& path);
// Waits as FileSystem::LockFolderOf does.
StatusOr<std::unique_ptr<FolderLock>> LockFolder(Descriptor folder, const std::string& path);

}  // namespace thalweg
