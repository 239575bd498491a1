#include "distributed/sandbox/packet_ring.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <sys/mman.h>
#include <sys/stat.h>

namespace thalweg::distributed {
namespace {

constexpr size_t kPairBytes = 2 * sizeof(PacketRing);

}  // namespace

// ---- RingWriter ----

uint64_t RingWriter::Room() {
  const uint64_t used = at_ - ring_->state.read.load();
  if (used <= kRingBytes) return kRingBytes - used;
  broken_ = true;  // the reader claims to have read more than was written, or takes back what it has read
  return 0;
}

void RingWriter::Copy(std::string_view part) {
  const size_t begin = size_t(at_ % kRingBytes), first = std::min(part.size(), kRingBytes - begin);
  std::memcpy(ring_->data + begin, part.data(), first);
  std::memcpy(ring_->data, part.data() + first, part.size() - first);
  at_ += part.size();
}

bool RingWriter::Put(std::initializer_list<std::string_view> parts) {
  uint32_t bytes = 0;
  for (std::string_view part : parts) bytes += uint32_t(part.size());
  if (Room() < sizeof bytes + bytes) return false;
  Copy({reinterpret_cast<const char*>(&bytes), sizeof bytes});
  for (std::string_view part : parts) {
    if (!part.empty()) Copy(part);
  }
  ring_->state.written.store(at_);
  return true;
}

bool RingWriter::WaitForRoom() {
  ring_->state.writer_waits.store(1);
  return Room() < kRingBytes / 2 && !broken_;
}

// ---- RingReader ----

void RingReader::Copy(uint64_t from, char* to, size_t n) const {
  const size_t begin = size_t(from % kRingBytes), first = std::min(n, kRingBytes - begin);
  std::memcpy(to, ring_->data + begin, first);
  std::memcpy(to + first, ring_->data, n - first);
}

size_t RingReader::Take(char* to, size_t most) {
  const uint64_t at = at_.load(std::memory_order_relaxed), there = ring_->state.written.load() - at;
  uint32_t bytes = 0;
  if (there == 0 || broken_) return 0;
  if (there > sizeof bytes && there <= kRingBytes) Copy(at, reinterpret_cast<char*>(&bytes), sizeof bytes);
  if (bytes == 0 || bytes > most || bytes > there - sizeof bytes) {
    broken_ = true;
    return 0;
  }
  Copy(at + sizeof bytes, to, bytes);
  at_.store(at + sizeof bytes + bytes, std::memory_order_relaxed);
  ring_->state.read.store(at + sizeof bytes + bytes);
  return bytes;
}

bool RingReader::Sleep() {
  ring_->state.reader_sleeps.store(1);
  return !ready();
}

// ---- RingPair ----

StatusOr<int> RingPair::Make() {
  const int fd = memfd_create("thalweg pipe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return ResourceExhausted("pipe: no descriptor is left for its memory; raise the limit on open files");
  if (ftruncate(fd, off_t(kPairBytes)) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) return fd;
  close(fd);
  return ResourceExhausted("pipe: there are no ", kPairBytes, " bytes of shared memory");
}

StatusOr<std::unique_ptr<RingPair>> RingPair::Map(int fd) {
  struct stat is = {};
  if (fstat(fd, &is) != 0 || is.st_size != off_t(kPairBytes)) {
    return InvalidArgument("pipe: descriptor ", fd, " is no memory of a pipe, of ", kPairBytes, " bytes");
  }
  void* data = mmap(nullptr, kPairBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return ResourceExhausted("pipe: its ", kPairBytes, " bytes of memory cannot be mapped");
  return std::unique_ptr<RingPair>(new RingPair(static_cast<PacketRing*>(data)));  // zeros are a valid state: nothing was written
}

RingPair::~RingPair() { munmap(rings_, kPairBytes); }

}  // namespace thalweg::distributed
