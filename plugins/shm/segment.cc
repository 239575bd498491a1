#include "segment.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace thalweg::shm {
namespace {

using common::Fail;

constexpr uint64_t kMagic = 0x3167657377742d31;  // changes with the layout
constexpr uint64_t kPage = 4096;

[[noreturn]] void FailOn(const std::string& what) { Fail(TW_UNAVAILABLE, what + ": " + std::strerror(errno)); }

std::string NewName() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != ssize_t(sizeof number)) FailOn("no random number for a name");
  std::string name = "/thalweg-";
  for (int i = 0; i < 16; ++i) name += "0123456789abcdef"[number >> (4 * i) & 15];
  return name;
}

struct flock ByteOf(uint32_t rank) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

struct Segment::Head {
  uint64_t magic;
  uint32_t members, reserved;
  uint64_t window;
  std::atomic<uint32_t> broken;  // 0: no; 1: the failure is being written; 2: it is there
  uint32_t code, length;
  char text[960];
};

void FutexWait(const std::atomic<uint32_t>& number, uint32_t seen, int64_t nanoseconds) {
  const timespec time = {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  syscall(SYS_futex, &number, FUTEX_WAIT, seen, &time, nullptr, 0);  // callers look again, whatever woke them
}

void FutexWake(const std::atomic<uint32_t>& number) { syscall(SYS_futex, &number, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

uint64_t Segment::WindowsAt(uint32_t members) {
  const uint64_t slots = sizeof(Head) + uint64_t{members} * sizeof(Slot) + alignof(Slot);
  return (slots + kPage - 1) / kPage * kPage;
}

uint64_t Segment::Bytes(uint32_t members, uint64_t window) { return WindowsAt(members) + (2 * uint64_t{members} + 1) * window; }

Segment::~Segment() {
  if (memory_) munmap(memory_, bytes_);
  if (file_ >= 0) close(file_);  // ends the lock
}

void Segment::Map(uint64_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (at == MAP_FAILED) FailOn("cannot map " + std::to_string(bytes) + " bytes of '" + path_ + "'");
  memory_ = at;
  bytes_ = bytes;
}

void Segment::Create(const std::string& folder, uint32_t members, uint64_t window, const char* window_setting) {
  path_ = folder + NewName();
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ < 0) FailOn("cannot make '" + path_ + "'");
  const uint64_t bytes = Bytes(members, window);
  // Without the memory, the first write to it would kill the process.
  const int error = posix_fallocate(file_, 0, off_t(bytes));
  if (error) {
    Unlink();
    Fail(TW_RESOURCE_EXHAUSTED, "no " + std::to_string(bytes) + " bytes of shared memory in '" + folder + "': " + std::strerror(error) +
                                    "; enlarge it, or set a smaller '" + window_setting + "'");
  }
  Map(bytes);
  members_ = members;
  window_ = window;
  head().members = members;
  head().window = window;
  std::atomic_thread_fence(std::memory_order_release);
  head().magic = kMagic;
}

bool Segment::Open(const std::string& path, uint32_t members) {
  path_ = path;
  file_ = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file_ < 0 && errno == ENOENT) return false;
  if (file_ < 0) FailOn("cannot open '" + path + "'");
  struct stat about = {};
  if (fstat(file_, &about) != 0) FailOn("cannot look at '" + path + "'");
  if (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & 077)) {
    Fail(TW_PERMISSION_DENIED, "'" + path + "' belongs to another user or lets others in");
  }
  if (uint64_t(about.st_size) < WindowsAt(members))
    Fail(TW_INVALID_ARGUMENT, "'" + path + "' is too small for " + std::to_string(members) + " members");
  Map(uint64_t(about.st_size));
  const Head& h = head();
  if (h.magic != kMagic) Fail(TW_FAILED_PRECONDITION, "'" + path + "' was made by another version of the plugin");
  if (h.members != members) {
    Fail(TW_INVALID_ARGUMENT,
         "this member's group has " + std::to_string(members) + " members, that of rank 0 has " + std::to_string(h.members));
  }
  if (h.window % 64 || h.window > bytes_ || Bytes(members, h.window) > bytes_) Fail(TW_DATA_LOSS, "'" + path + "' is damaged");
  members_ = members;
  window_ = h.window;
  if (IsAlive(0)) return true;
  Unlink();  // rank 0 was lost before it could do so; it had its lock before others learned of the file
  return false;
}

void Segment::Come(uint32_t rank) {
  struct flock lock = ByteOf(rank);
  if (fcntl(file_, F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) FailOn("cannot lock '" + path_ + "'");
    Fail(TW_ALREADY_EXISTS, "the group already has a member " + std::to_string(rank) + "; give each member another rank");
  }
  if (slot(rank).process.exchange(getpid()) != 0)
    Fail(TW_ALREADY_EXISTS, "the group had a member " + std::to_string(rank) + " that is lost");
  came_ = true;
}

void Segment::Unlink() {
  unlink(path_.c_str());  // another member may have done it
}

Slot& Segment::slot(uint32_t rank) const {
  const uint64_t first = (sizeof(Head) + alignof(Slot) - 1) / alignof(Slot) * alignof(Slot);
  return reinterpret_cast<Slot*>(static_cast<char*>(memory_) + first)[rank];
}

char* Segment::in(uint32_t which, uint32_t rank) const {
  return static_cast<char*>(memory_) + WindowsAt(members_) + (uint64_t{which} * members_ + rank) * window_;
}

char* Segment::out() const { return in(2, 0); }

bool Segment::IsAlive(uint32_t rank) const {
  struct flock lock = ByteOf(rank);
  if (fcntl(file_, F_OFD_GETLK, &lock) != 0) return true;  // cannot say; the deadline ends the wait
  return lock.l_type != F_UNLCK;
}

void Segment::Break(uint32_t code, const std::string& text) {
  Head& h = head();
  uint32_t none = 0;
  if (!h.broken.compare_exchange_strong(none, 1)) return;
  h.code = code;
  h.length = uint32_t(std::min(text.size(), sizeof h.text));
  std::memcpy(h.text, text.data(), h.length);
  h.broken.store(2, std::memory_order_release);
  for (uint32_t r = 0; r < members_; ++r) WakeAll(r);
}

Failed Segment::Failure() const {
  const Head& h = head();
  if (h.broken.load(std::memory_order_acquire) != 2) return {};
  return {h.code, std::string(h.text, std::min<size_t>(h.length, sizeof h.text))};
}

void Segment::WakeAll(uint32_t rank) const { FutexWake(slot(rank).phase); }

}  // namespace thalweg::shm
