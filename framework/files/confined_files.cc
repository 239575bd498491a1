#include "framework/files/confined_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "framework/files/list_folder.h"
#include "framework/files/local_file.h"

namespace thalweg {
namespace {

using Parts = std::vector<std::string>;

constexpr int kPass = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;  // flags for a folder on the way

int OpenBeneath(int folder, const char* path, int flags) {
  open_how how{};
  how.flags = uint64_t(flags & ~O_NOFOLLOW);  // a link at the end of the path then gives ELOOP too
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  int fd = -1;
  // EAGAIN: a concurrent rename kept the kernel from checking the path.
  for (int left = 64; left > 0; --left) {
    fd = int(::syscall(SYS_openat2, folder, path, &how, sizeof how));
    if (fd >= 0 || errno != EAGAIN) break;
  }
  return fd;
}

class ConfinedReadable final : public ReadableFile {
 public:
  ConfinedReadable(std::unique_ptr<ReadableFile> file, struct stat st, FileSystem* files)
      : file_(std::move(file)), device_(st.st_dev), inode_(st.st_ino), files_(files) {}
  uint64_t size() const override { return file_->size(); }
  Status ReadAt(uint64_t offset, void* to, uint64_t n) const override { return file_->ReadAt(offset, to, n); }
  std::string identity() const override { return file_->identity(); }
  const void* Map() const override { return file_->Map(); }
  StatusOr<bool> IsAt(const std::string& path) const override {
    auto there = files_->Open(path);
    if (absl::IsNotFound(there.status())) return false;
    if (!there.ok()) return there.status();
    const auto& other = static_cast<const ConfinedReadable&>(**there);
    return device_ == other.device_ && inode_ == other.inode_;
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  const dev_t device_;
  const ino_t inode_;
  FileSystem* const files_;
};

class ConfinedFileSystem final : public FileSystem {
 public:
  ConfinedFileSystem(Descriptor root, std::string given, std::string real, bool in_one_call)
      : root_(std::move(root)), given_(std::move(given)), real_(std::move(real)), in_one_call_(in_one_call) {}

  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    ASSIGN_OR_RETURN(const Place at, FindFile(path));
    ASSIGN_OR_RETURN(Descriptor fd, Retry("create", path, [&] {
                       return ::openat(at.folder.get(), at.leaf.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
                     }));
    return WriteTo(std::move(fd), path);
  }

  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    ASSIGN_OR_RETURN(const Place at, FindFile(path));
    struct stat st;
    // Opening a device may have an effect on it, so only regular files are opened. The second check
    // finds an entry that was replaced meanwhile.
    if (::fstatat(at.folder.get(), at.leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) < 0) return SystemError(errno, "open", path);
    RETURN_IF_ERROR(CheckReadable(path, st));
    ASSIGN_OR_RETURN(Descriptor fd, Retry("open", path, [&] {
                       return ::openat(at.folder.get(), at.leaf.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
                     }));
    if (::fstat(fd.get(), &st) < 0) return SystemError(errno, "examine", path);
    RETURN_IF_ERROR(CheckReadable(path, st));
    ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, ReadFrom(std::move(fd), path));
    return std::make_unique<ConfinedReadable>(std::move(file), st, this);
  }

  Status Rename(const std::string& from, const std::string& to) override {
    ASSIGN_OR_RETURN(const Place a, FindFile(from));
    ASSIGN_OR_RETURN(const Place b, FindFile(to));
    if (::renameat(a.folder.get(), a.leaf.c_str(), b.folder.get(), b.leaf.c_str()) == 0) return Status();
    return SystemError(errno, StrCat("rename '", from, "' to"), to);
  }

  Status Remove(const std::string& path) override { return Unlink(path, 0, "remove"); }
  Status RemoveFolder(const std::string& folder) override { return Unlink(folder, AT_REMOVEDIR, "remove folder"); }

  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    ASSIGN_OR_RETURN(const Parts parts, Split(folder));
    ASSIGN_OR_RETURN(Descriptor fd, OpenFolder(folder, parts, O_RDONLY));
    std::vector<std::string> names;
    Status refused;
    if (const int error = ListFolder(std::move(fd), &names, &refused)) {
      return refused.ok() ? SystemError(error, "list folder", folder) : Prefix(refused, StrCat("list folder '", folder, "':"));
    }
    return names;
  }

  Status MakeFolder(const std::string& folder) override {
    ASSIGN_OR_RETURN(const Place place, Find(folder));
    if (place.leaf.empty()) return Status();
    if (::mkdirat(place.folder.get(), place.leaf.c_str(), 0777) == 0) return SyncFolderOf(folder);
    const int error = errno;
    struct stat st;
    if (error == EEXIST && ::fstatat(place.folder.get(), place.leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
      if (S_ISDIR(st.st_mode)) return Status();
      if (S_ISLNK(st.st_mode)) return Denied(folder, "is a symbolic link; links are not followed here");
    }
    return SystemError(error, "make folder", folder);
  }

  Status SyncFolderOf(const std::string& path) override {
    ASSIGN_OR_RETURN(Descriptor fd, OpenFolderOf(path));
    return SyncFolder(fd, FolderOf(path));
  }

  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) override {
    ASSIGN_OR_RETURN(Descriptor fd, OpenFolderOf(path));
    return LockFolder(std::move(fd), FolderOf(path));
  }

 private:
  // A name in an open folder; without a name, the allowed folder itself.
  struct Place {
    Descriptor folder;
    std::string leaf;
  };

  template <class F>
  static StatusOr<Descriptor> Retry(std::string_view verb, const std::string& path, F&& open) {
    int fd;
    do {
      fd = open();
    } while (fd < 0 && errno == EINTR);
    if (fd >= 0) return Descriptor(fd);
    if (errno == ELOOP || errno == EXDEV) return Denied(path, "leads through a symbolic link; links are not followed here");
    return SystemError(errno, verb, path);
  }

  static Status CheckReadable(const std::string& path, const struct stat& st) {
    if (S_ISLNK(st.st_mode)) return Denied(path, "is a symbolic link; links are not followed here");
    if (!S_ISREG(st.st_mode)) return InvalidArgument("'", path, "' is not a regular file");
    if (st.st_nlink > 1) {
      return Denied(path, StrCat("has ", st.st_nlink, " names (hard links), and one of them may lie elsewhere; copy the file"));
    }
    return Status();
  }

  // Sets *path to the rest of an absolute path beneath the folder; returns false if the path lies
  // elsewhere.
  static bool Strip(const std::string& folder, std::string_view* path) {
    if (folder == "/") return true;
    if (path->substr(0, folder.size()) != folder) return false;
    const std::string_view rest = path->substr(folder.size());
    if (!rest.empty() && rest[0] != '/') return false;
    *path = rest;
    return true;
  }

  StatusOr<Parts> Split(const std::string& path) const {
    RETURN_IF_ERROR(CheckPath(path));
    if (path.size() >= PATH_MAX) return SystemError(ENAMETOOLONG, "use", StrCat(path.substr(0, 40), "..."));
    if (!SchemeOf(path).empty()) return Denied(path, StrCat("is of another file system and does not lie beneath '", given_, "'"));
    std::string_view rest = path;
    if (rest[0] == '/' && !Strip(given_, &rest) && !Strip(real_, &rest)) {
      return Denied(path, StrCat("does not lie beneath '", given_, "'"));
    }
    Parts parts;
    while (!rest.empty()) {
      const size_t slash = rest.find('/');
      const std::string_view part = rest.substr(0, slash);
      rest.remove_prefix(slash == rest.npos ? rest.size() : slash + 1);
      if (part == "..") return Denied(path, "has '..' in it; name the file without");
      if (!part.empty() && part != ".") parts.emplace_back(part);
    }
    return parts;
  }

  StatusOr<Descriptor> OpenFolder(const std::string& path, const Parts& parts, int flags) const {
    flags |= O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (!in_one_call_) return OpenByParts(path, parts, flags);
    std::string joined = ".";
    for (const std::string& part : parts) joined += StrCat("/", part);
    return Retry("open folder", path, [&] { return OpenBeneath(root_.get(), joined.c_str(), flags); });
  }
  StatusOr<Descriptor> OpenByParts(const std::string& path, const Parts& parts, int flags) const {
    ASSIGN_OR_RETURN(Descriptor at, Retry("open folder", path, [&] { return ::openat(root_.get(), ".", parts.empty() ? flags : kPass); }));
    for (size_t i = 0; i < parts.size(); ++i) {
      ASSIGN_OR_RETURN(Descriptor next, Retry("open folder", path, [&] {
                         const int fd = ::openat(at.get(), parts[i].c_str(), i + 1 < parts.size() ? kPass : flags);
                         if (fd < 0 && errno == ENOTDIR && IsLink(at.get(), parts[i])) errno = ELOOP;
                         return fd;
                       }));
      at = std::move(next);
    }
    return at;
  }
  static bool IsLink(int folder, const std::string& leaf) {
    const int kept = errno;
    struct stat st;
    const bool link = ::fstatat(folder, leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
    errno = kept;
    return link;
  }

  StatusOr<Place> Find(const std::string& path) const {
    ASSIGN_OR_RETURN(Parts parts, Split(path));
    std::string leaf;
    if (!parts.empty()) {
      leaf = std::move(parts.back());
      parts.pop_back();
    }
    ASSIGN_OR_RETURN(Descriptor folder, OpenFolder(path, parts, O_PATH));
    return Place{std::move(folder), std::move(leaf)};
  }

  StatusOr<Place> FindFile(const std::string& path) const {
    ASSIGN_OR_RETURN(Place place, Find(path));
    if (place.leaf.empty()) return InvalidArgument("'", path, "' is the allowed folder itself; name a file in it");
    return place;
  }

  StatusOr<Descriptor> OpenFolderOf(const std::string& path) const {
    ASSIGN_OR_RETURN(Parts parts, Split(path));
    if (!parts.empty()) parts.pop_back();
    return OpenFolder(path, parts, O_RDONLY);
  }

  Status Unlink(const std::string& path, int flags, std::string_view verb) {
    ASSIGN_OR_RETURN(const Place place, FindFile(path));
    return ::unlinkat(place.folder.get(), place.leaf.c_str(), flags) < 0 ? SystemError(errno, verb, path) : Status();
  }

  const Descriptor root_;
  const std::string given_, real_;  // absolute names of the folder, without a slash at the end
  const bool in_one_call_;
};

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

StatusOr<std::unique_ptr<FileSystem>> OpenFilesBeneath(const std::string& folder, PathWalk walk) {
  RETURN_IF_ERROR(CheckPath(folder));
  const int fd = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return SystemError(errno, "open folder", folder);
  Descriptor root(fd);
  std::error_code error;
  const std::string real = std::filesystem::canonical(folder, error).string();
  if (error) return SystemError(error.value(), "examine folder", folder);
  std::string given = WithoutSlash(std::filesystem::absolute(folder, error).lexically_normal());
  // `..` after a link leads elsewhere than the text suggests.
  if (std::filesystem::canonical(given, error).string() != real) given = real;
  // Kernels before 5.6 do not know the call, and some sandboxes forbid it.
  const Descriptor probe(walk == PathWalk::kBest ? OpenBeneath(root.get(), ".", kPass) : -1);
  return std::make_unique<ConfinedFileSystem>(std::move(root), std::move(given), real, probe.get() >= 0);
}

}  // namespace thalweg
