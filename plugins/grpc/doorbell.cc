#include "doorbell.h"

#include <unistd.h>

#include <climits>
#include <ctime>
#include <utility>

#include <linux/futex.h>
#include <sys/syscall.h>

namespace thalweg::grpc_transport {
namespace {

// The kernel's futex word is an int; futexes that processes share are not private.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

// Sets the word to 0 and wakes its sleepers in one call. With two calls, a process killed between
// them would leave a sleeper that nobody wakes any more.
void WakeAll(std::atomic<uint32_t>* word) {
  constexpr int kNever = FUTEX_OP(FUTEX_OP_SET, 0, FUTEX_OP_CMP_LT, 0);
  if (syscall(SYS_futex, word, FUTEX_WAKE_OP, INT_MAX, nullptr, word, kNever) >= 0) return;
  word->store(0);  // for a kernel without that operation
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

// Zeros are the initial state of both members.
std::unique_ptr<Doorbell> Doorbell::Of(std::unique_ptr<SharedMemory> memory) {
  return memory ? std::unique_ptr<Doorbell>(new Doorbell(std::move(memory))) : nullptr;
}
std::unique_ptr<Doorbell> Doorbell::Make() { return Of(SharedMemory::Make(sizeof(Bells))); }
std::unique_ptr<Doorbell> Doorbell::Open(const MemoryName& name) { return Of(SharedMemory::Open(name, sizeof(Bells), true)); }

void Doorbell::Ring(uint32_t who) {
  const uint64_t bit = uint64_t{1} << (who % 64);
  if (bells().rung[who / 64].fetch_or(bit) & bit) return;  // the thread that set the bit has done the rest
  if (bells().sleeps.load() != 0) WakeAll(&bells().sleeps);
}

void Doorbell::Wake() { WakeAll(&bells().sleeps); }

bool Doorbell::rung(uint32_t words) const {
  for (uint32_t i = 0; i < words; ++i) {
    if (bells().rung[i].load() != 0) return true;
  }
  return false;
}

void Doorbell::Sleep(std::chrono::nanoseconds most) {
  const timespec time = {time_t(most.count() / 1'000'000'000), long(most.count() % 1'000'000'000)};
  syscall(SYS_futex, &bells().sleeps, FUTEX_WAIT, 1, &time, nullptr, 0);
}

}  // namespace thalweg::grpc_transport
