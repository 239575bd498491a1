#include "framework/registry/plugin_digest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <sys/stat.h>

#include "framework/base/sha256.h"

namespace thalweg {
namespace {

FileStamp StampOf(const struct stat& st) {
  constexpr int64_t kSecond = 1'000'000'000;
  return {st.st_dev, st.st_ino, uint64_t(st.st_size), st.st_mtim.tv_sec * kSecond + st.st_mtim.tv_nsec,
          st.st_ctim.tv_sec * kSecond + st.st_ctim.tv_nsec};
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  OpenFile(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }
  bool Stamp(FileStamp* out) const {
    struct stat st;
    if (fstat(fd_, &st) != 0) return false;
    *out = StampOf(st);
    return true;
  }

 private:
  int fd_;
};

Status CannotRead() { return Error(absl::StatusCode::kUnavailable, "cannot read it: ", std::generic_category().message(errno)); }

}  // namespace

bool StampOf(const std::string& path, FileStamp* out) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return false;
  *out = StampOf(st);
  return true;
}

StatusOr<std::string> Sha256OfFile(const std::string& path, FileStamp* out_stamp) {
  OpenFile file(path);
  FileStamp after;
  if (file.fd() < 0 || !file.Stamp(out_stamp)) return CannotRead();
  Sha256Sum sum;
  std::string block(1 << 18, '\0');
  for (ssize_t n = 0; (n = read(file.fd(), block.data(), block.size())) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotRead();
    sum.Add({block.data(), size_t(n)});
  }
  if (!file.Stamp(&after) || !(after == *out_stamp)) return Error(absl::StatusCode::kUnavailable, "somebody is writing to it");
  return sum.Finish();
}

}  // namespace thalweg
