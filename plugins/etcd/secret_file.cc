#include "secret_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <sys/stat.h>

#include "http.h"
#include "thalweg/plugin/abi.h"

namespace thalweg::etcd {
namespace {

constexpr off_t kMostBytes = 64 << 10;

}  // namespace

void MustBeSecret(const std::string& path, const struct stat& s) {
  if (!S_ISREG(s.st_mode)) throw Failed(TW_INVALID_ARGUMENT, "'" + path + "' is no file");
  if (s.st_uid != geteuid() && s.st_uid != 0)
    throw Failed(TW_INVALID_ARGUMENT, "'" + path + "' belongs to user " + std::to_string(s.st_uid) +
                                          ", who may change it; chown it to user " + std::to_string(geteuid()));
  if ((s.st_mode & (S_IRWXG | S_IRWXO)) != 0) throw Failed(TW_INVALID_ARGUMENT, "'" + path + "' can be read by others; chmod 600");
}

std::string ReadSecretLine(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // without O_NONBLOCK, a named pipe would wait for a writer
  if (fd < 0 && errno == ENOENT) return "";
  struct Closes {
    int fd;
    ~Closes() {
      if (fd >= 0) close(fd);
    }
  } closes{fd};
  struct stat s = {};
  if (fd < 0 || fstat(fd, &s) != 0) throw Failed(TW_INVALID_ARGUMENT, "'" + path + "' cannot be read: " + strerror(errno));
  MustBeSecret(path, s);
  if (s.st_size > kMostBytes) throw Failed(TW_INVALID_ARGUMENT, "'" + path + "' has more than 64 KiB; a line name:password is wanted");
  std::string text(size_t(s.st_size), '\0');
  const ssize_t n = text.empty() ? 0 : read(fd, text.data(), text.size());
  if (n < 0) throw Failed(TW_INVALID_ARGUMENT, "'" + path + "' cannot be read: " + strerror(errno));
  text.resize(size_t(n));
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace thalweg::etcd
