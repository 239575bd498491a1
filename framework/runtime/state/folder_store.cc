#include "framework/runtime/state/folder_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <sys/stat.h>

#include "framework/base/shown.h"
#include "framework/base/strings.h"
#include "framework/files/whole_file.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {
namespace {

constexpr std::chrono::milliseconds kLongestPause(20);
constexpr size_t kLongestValue = 64 << 10;

Status Failure(std::string_view what, const std::string& path) {
  return Error(absl::StatusCode::kUnavailable, "collective store: cannot ", what, " '", Shown(path), "': ", std::strerror(errno));
}

struct File {
  explicit File(int f) : fd(f) {}
  ~File() {
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
  const int fd;
};

}  // namespace

std::string FolderStore::PathOf(std::string_view key) const {
  std::string path = folder_ + "/k";
  for (const char c : key) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_') {
      path += c;
    } else {
      for (const int shift : {4, 0}) path += (shift ? "%" : "") + std::string(1, "0123456789abcdef"[uint8_t(c) >> shift & 15]);
    }
  }
  return path;
}

Status FolderStore::Put(std::string_view key, std::string_view value) {
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return Failure("make the folder", folder_);
  // A random name, because processes on several hosts and in containers may have equal numbers.
  const std::string path = PathOf(key), part = TemporaryName(folder_ + "/", "k");
  {
    const File file(open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.fd < 0) return Failure("make", part);
    if (write(file.fd, value.data(), value.size()) != ssize_t(value.size())) return Failure("write", part);
  }
  if (rename(part.c_str(), path.c_str()) != 0) return Failure("rename", part);
  return Status();
}

StatusOr<std::string> FolderStore::Get(std::string_view key, int64_t deadline) const {
  const std::string path = PathOf(key);
  for (auto pause = std::chrono::milliseconds(1);; pause = std::min(2 * pause, kLongestPause)) {
    const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.fd >= 0) {
      std::string value(kLongestValue, '\0');
      const ssize_t n = read(file.fd, value.data(), value.size());
      if (n < 0) return Failure("read", path);
      value.resize(size_t(n));
      return value;
    }
    if (errno != ENOENT) return Failure("open", path);
    if (stop_()) return Error(absl::StatusCode::kCancelled, "cancelled while waiting for '", Shown(path), "'");
    if (MonotonicNs() >= deadline) return Error(absl::StatusCode::kDeadlineExceeded, "no member has written '", Shown(path), "' in time");
    std::this_thread::sleep_for(pause);
  }
}

const tw_key_value_api* FolderStore::Api() {
  static constexpr tw_key_value_api kApi = {
      TW_SIZED(tw_key_value_api),
      [](void* self, const char* key, uint64_t key_len, const void* value, uint64_t bytes) {
        return Guard(
            [&] { return static_cast<FolderStore*>(self)->Put({key, size_t(key_len)}, {static_cast<const char*>(value), size_t(bytes)}); });
      },
      [](void* self, const char* key, uint64_t key_len, int64_t deadline, tw_sink* to) {
        return Guard([&]() -> Status {
          ASSIGN_OR_RETURN(const std::string value, static_cast<FolderStore*>(self)->Get({key, size_t(key_len)}, deadline));
          return FromC(to->put(to, value.data(), value.size()));
        });
      }};
  return &kApi;
}

}  // namespace thalweg
