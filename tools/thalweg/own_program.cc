#include "own_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/stat.h>

namespace thalweg::cli {

OwnProgram::OwnProgram() : file_(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  if (file_ < 0 || n <= 0) throw std::runtime_error(std::string("cannot open this program: ") + std::strerror(errno));
  path_.assign(path, size_t(n));
}

OwnProgram::~OwnProgram() { close(file_); }

std::string OwnProgram::Executable() const {
  struct stat here, there;
  const bool in_place =
      fstat(file_, &here) == 0 && stat(path_.c_str(), &there) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino;
  return in_place ? path_ : "/proc/self/fd/" + std::to_string(file_);
}

}  // namespace thalweg::cli
