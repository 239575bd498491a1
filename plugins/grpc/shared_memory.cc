#include "shared_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace thalweg::grpc_transport {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

char* Map(int descriptor, uint64_t bytes, int how) {
  void* memory = mmap(nullptr, bytes, how, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return nullptr;
  (void)madvise(memory, bytes, MADV_DONTFORK);
  return static_cast<char*>(memory);
}

// Opens unnamed memory of this user; -1 if the path is anything else. A process id from another
// container may be that of another process here, even of this one. So the path is examined without
// being opened: closing a file would drop all locks of the process on it, and opening a device may
// have effects.
int OpenMemory(const std::string& path) {
  const int found = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (found < 0) return -1;
  struct stat s;
  struct statfs system;
  const bool is_memory = fstat(found, &s) == 0 && S_ISREG(s.st_mode) && s.st_nlink == 0 && s.st_uid == geteuid() &&
                         (s.st_mode & 0777) == 0600 && fstatfs(found, &system) == 0 && system.f_type == TMPFS_MAGIC;
  const int descriptor = is_memory ? open(("/proc/self/fd/" + std::to_string(found)).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
  close(found);
  return descriptor;
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::Make(uint64_t bytes) {
  const uint64_t all = kHeader + bytes;
  const int descriptor = memfd_create("thalweg", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return nullptr;
  char* memory = nullptr;
  if (fchmod(descriptor, 0600) == 0 && ftruncate(descriptor, off_t(all)) == 0 && fcntl(descriptor, F_ADD_SEALS, kSeals) == 0)
    memory = Map(descriptor, all, PROT_READ | PROT_WRITE);
  if (!memory) {
    close(descriptor);
    return nullptr;
  }
  std::unique_ptr<SharedMemory> s(new SharedMemory(descriptor, memory, all));
  std::random_device device;
  s->name_.process = getpid();
  s->name_.descriptor = descriptor;
  for (uint64_t& word : s->name_.secret) word = uint64_t{device()} << 32 | device();
  std::memcpy(memory, s->name_.secret, sizeof s->name_.secret);
  return s;
}

std::unique_ptr<SharedMemory> SharedMemory::Open(const MemoryName& name, uint64_t bytes, bool writable) {
  const uint64_t all = kHeader + bytes;
  const std::string path = "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.descriptor);
  const int descriptor = OpenMemory(path);
  if (descriptor < 0) return nullptr;
  struct stat s;
  const int seals = fcntl(descriptor, F_GET_SEALS);  // before the size, which is fixed from then on
  const bool sound = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(descriptor, &s) == 0 && uint64_t(s.st_size) == all;
  char* memory = sound ? Map(descriptor, all, writable ? PROT_READ | PROT_WRITE : PROT_READ) : nullptr;
  close(descriptor);
  if (!memory) return nullptr;
  std::unique_ptr<SharedMemory> opened(new SharedMemory(-1, memory, all));
  opened->name_ = name;
  return std::memcmp(memory, name.secret, sizeof name.secret) == 0 ? std::move(opened) : nullptr;
}

void SharedMemory::Hide() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

SharedMemory::~SharedMemory() {
  if (origin_.here()) munmap(memory_, all_);  // else the address may hold something else
  Hide();
}

}  // namespace thalweg::grpc_transport
