// A disk in memory that records every call that changes it, and can be rebuilt in the state after a
// crash at any call.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/files/file_system.h"

namespace thalweg::test {

// The data that a crash loses.
enum class Crash { kNothing, kUnsyncedBytes, kUnsyncedNames, kBoth };
constexpr Crash kCrashes[] = {Crash::kNothing, Crash::kUnsyncedBytes, Crash::kUnsyncedNames, Crash::kBoth};

class Disk {
 public:
  struct File {
    std::string bytes;
    size_t synced = 0;  // bytes of it that survive a crash; files only grow
  };
  std::map<std::string, std::shared_ptr<File>> names, synced_names;

  // Makes the current names of a folder survive a crash.
  void SyncFolder(const std::string& folder) {
    std::erase_if(synced_names, [&](auto& entry) { return FolderOf(entry.first) == folder; });
    for (auto& [name, file] : names) {
      if (FolderOf(name) == folder) synced_names[name] = file;
    }
  }
  // Returns an independent copy after a crash: files are copied, and all remaining data is synced.
  Disk After(Crash crash) const {
    const bool lose_names = crash == Crash::kUnsyncedNames || crash == Crash::kBoth;
    const bool lose_bytes = crash == Crash::kUnsyncedBytes || crash == Crash::kBoth;
    Disk left;
    for (auto& [name, file] : lose_names ? synced_names : names) {
      auto copy = std::make_shared<File>(*file);
      if (lose_bytes) copy->bytes.resize(copy->synced);
      copy->synced = copy->bytes.size();
      left.names[name] = copy;
    }
    left.synced_names = left.names;
    return left;
  }
};

// A recorded call that changes the disk, with the arguments to repeat it.
struct Call {
  enum Kind { kCreate, kAppend, kSync, kRename, kRemove, kSyncFolder } kind;
  std::string path, to;  // to: the new name of kRename, or the bytes of kAppend
};

// Applies a call to a disk. part: the number of an append's bytes that are written.
inline void Replay(const Call& call, Disk* disk, size_t part = std::string::npos) {
  switch (call.kind) {
    case Call::kCreate: disk->names[call.path] = std::make_shared<Disk::File>(); break;
    case Call::kAppend: disk->names[call.path]->bytes.append(call.to, 0, part); break;
    case Call::kSync: disk->names[call.path]->synced = disk->names[call.path]->bytes.size(); break;
    case Call::kRename:
      disk->names[call.to] = disk->names[call.path];
      disk->names.erase(call.path);
      break;
    case Call::kRemove: disk->names.erase(call.path); break;
    case Call::kSyncFolder: disk->SyncFolder(call.path); break;
  }
}

class RecordedFiles final : public FileSystem {
 public:
  RecordedFiles() = default;
  explicit RecordedFiles(Disk disk) : disk_(std::move(disk)) {}
  const std::vector<Call>& calls() const { return calls_; }
  const Disk& disk() const { return disk_; }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (auto& [name, file] : disk_.names) all.insert(name);
    return all;
  }

  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    if (disk_.names.count(path)) return AlreadyExists(path);
    Do({Call::kCreate, path, ""});
    return std::make_unique<Writable>(this, path);
  }
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    auto it = disk_.names.find(path);
    if (it == disk_.names.end()) return NotFound("no file '", path, "'");
    return std::make_unique<Readable>(this, it->second);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    if (!disk_.names.count(from)) return NotFound("no file '", from, "'");
    Do({Call::kRename, from, to});
    return Status();
  }
  Status Remove(const std::string& path) override {
    if (!disk_.names.count(path)) return NotFound("no file '", path, "'");
    Do({Call::kRemove, path, ""});
    return Status();
  }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    std::vector<std::string> found;
    for (auto& [name, file] : disk_.names) {
      if (FolderOf(name) == folder) found.push_back(name.substr(folder.size() + 1));
    }
    return found;
  }
  Status MakeFolder(const std::string&) override { return Status(); }
  Status RemoveFolder(const std::string&) override { return Status(); }
  Status SyncFolderOf(const std::string& path) override {
    Do({Call::kSyncFolder, FolderOf(path), ""});
    return Status();
  }
  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string&) override { return std::make_unique<FolderLock>(); }

 private:
  // Files are renamed only when they are closed, so the path leads to the file while it is written.
  class Writable final : public WritableFile {
   public:
    Writable(RecordedFiles* files, std::string path) : files_(files), path_(std::move(path)) {}
    Status Append(const void* bytes, uint64_t n) override {
      files_->Do({Call::kAppend, path_, std::string(static_cast<const char*>(bytes), n)});
      return Status();
    }
    Status Sync() override {
      files_->Do({Call::kSync, path_, ""});
      return Status();
    }
    Status Close() override { return Status(); }

   private:
    RecordedFiles* files_;
    std::string path_;
  };
  class Readable final : public ReadableFile {
   public:
    Readable(RecordedFiles* files, std::shared_ptr<Disk::File> file) : files_(files), file_(std::move(file)) {}
    uint64_t size() const override { return file_->bytes.size(); }
    Status ReadAt(uint64_t offset, void* to, uint64_t n) const override {
      if (offset > file_->bytes.size() || n > file_->bytes.size() - offset) return DataLoss("past the end");
      file_->bytes.copy(static_cast<char*>(to), n, offset);
      return Status();
    }
    StatusOr<bool> IsAt(const std::string& path) const override {
      auto it = files_->disk_.names.find(path);
      return it != files_->disk_.names.end() && it->second == file_;
    }

   private:
    RecordedFiles* files_;
    std::shared_ptr<Disk::File> file_;
  };

  void Do(Call call) {
    Replay(call, &disk_);
    calls_.push_back(std::move(call));
  }

  Disk disk_;
  std::vector<Call> calls_;
};

}  // namespace thalweg::test
