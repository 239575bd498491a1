#include "framework/registry/plugin_digest.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

// OpenSSL 3 deprecates the plain functions of the algorithm in favour of a layer with a hundred
// times the code.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <sys/stat.h>

namespace thalweg {
namespace {

std::string Hex(const unsigned char* bytes, size_t n) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < n; ++i) out += {kHexDigits[bytes[i] >> 4], kHexDigits[bytes[i] & 15]};
  return out;
}

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

std::string Sha256(std::string_view bytes) {
  SHA256_CTX state;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256_Init(&state);
  SHA256_Update(&state, bytes.data(), bytes.size());
  SHA256_Final(digest.data(), &state);
  return Hex(digest.data(), digest.size());
}

StatusOr<std::string> Sha256OfFile(const std::string& path, FileStamp* out_stamp) {
  OpenFile file(path);
  FileStamp after;
  if (file.fd() < 0 || !file.Stamp(out_stamp)) return CannotRead();
  SHA256_CTX state;
  SHA256_Init(&state);
  std::string block(1 << 18, '\0');
  for (ssize_t n = 0; (n = read(file.fd(), block.data(), block.size())) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotRead();
    SHA256_Update(&state, block.data(), size_t(n));
  }
  if (!file.Stamp(&after) || !(after == *out_stamp)) return Error(absl::StatusCode::kUnavailable, "somebody is writing to it");
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256_Final(digest.data(), &state);
  return Hex(digest.data(), digest.size());
}

}  // namespace thalweg
