// The local file system when the kernel refuses, interrupts or shortens its calls. The functions
// below replace those of the C library in this program; none of them waits for a disk.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_folder.h"
#include "tests/framework/io/fake_files.h"

namespace thalweg {
namespace {

// The faults of the calls between Arm and Disarm.
struct Faults {
  bool armed = false;
  int calls = 0;    // so far
  int fail_at = 0;  // this one fails with `error`; 0: none
  int error = 0;
  bool interrupt = false;  // every other call that may be interrupted is, once
  bool shorten = false;    // reads and writes transfer half of the bytes
  bool just_interrupted = false;
  std::string failed;
} faults;

// Returns true if the call must fail; errno is set.
bool Fails(const char* call, bool interruptible) {
  if (!faults.armed) return false;
  ++faults.calls;
  if (faults.calls == faults.fail_at) {
    faults.failed = call;
    errno = faults.error;
    return true;
  }
  if (!faults.interrupt || !interruptible) return false;
  faults.just_interrupted = !faults.just_interrupted;
  errno = EINTR;
  return faults.just_interrupted;
}

size_t Shortened(size_t n) { return faults.armed && faults.shorten && n > 1 ? n / 2 : n; }

}  // namespace
}  // namespace thalweg

using thalweg::Fails;
using thalweg::Shortened;

extern "C" {

ssize_t write(int fd, const void* p, size_t n) { return Fails("write", true) ? -1 : syscall(SYS_write, fd, p, Shortened(n)); }
ssize_t pread(int fd, void* p, size_t n, off_t at) { return Fails("read", true) ? -1 : syscall(SYS_pread64, fd, p, Shortened(n), at); }
ssize_t pread64(int fd, void* p, size_t n, off_t at) { return pread(fd, p, n, at); }
int fsync(int) { return Fails("fsync", true) ? -1 : 0; }
int fdatasync(int) { return Fails("fsync", true) ? -1 : 0; }
int close(int fd) {
  const bool fails = Fails("close", true);  // Linux closes the descriptor even so
  const int error = errno;
  const long done = syscall(SYS_close, fd);
  errno = fails ? error : errno;
  return fails ? -1 : int(done);
}
int rename(const char* from, const char* to) noexcept { return Fails("rename", false) ? -1 : int(syscall(SYS_rename, from, to)); }
int renameat(int a, const char* from, int b, const char* to) noexcept {
  return Fails("rename", false) ? -1 : int(syscall(SYS_renameat, a, from, b, to));
}
int unlink(const char* path) noexcept { return Fails("unlink", false) ? -1 : int(syscall(SYS_unlink, path)); }
int unlinkat(int fd, const char* path, int flags) noexcept {
  return Fails("unlink", false) ? -1 : int(syscall(SYS_unlinkat, fd, path, flags));
}
int flock(int fd, int how) noexcept { return Fails("flock", true) ? -1 : int(syscall(SYS_flock, fd, how)); }
int mkdir(const char* path, mode_t mode) noexcept { return Fails("mkdir", false) ? -1 : int(syscall(SYS_mkdir, path, mode)); }
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;
  va_end(more);
  return Fails("open", true) ? -1 : int(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open(path, flags, mode);
}

}  // extern "C"

namespace thalweg {
namespace {

using test::TempFolder;
using testing::HasSubstr;
using testing::Not;

NamedTensors Version(int v) {
  std::vector<float> large(200000, float(v));
  return {{"large", *Tensor::Vector<float>(TW_FLOAT, large)}, {"v", *Tensor::Vector<int32_t>(TW_INT32, {v, v, v})}};
}

class Armed {
 public:
  explicit Armed(Faults how) {
    faults = std::move(how);
    faults.armed = true;
  }
  ~Armed() { faults.armed = false; }
};

// Saves twice without faults, then once with faults, in a folder that keeps two checkpoints.
// Returns the result of the third save.
StatusOr<uint64_t> SaveThree(const std::string& folder, const Faults& how) {
  CheckpointKeep keep;
  keep.last = 2;
  ASSIGN_OR_RETURN(auto saver, CheckpointFolder::Open(folder, "m", keep));
  for (int v : {1, 2}) RETURN_IF_ERROR(saver->Save(v, {}, v, Version(v)).status());
  const Armed armed(how);
  return saver->Save(3, {}, 3, Version(3), 2);
}

// Returns the version that the folder names, if its checkpoint is whole.
StatusOr<int> Latest(const std::string& folder) {
  ASSIGN_OR_RETURN(const CheckpointState state, ReadCheckpointState(folder, LocalFiles()));
  ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open(folder + "/" + state.latest));
  RETURN_IF_ERROR(reader->VerifyAll());
  ASSIGN_OR_RETURN(const Tensor v, reader->Read("v"));
  ASSIGN_OR_RETURN(const Tensor large, reader->Read("large"));
  const int version = v.as<int32_t>()[0];
  return large.as<float>()[199999] == float(version) ? StatusOr<int>(version) : Internal("a mix");
}

TEST(SystemCallTest, WhicheverCallFailsTheOldCheckpointIsWholeAndTheStatusCarriesErrno) {
  for (int error : {ENOSPC, EIO, EDQUOT, EROFS}) {
    for (int n = 1;; ++n) {
      TempFolder folder;
      Faults how;
      how.fail_at = n;
      how.error = error;
      const auto saved = SaveThree(folder.path(), how);
      if (faults.calls < n) {
        EXPECT_GT(n, 30) << "calls of a save";
        break;
      }
      SCOPED_TRACE("errno " + std::to_string(error) + ", call " + std::to_string(n) + ", " + faults.failed);
      const auto latest = Latest(folder.path());
      ASSERT_TRUE(latest.ok()) << latest.status();
      ASSERT_TRUE(*latest == 3 || (*latest == 2 && !saved.ok())) << *latest;
      for (const std::string& name : folder.names()) {
        ASSERT_TRUE(faults.failed == "unlink" || name.find(".tmp-") == name.npos) << name;
      }
      if (saved.ok()) continue;
      ASSERT_THAT(std::string(Message(saved.status())), HasSubstr("errno " + std::to_string(error)));
      ASSERT_THAT(std::string(Message(saved.status())), HasSubstr(folder.path()));
    }
  }
}

TEST(SystemCallTest, InterruptionsAndShortCallsAreGoneOnFrom) {
  for (int which = 1; which < 4; ++which) {
    TempFolder folder;
    Faults how;
    how.interrupt = which & 1;
    how.shorten = which & 2;
    const auto saved = SaveThree(folder.path(), how);
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_EQ(*saved, 200000 * 4 + 12u);
    const Armed armed(how);
    const auto latest = Latest(folder.path());
    ASSERT_TRUE(latest.ok()) << latest.status();
    EXPECT_EQ(*latest, 3);
  }
}

TEST(SystemCallTest, AReadThatFailsSaysSo) {
  TempFolder folder;
  ASSERT_TRUE(SaveThree(folder.path(), {}).ok());
  for (int n = 1;; ++n) {
    Faults how;
    how.fail_at = n;
    how.error = EIO;
    StatusOr<int> latest = 0;
    {
      const Armed armed(how);
      latest = Latest(folder.path());
    }
    if (faults.calls < n) break;
    SCOPED_TRACE("call " + std::to_string(n) + ", " + faults.failed);
    if (faults.failed == "close" || faults.failed == "flock") continue;
    ASSERT_FALSE(latest.ok());
    EXPECT_THAT(std::string(Message(latest.status())), HasSubstr("errno 5"));
  }
}

}  // namespace
}  // namespace thalweg
