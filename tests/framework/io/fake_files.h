// File systems for tests: one that makes any call fail, one in memory that can lose power.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "framework/base/status.h"
#include "framework/io/file_system.h"

namespace thalweg::test {

// A folder of its own, gone at the end.
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

// The machine's files, but call number `fail_at` (from 1) fails as a full disk does. Calls on open files count too.
class FaultyFiles final : public FileSystem {
 public:
  explicit FaultyFiles(int fail_at) : fail_at_(fail_at) {}
  int calls() const { return calls_; }
  const std::string& failed() const { return failed_; }

  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    RETURN_IF_ERROR(Count("create " + path));
    ASSIGN_OR_RETURN(auto file, LocalFiles().Create(path));
    return std::make_unique<Writable>(this, std::move(file));
  }
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    RETURN_IF_ERROR(Count("open " + path));
    ASSIGN_OR_RETURN(auto file, LocalFiles().Open(path));
    return std::make_unique<Readable>(this, std::move(file));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(Count("rename to " + to));
    return LocalFiles().Rename(from, to);
  }
  Status Remove(const std::string& path) override {
    RETURN_IF_ERROR(Count("remove " + path));
    return LocalFiles().Remove(path);
  }
  Status SyncFolderOf(const std::string& path) override {
    RETURN_IF_ERROR(Count("sync folder of " + path));
    return LocalFiles().SyncFolderOf(path);
  }
  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) override {
    RETURN_IF_ERROR(Count("lock folder of " + path));
    return LocalFiles().LockFolderOf(path);
  }

 private:
  class Writable final : public WritableFile {
   public:
    Writable(FaultyFiles* fs, std::unique_ptr<WritableFile> file) : fs_(fs), file_(std::move(file)) {}
    Status Append(const void* bytes, uint64_t n) override {
      Status s = fs_->Count("append");
      // A full disk takes a part.
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
    if (++calls_ != fail_at_) return Status();
    failed_ = what;
    return absl::ErrnoToStatus(ENOSPC, AbslView(StrCat("cannot ", what, " (errno ", ENOSPC, ")")));
  }

  int fail_at_, calls_ = 0;
  std::string failed_;
};

// Files in memory. What a power failure leaves: contents as last synced, names as last synced with their folder.
class MemoryFiles final : public FileSystem {
 public:
  // From call number `at` (from 1) on, every call fails: the process is dead.
  void DieAt(int at) { die_at_ = at; }
  int calls() const { return calls_; }
  void Revive() { die_at_ = 0; }
  // What is not synced is gone.
  void LosePower() {
    names_ = synced_names_;
    for (auto& [name, file] : names_) file->bytes = file->synced_bytes;
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (auto& [name, file] : names_) all.insert(name);
    return all;
  }
  // The same files once more, on their own.
  std::unique_ptr<MemoryFiles> Copy() const {
    auto copy = std::make_unique<MemoryFiles>();
    std::map<const Data*, std::shared_ptr<Data>> twins;
    auto twin = [&](const std::shared_ptr<Data>& d) -> std::shared_ptr<Data>& {
      auto& t = twins[d.get()];
      if (!t) t = std::make_shared<Data>(*d);
      return t;
    };
    for (auto& [name, file] : names_) copy->names_[name] = twin(file);
    for (auto& [name, file] : synced_names_) copy->synced_names_[name] = twin(file);
    return copy;
  }

  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    RETURN_IF_ERROR(Count());
    auto& file = names_[path];
    if (file) return AlreadyExists(path);
    file = std::make_shared<Data>();
    return std::make_unique<Writable>(this, file);
  }
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    RETURN_IF_ERROR(Count());
    auto it = names_.find(path);
    if (it == names_.end()) return NotFound(path);
    return std::make_unique<Readable>(this, it->second);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(Count());
    auto it = names_.find(from);
    if (it == names_.end()) return NotFound(from);
    names_[to] = it->second;
    names_.erase(from);
    return Status();
  }
  Status Remove(const std::string& path) override {
    RETURN_IF_ERROR(Count());
    return names_.erase(path) ? Status() : NotFound(path);
  }
  Status SyncFolderOf(const std::string&) override {
    RETURN_IF_ERROR(Count());
    synced_names_ = names_;
    return Status();
  }
  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string&) override {
    RETURN_IF_ERROR(Count());
    return std::make_unique<FolderLock>();
  }

 private:
  struct Data {
    std::string bytes, synced_bytes;
  };
  class Writable final : public WritableFile {
   public:
    Writable(MemoryFiles* fs, std::shared_ptr<Data> file) : fs_(fs), file_(std::move(file)) {}
    Status Append(const void* bytes, uint64_t n) override {
      RETURN_IF_ERROR(fs_->Count());
      file_->bytes.append(static_cast<const char*>(bytes), n);
      return Status();
    }
    Status Sync() override {
      RETURN_IF_ERROR(fs_->Count());
      file_->synced_bytes = file_->bytes;
      return Status();
    }
    Status Close() override { return fs_->Count(); }

   private:
    MemoryFiles* fs_;
    std::shared_ptr<Data> file_;
  };
  class Readable final : public ReadableFile {
   public:
    Readable(MemoryFiles* fs, std::shared_ptr<Data> file) : fs_(fs), file_(std::move(file)) {}
    uint64_t size() const override { return file_->bytes.size(); }
    Status ReadAt(uint64_t offset, void* to, uint64_t n) const override {
      if (offset > file_->bytes.size() || n > file_->bytes.size() - offset) return DataLoss("past the end");
      file_->bytes.copy(static_cast<char*>(to), n, offset);
      return Status();
    }
    StatusOr<bool> IsAt(const std::string& path) const override {
      auto it = fs_->names_.find(path);
      return it != fs_->names_.end() && it->second == file_;
    }

   private:
    MemoryFiles* fs_;
    std::shared_ptr<Data> file_;
  };

  Status Count() {
    ++calls_;
    return die_at_ && calls_ >= die_at_ ? Internal("the process is dead") : Status();
  }

  std::map<std::string, std::shared_ptr<Data>> names_, synced_names_;
  int die_at_ = 0, calls_ = 0;
};

}  // namespace thalweg::test
