// Helpers for tests of files: a temporary folder, and a file system that makes any call fail.
// recorded_files.h simulates power loss.
#pragma once
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/files/file_system.h"

namespace thalweg::test {

// A temporary folder, removed by the destructor.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (auto& e : std::filesystem::directory_iterator(path_)) all.insert(e.path().filename().string());
    return all;
  }

 private:
  std::string path_;
};

inline std::string Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void Spill(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

// Wraps a file system. Call number `fail_at` (from 1) fails as on a full disk or with another
// error, or all calls from then on fail. Calls on open files count too.
class FaultyFiles final : public FileSystem {
 public:
  explicit FaultyFiles(int fail_at, FileSystem& files = LocalFiles(), int error = ENOSPC, bool for_good = false)
      : fail_at_(fail_at), files_(files), error_(error), for_good_(for_good) {}
  int calls() const { return calls_; }
  const std::string& failed() const { return failed_; }

  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    RETURN_IF_ERROR(Count("create " + path));
    ASSIGN_OR_RETURN(auto file, files_.Create(path));
    return std::make_unique<Writable>(this, std::move(file));
  }
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    RETURN_IF_ERROR(Count("open " + path));
    ASSIGN_OR_RETURN(auto file, files_.Open(path));
    return std::make_unique<Readable>(this, std::move(file));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(Count("rename to " + to));
    return files_.Rename(from, to);
  }
  Status Remove(const std::string& path) override {
    RETURN_IF_ERROR(Count("remove " + path));
    return files_.Remove(path);
  }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    RETURN_IF_ERROR(Count("list " + folder));
    return files_.List(folder);
  }
  Status MakeFolder(const std::string& folder) override {
    RETURN_IF_ERROR(Count("make folder " + folder));
    return files_.MakeFolder(folder);
  }
  Status RemoveFolder(const std::string& folder) override {
    RETURN_IF_ERROR(Count("remove folder " + folder));
    return files_.RemoveFolder(folder);
  }
  Status SyncFolderOf(const std::string& path) override {
    RETURN_IF_ERROR(Count("sync folder of " + path));
    return files_.SyncFolderOf(path);
  }
  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) override {
    RETURN_IF_ERROR(Count("lock folder of " + path));
    return files_.LockFolderOf(path);
  }

 private:
  class Writable final : public WritableFile {
   public:
    Writable(FaultyFiles* fs, std::unique_ptr<WritableFile> file) : fs_(fs), file_(std::move(file)) {}
    Status Append(const void* bytes, uint64_t n) override {
      Status s = fs_->Count("append");
      // A full disk accepts a part of the bytes.
      if (!s.ok()) file_->Append(bytes, n / 2).IgnoreError();
      return s.ok() ? file_->Append(bytes, n) : s;
    }
    Status Sync() override {
      RETURN_IF_ERROR(fs_->Count("sync"));
      return file_->Sync();
    }
    Status Close() override {
      RETURN_IF_ERROR(fs_->Count("close"));
      return file_->Close();
    }

   private:
    FaultyFiles* fs_;
    std::unique_ptr<WritableFile> file_;
  };
  class Readable final : public ReadableFile {
   public:
    Readable(FaultyFiles* fs, std::unique_ptr<ReadableFile> file) : fs_(fs), file_(std::move(file)) {}
    uint64_t size() const override { return file_->size(); }
    Status ReadAt(uint64_t offset, void* to, uint64_t n) const override {
      RETURN_IF_ERROR(fs_->Count("read"));
      return file_->ReadAt(offset, to, n);
    }
    StatusOr<bool> IsAt(const std::string& path) const override {
      RETURN_IF_ERROR(fs_->Count("examine " + path));
      return file_->IsAt(path);
    }

   private:
    FaultyFiles* fs_;
    std::unique_ptr<ReadableFile> file_;
  };

  Status Count(const std::string& what) {
    ++calls_;
    if (calls_ < fail_at_ || (calls_ > fail_at_ && !for_good_)) return Status();
    if (failed_.empty()) failed_ = what;
    return absl::ErrnoToStatus(error_, AbslView(StrCat("cannot ", what, " (errno ", error_, ")")));
  }

  int fail_at_, calls_ = 0;
  FileSystem& files_;
  int error_;
  bool for_good_;
  std::string failed_;
};

}  // namespace thalweg::test
