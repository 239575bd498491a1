#include "framework/files/read_only_files.h"

#include <utility>

#include "framework/files/local_file.h"

namespace thalweg {
namespace {

class ReadOnlyFileSystem final : public FileSystem {
 public:
  explicit ReadOnlyFileSystem(std::unique_ptr<FileSystem> files) : files_(std::move(files)) {}
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override { return files_->Open(path); }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override { return files_->List(folder); }
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override { return Refuse(path); }
  Status Rename(const std::string&, const std::string& to) override { return Refuse(to); }
  Status Remove(const std::string& path) override { return Refuse(path); }
  Status MakeFolder(const std::string& folder) override { return Refuse(folder); }
  Status RemoveFolder(const std::string& folder) override { return Refuse(folder); }
  Status SyncFolderOf(const std::string& path) override { return Refuse(path); }
  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) override { return Refuse(path); }

 private:
  static Status Refuse(const std::string& path) { return Denied(path, "may be read, but not changed or created"); }
  const std::unique_ptr<FileSystem> files_;
};

}  // namespace

std::unique_ptr<FileSystem> ReadOnlyFiles(std::unique_ptr<FileSystem> files) {
  return std::make_unique<ReadOnlyFileSystem>(std::move(files));
}

}  // namespace thalweg
