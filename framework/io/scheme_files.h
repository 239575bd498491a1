// Dispatches paths: `scheme://...` to the file system of the plugin that has the scheme, all others
// to the machine's own files.
// Threads: as file_system.h.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/files/file_system.h"
#include "framework/io/plugin_files.h"

namespace thalweg {

class Registry;

class SchemeFiles final : public FileSystem {
 public:
  // registry: must outlive this.
  explicit SchemeFiles(const Registry* registry) : registry_(registry) {}
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  // INVALID_ARGUMENT if the two are in different file systems.
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  Status MakeFolder(const std::string& folder) override;
  Status RemoveFolder(const std::string& folder) override;
  Status SyncFolderOf(const std::string& path) override;
  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) override;

 private:
  // Returns the file system of a path. FAILED_PRECONDITION, listing the known schemes, if no plugin
  // has its scheme.
  StatusOr<std::shared_ptr<FileSystem>> Of(const std::string& path);
  const Registry* const registry_;
  FolderLocks locks_;
};

}  // namespace thalweg
