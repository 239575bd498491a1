// A FileSystem over the file system of a plugin.
// Errors name the path, the scheme and the plugin.
// Threads: as file_system.h.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/files/file_system.h"
#include "framework/registry/role.h"

namespace thalweg {

// One lock per folder, within this process.
class FolderLocks {
 public:
  FolderLocks();
  ~FolderLocks();
  // Waits as FileSystem::LockFolderOf does.
  StatusOr<std::unique_ptr<FolderLock>> Take(const std::string& folder);

 private:
  struct Held;
  const std::shared_ptr<Held> held_;  // shared, since locks may outlive this object
};

// The file system of one plugin. Files and locks hold a reference to the plugin, so that it stays
// as long as they do.
class PluginFiles final : public FileSystem {
 public:
  // locks: for a plugin that has none of its own; must outlive this.
  PluginFiles(std::shared_ptr<const FileSystemRole> role, FolderLocks* locks) : role_(std::move(role)), locks_(locks) {}
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  Status MakeFolder(const std::string& folder) override;
  Status RemoveFolder(const std::string& folder) override;
  Status SyncFolderOf(const std::string& path) override;
  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) override;

 private:
  const std::shared_ptr<const FileSystemRole> role_;
  FolderLocks* const locks_;
};

}  // namespace thalweg
