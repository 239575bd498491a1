#include "framework/io/plugin_files.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>

#include "framework/base/shown.h"
#include "framework/base/sink.h"
#include "framework/files/local_file.h"

namespace thalweg {
namespace {

using FileRole = std::shared_ptr<const FileSystemRole>;

// Calls the plugin: converts an exception to a status, and adds the origin to every failure.
template <class F>
Status Call(const FileSystemRole& role, std::string_view verb, std::string_view path, F&& f) {
  Status s;
  try {
    s = FromC(f());
  } catch (...) {
    s = Thrown();
  }
  if (s.ok()) return s;
  return Error(s.code(), "cannot ", verb, " '", Shown(path), "': ", Message(s), " (file system '", role.name, "' of plugin '", role.plugin,
               "')");
}

class PluginWritable final : public WritableFile {
 public:
  PluginWritable(FileRole role, std::string path, void* file) : role_(std::move(role)), path_(std::move(path)), file_(file) {}
  ~PluginWritable() override { Close().IgnoreError(); }
  Status Append(const void* bytes, uint64_t n) override {
    return Call(*role_, "write", path_, [&] { return role_->def.append(role_->host, file_, bytes, n); });
  }
  Status Sync() override {
    return Call(*role_, "sync", path_, [&] { return role_->def.sync(role_->host, file_); });
  }
  Status Close() override {
    if (std::exchange(closed_, true)) return Status();
    return Call(*role_, "close", path_, [&] { return role_->def.close(role_->host, file_); });
  }

 private:
  const FileRole role_;
  const std::string path_;
  void* const file_;
  bool closed_ = false;
};

class PluginReadable final : public ReadableFile {
 public:
  PluginReadable(FileRole role, std::string path, void* file, uint64_t size)
      : role_(std::move(role)), path_(std::move(path)), file_(file), size_(size) {}
  // Asks the plugin which file this is. Called once, before any other function.
  Status Identify() {
    constexpr size_t kLongest = 256;
    if (!role_->def.identify) return Status();
    BytesSink to;
    RETURN_IF_ERROR(Call(*role_, "identify", path_, [&] { return role_->def.identify(role_->host, file_, &to.c); }));
    RETURN_IF_ERROR(to.Whole());
    if (to.bytes.size() > kLongest) {
      return Call(*role_, "identify", path_,
                  [&] { return ToC(Internal("it writes ", to.bytes.size(), " bytes; an identity has at most ", kLongest)); });
    }
    if (!to.bytes.empty()) identity_ = StrCat(role_->name, "://", to.bytes);
    return Status();
  }
  ~PluginReadable() override {
    Call(*role_, "release", path_, [&]() -> tw_status* {
      role_->def.release(role_->host, file_);
      return nullptr;
    }).IgnoreError();
  }
  uint64_t size() const override { return size_; }
  Status ReadAt(uint64_t offset, void* to, uint64_t n) const override {
    uint64_t end;
    if (__builtin_add_overflow(offset, n, &end) || end > size_) {
      return DataLoss("'", Shown(path_), "' has ", size_, " bytes, not ", offset, " + ", n);
    }
    if (n == 0) return Status();
    Status s = Call(*role_, "read", path_, [&] { return role_->def.read(role_->host, file_, offset, to, n); });
    return absl::IsOutOfRange(s) ? DataLoss(Message(s)) : s;
  }
  std::string identity() const override { return identity_; }
  // For a plugin that does not identify files, a file of the same contents counts as the same one,
  // and only one path leads to a file.
  StatusOr<bool> IsAt(const std::string& path) const override {
    if (path != path_ && (identity_.empty() || SchemeOf(path) != role_->name)) return false;
    auto there = PluginFiles(role_, nullptr).Open(path);
    if (absl::IsNotFound(there.status())) return false;
    if (!there.ok()) return there.status();
    if (identity_.empty()) return SameBytes(**there);
    return (*there)->identity() == identity_;
  }

 private:
  StatusOr<bool> SameBytes(const ReadableFile& other) const {
    constexpr uint64_t kChunk = 64 << 10;
    if (other.size() != size_) return false;
    std::vector<char> a(std::min(size_, kChunk)), b(a.size());
    for (uint64_t at = 0; at < size_; at += kChunk) {
      const uint64_t n = std::min(size_ - at, kChunk);
      RETURN_IF_ERROR(ReadAt(at, a.data(), n));
      Status s = other.ReadAt(at, b.data(), n);
      if (absl::IsDataLoss(s)) return false;  // the file was replaced meanwhile
      RETURN_IF_ERROR(s);
      if (std::memcmp(a.data(), b.data(), n) != 0) return false;
    }
    return true;
  }

  const FileRole role_;
  const std::string path_;
  void* const file_;
  const uint64_t size_;
  std::string identity_;  // of the plugin, after its scheme; "": unknown
};

class PluginLock final : public FolderLock {
 public:
  PluginLock(FileRole role, std::string path, void* lock) : role_(std::move(role)), path_(std::move(path)), lock_(lock) {}
  ~PluginLock() override {
    Call(*role_, "unlock", path_, [&]() -> tw_status* {
      role_->def.unlock(role_->host, lock_);
      return nullptr;
    }).IgnoreError();
  }

 private:
  const FileRole role_;
  const std::string path_;
  void* const lock_;
};

StatusOr<std::vector<std::string>> Split(const std::string& bytes) {
  std::vector<std::string> names;
  for (size_t at = 0; at < bytes.size(); at += names.back().size() + 1) {
    names.emplace_back(bytes.c_str() + at);
    const std::string& name = names.back();
    if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos) {
      return Internal("it answers '", Shown(name), "', which is no name in a folder");
    }
  }
  return names;
}

}  // namespace

// ---- FolderLocks ----

struct FolderLocks::Held {
  std::mutex mu;
  std::condition_variable freed;
  std::set<std::string> folders;
};

FolderLocks::FolderLocks() : held_(std::make_shared<Held>()) {}
FolderLocks::~FolderLocks() = default;

StatusOr<std::unique_ptr<FolderLock>> FolderLocks::Take(const std::string& folder) {
  class Lock final : public FolderLock {
   public:
    Lock(std::shared_ptr<Held> held, std::string folder) : held_(std::move(held)), folder_(std::move(folder)) {}
    ~Lock() override {
      if (!holds_) return;
      std::lock_guard lock(held_->mu);
      held_->folders.erase(folder_);
      held_->freed.notify_all();
    }
    // REQUIRES: held->mu is held, and the folder is free.
    void Hold() {
      held_->folders.insert(folder_);
      holds_ = true;
    }

   private:
    const std::shared_ptr<Held> held_;
    const std::string folder_;
    bool holds_ = false;
  };
  constexpr auto kPatience = std::chrono::seconds(30);
  auto taken = std::make_unique<Lock>(held_, folder);  // outside the mutex, which the lock's destructor takes
  std::unique_lock lock(held_->mu);
  if (!held_->freed.wait_for(lock, kPatience, [&] { return !held_->folders.count(folder); })) {
    return Error(absl::StatusCode::kUnavailable, "folder '", Shown(folder), "' is locked by another save; try again when that is over");
  }
  taken->Hold();
  return taken;
}

// ---- PluginFiles ----

StatusOr<std::unique_ptr<WritableFile>> PluginFiles::Create(const std::string& path) {
  RETURN_IF_ERROR(CheckPath(path));
  void* file = nullptr;
  const tw_file_request request = {TW_SIZED(tw_file_request), path.data(), path.size()};
  RETURN_IF_ERROR(Call(*role_, "create", path, [&] { return role_->def.create(role_->host, role_->def.user, &request, &file); }));
  return std::make_unique<PluginWritable>(role_, path, file);
}

StatusOr<std::unique_ptr<ReadableFile>> PluginFiles::Open(const std::string& path) {
  RETURN_IF_ERROR(CheckPath(path));
  void* file = nullptr;
  uint64_t bytes = 0;
  const tw_file_request request = {TW_SIZED(tw_file_request), path.data(), path.size()};
  RETURN_IF_ERROR(Call(*role_, "open", path, [&] { return role_->def.open(role_->host, role_->def.user, &request, &file, &bytes); }));
  auto opened = std::make_unique<PluginReadable>(role_, path, file, bytes);
  RETURN_IF_ERROR(opened->Identify());
  return opened;
}

Status PluginFiles::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(CheckPath(from));
  RETURN_IF_ERROR(CheckPath(to));
  return Call(*role_, StrCat("rename '", Shown(from), "' to"), to,
              [&] { return role_->def.rename(role_->host, role_->def.user, from.data(), from.size(), to.data(), to.size()); });
}

Status PluginFiles::Remove(const std::string& path) {
  RETURN_IF_ERROR(CheckPath(path));
  return Call(*role_, "remove", path, [&] { return role_->def.remove(role_->host, role_->def.user, path.data(), path.size()); });
}

StatusOr<std::vector<std::string>> PluginFiles::List(const std::string& folder) {
  RETURN_IF_ERROR(CheckPath(folder));
  BytesSink names;
  RETURN_IF_ERROR(Call(*role_, "list folder", folder,
                       [&] { return role_->def.list(role_->host, role_->def.user, folder.data(), folder.size(), &names.c); }));
  RETURN_IF_ERROR(names.Whole());
  auto split = Split(names.bytes);
  if (split.ok()) return split;
  return Call(*role_, "list folder", folder, [&] { return ToC(split.status()); });
}

Status PluginFiles::MakeFolder(const std::string& folder) {
  RETURN_IF_ERROR(CheckPath(folder));
  Status s = Call(*role_, "make folder", folder,
                  [&] { return role_->def.make_folder(role_->host, role_->def.user, folder.data(), folder.size()); });
  return absl::IsAlreadyExists(s) ? Status() : s;
}

Status PluginFiles::RemoveFolder(const std::string& folder) {
  RETURN_IF_ERROR(CheckPath(folder));
  return Call(*role_, "remove folder", folder,
              [&] { return role_->def.remove_folder(role_->host, role_->def.user, folder.data(), folder.size()); });
}

Status PluginFiles::SyncFolderOf(const std::string& path) {
  RETURN_IF_ERROR(CheckPath(path));
  return Call(*role_, "sync the folder of", path,
              [&] { return role_->def.sync_folder_of(role_->host, role_->def.user, path.data(), path.size()); });
}

StatusOr<std::unique_ptr<FolderLock>> PluginFiles::LockFolderOf(const std::string& path) {
  RETURN_IF_ERROR(CheckPath(path));
  if (!role_->def.lock_folder_of) return locks_->Take(FolderOf(path));
  void* lock = nullptr;
  RETURN_IF_ERROR(Call(*role_, "lock the folder of", path,
                       [&] { return role_->def.lock_folder_of(role_->host, role_->def.user, path.data(), path.size(), &lock); }));
  return std::make_unique<PluginLock>(role_, path, lock);
}

}  // namespace thalweg
