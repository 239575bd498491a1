#include "segment.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>

namespace thalweg::grpc_transport {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

char* Map(int descriptor, uint64_t bytes, int how) {
  void* memory = mmap(nullptr, bytes, how, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

}  // namespace

std::unique_ptr<Segment> Segment::Make() {
  const int descriptor = memfd_create("thalweg", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return nullptr;
  char* memory = nullptr;
  if (fchmod(descriptor, 0600) == 0 && ftruncate(descriptor, off_t(kBytes)) == 0 && fcntl(descriptor, F_ADD_SEALS, kSeals) == 0)
    memory = Map(descriptor, kBytes, PROT_READ | PROT_WRITE);
  if (!memory) {
    close(descriptor);
    return nullptr;
  }
  std::unique_ptr<Segment> s(new Segment(descriptor, memory));
  std::random_device device;
  s->name_.process = getpid();
  s->name_.descriptor = descriptor;
  for (uint64_t& word : s->name_.secret) word = uint64_t{device()} << 32 | device();
  std::memcpy(memory, s->name_.secret, sizeof s->name_.secret);
  return s;
}

std::unique_ptr<Segment> Segment::Open(const SegmentName& name) {
  const std::string path = "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return nullptr;
  struct stat s;
  const int seals = fcntl(descriptor, F_GET_SEALS);  // before its size, which stays from then on
  const bool sound = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(descriptor, &s) == 0 && S_ISREG(s.st_mode) &&
                     s.st_uid == geteuid() && (s.st_mode & 0777) == 0600 && uint64_t(s.st_size) == kBytes;
  char* memory = sound ? Map(descriptor, kBytes, PROT_READ) : nullptr;
  if (memory && std::memcmp(memory, name.secret, sizeof name.secret) == 0) return std::unique_ptr<Segment>(new Segment(descriptor, memory));
  if (memory) munmap(memory, kBytes);
  close(descriptor);
  return nullptr;
}

Segment::~Segment() {
  munmap(memory_, kBytes);
  close(descriptor_);
}

}  // namespace thalweg::grpc_transport
