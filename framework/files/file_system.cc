#include "framework/files/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "framework/files/list_folder.h"
#include "framework/files/local_file.h"

namespace thalweg {

Status SystemError(int error, std::string_view verb, const std::string& path) {
  const Status system = absl::ErrnoToStatus(error, "");  // the matching code, and ": text"
  std::string_view text = Message(system);
  while (!text.empty() && (text[0] == ':' || text[0] == ' ')) text.remove_prefix(1);
  return Error(system.code(), "cannot ", verb, " '", path, "': ", text, " (errno ", error, ")");
}

Status CheckPath(const std::string& path) {
  if (path.empty()) return InvalidArgument("a file name is empty");
  if (path.find('\0') != path.npos) return InvalidArgument("file name '", path.c_str(), "...' has a NUL character in it");
  return Status();
}

Status Denied(const std::string& path, std::string_view why) { return Error(absl::StatusCode::kPermissionDenied, "'", path, "' ", why); }

namespace {

StatusOr<Descriptor> OpenAt(const std::string& path, int flags, std::string_view verb) {
  RETURN_IF_ERROR(CheckPath(path));
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return SystemError(errno, verb, path);
  return Descriptor(fd);
}

class LocalWritable final : public WritableFile {
 public:
  LocalWritable(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Status Append(const void* bytes, uint64_t n) override {
    const char* p = static_cast<const char*>(bytes);
    while (n > 0) {
      // Linux accepts no more bytes than this in one call.
      const ssize_t done = ::write(fd_.get(), p, n < 0x7ffff000 ? n : 0x7ffff000);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return SystemError(errno, "write", path_);
      p += done;
      n -= uint64_t(done);
    }
    return Status();
  }
  Status Sync() override {
    int r;
    do {
      r = ::fsync(fd_.get());
    } while (r < 0 && errno == EINTR);
    return r < 0 ? SystemError(errno, "sync", path_) : Status();
  }
  Status Close() override {
    const int fd = fd_.release();
    // Linux has closed the descriptor even if it returns EINTR; a second close could hit another
    // thread's file.
    if (fd >= 0 && ::close(fd) < 0 && errno != EINTR) return SystemError(errno, "close", path_);
    return Status();
  }

 private:
  Descriptor fd_;
  const std::string path_;
};

class LocalReadable final : public ReadableFile {
 public:
  LocalReadable(Descriptor fd, std::string path, uint64_t size) : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  uint64_t size() const override { return size_; }
  Status ReadAt(uint64_t offset, void* to, uint64_t n) const override {
    char* p = static_cast<char*>(to);
    uint64_t end;
    if (__builtin_add_overflow(offset, n, &end) || end > uint64_t(INT64_MAX)) {
      return DataLoss("'", path_, "' has no byte ", offset, " + ", n);
    }
    while (n > 0) {
      const ssize_t got = ::pread(fd_.get(), p, n < 0x7ffff000 ? n : 0x7ffff000, off_t(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return SystemError(errno, "read", path_);
      if (got == 0) return DataLoss("'", path_, "' ends at byte ", offset, ", ", n, " bytes too early");
      p += got;
      offset += uint64_t(got);
      n -= uint64_t(got);
    }
    return Status();
  }
  StatusOr<bool> IsAt(const std::string& path) const override {
    RETURN_IF_ERROR(CheckPath(path));
    struct stat mine, there;
    if (::fstat(fd_.get(), &mine) < 0) return SystemError(errno, "examine", path_);
    if (::stat(path.c_str(), &there) < 0) return errno == ENOENT ? StatusOr<bool>(false) : SystemError(errno, "examine", path);
    return mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
  }
  std::string identity() const override {
    struct stat mine;
    return ::fstat(fd_.get(), &mine) == 0 ? StrCat(mine.st_dev, ":", mine.st_ino) : std::string();
  }
  const void* Map() const override {
    if (size_ == 0 || size_ > SIZE_MAX) return nullptr;
    void* at = ::mmap(nullptr, size_t(size_), PROT_READ, MAP_PRIVATE, fd_.get(), 0);
    return at == MAP_FAILED ? nullptr : at;
  }

 private:
  const Descriptor fd_;
  const std::string path_;
  const uint64_t size_;
};

class LocalLock final : public FolderLock {
 public:
  explicit LocalLock(Descriptor fd) : fd_(std::move(fd)) {}
  // Closing alone would leave the lock to a child that was forked meanwhile and also has the
  // descriptor.
  ~LocalLock() override { ::flock(fd_.get(), LOCK_UN); }

 private:
  const Descriptor fd_;
};

class LocalFileSystem final : public FileSystem {
 public:
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    ASSIGN_OR_RETURN(Descriptor fd, OpenAt(path, O_WRONLY | O_CREAT | O_EXCL, "create"));
    return WriteTo(std::move(fd), path);
  }

  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    ASSIGN_OR_RETURN(Descriptor fd, OpenAt(path, O_RDONLY | O_NONBLOCK, "open"));
    return ReadFrom(std::move(fd), path);
  }

  Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(CheckPath(from));
    RETURN_IF_ERROR(CheckPath(to));
    if (::rename(from.c_str(), to.c_str()) < 0) return SystemError(errno, StrCat("rename '", from, "' to"), to);
    return Status();
  }

  Status Remove(const std::string& path) override {
    RETURN_IF_ERROR(CheckPath(path));
    return ::unlink(path.c_str()) < 0 ? SystemError(errno, "remove", path) : Status();
  }

  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    RETURN_IF_ERROR(CheckPath(folder));
    std::vector<std::string> names;
    Status refused;
    if (const int error = ListFolder(folder, &names, &refused)) {
      return refused.ok() ? SystemError(error, "list folder", folder) : Prefix(refused, StrCat("list folder '", folder, "':"));
    }
    return names;
  }

  Status MakeFolder(const std::string& folder) override {
    RETURN_IF_ERROR(CheckPath(folder));
    struct stat st;
    if (::mkdir(folder.c_str(), 0777) == 0) return SyncFolderOf(folder.substr(0, folder.find_last_not_of('/') + 1));
    const int error = errno;
    // A link to a folder counts as a folder.
    if (error == EEXIST && ::stat(folder.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return Status();
    return SystemError(error, "make folder", folder);
  }

  Status RemoveFolder(const std::string& folder) override {
    RETURN_IF_ERROR(CheckPath(folder));
    return ::rmdir(folder.c_str()) < 0 ? SystemError(errno, "remove folder", folder) : Status();
  }

  Status SyncFolderOf(const std::string& path) override {
    const std::string folder = FolderOf(path);
    ASSIGN_OR_RETURN(Descriptor fd, OpenAt(folder, O_RDONLY | O_DIRECTORY, "open folder"));
    return SyncFolder(fd, folder);
  }

  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) override {
    const std::string folder = FolderOf(path);
    ASSIGN_OR_RETURN(Descriptor fd, OpenAt(folder, O_RDONLY | O_DIRECTORY, "open folder"));
    return LockFolder(std::move(fd), folder);
  }
};

}  // namespace

std::unique_ptr<WritableFile> WriteTo(Descriptor fd, std::string path) {
  return std::make_unique<LocalWritable>(std::move(fd), std::move(path));
}

StatusOr<std::unique_ptr<ReadableFile>> ReadFrom(Descriptor fd, std::string path) {
  struct stat st;
  if (::fstat(fd.get(), &st) < 0) return SystemError(errno, "examine", path);
  if (!S_ISREG(st.st_mode)) return InvalidArgument("'", path, "' is not a regular file");
  return std::make_unique<LocalReadable>(std::move(fd), std::move(path), uint64_t(st.st_size));
}

Status SyncFolder(const Descriptor& folder, const std::string& path) {
  int r;
  do {
    r = ::fsync(folder.get());
  } while (r < 0 && errno == EINTR);
  // Network file systems that cannot sync a folder return EINVAL; they order names themselves.
  return r < 0 && errno != EINVAL ? SystemError(errno, "sync folder", path) : Status();
}

StatusOr<std::unique_ptr<FolderLock>> LockFolder(Descriptor folder, const std::string& path) {
  constexpr auto kPause = std::chrono::milliseconds(5);
  constexpr auto kPatience = std::chrono::seconds(30);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (::flock(folder.get(), LOCK_EX | LOCK_NB) < 0) {
    // If the file system has no locks, savers of the same prefix must not run at once; all else
    // works.
    if (errno == EOPNOTSUPP || errno == ENOLCK || errno == ENOSYS) break;
    if (errno != EWOULDBLOCK && errno != EINTR) return SystemError(errno, "lock folder", path);
    if (std::chrono::steady_clock::now() > deadline) {
      return Error(absl::StatusCode::kUnavailable, "folder '", path, "' is locked by another save; try again when that is over");
    }
    std::this_thread::sleep_for(kPause);
  }
  return std::make_unique<LocalLock>(std::move(folder));
}

std::string_view SchemeOf(std::string_view path) {
  const size_t end = path.find("://");
  if (end == path.npos || end == 0) return {};
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  auto fits = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; };
  const std::string_view scheme = path.substr(0, end);
  return letter(scheme[0]) && std::all_of(scheme.begin(), scheme.end(), fits) ? scheme : std::string_view();
}

bool IsAbsolute(std::string_view path) { return path.starts_with('/') || !SchemeOf(path).empty(); }

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (const size_t scheme = SchemeOf(path).size(); scheme > 0) return path.substr(0, std::max(slash, scheme + 3));
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

FileSystem& LocalFiles() {
  static LocalFileSystem files;  // has no state
  return files;
}

}  // namespace thalweg
