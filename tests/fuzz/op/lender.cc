#include "tests/fuzz/op/lender.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include <sys/mman.h>

#include "tests/fuzz/broken.h"
#if defined(__x86_64__)
#include <ucontext.h>
#endif

namespace thalweg::fuzz {
namespace {

constexpr uint64_t kSteps = 6, kRaces = 8;
constexpr uint64_t kMostAccesses = 2000;  // approximate limit of all steps after the first; each access costs two signals

template <class T>
void Store(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// Returns another element: close to the given one, or as far from it as its type allows.
template <class T>
void OtherWhole(std::mt19937_64& random, char* at) {
  T old;
  std::memcpy(&old, at, sizeof old);
  const T choices[] = {
      std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T(-1),  T(0),       T(1), T(uint64_t(old) + 1), T(uint64_t(old) - 1),
      T(uint64_t(old) + 1'000'000u), T(uint64_t(old) * 3u + 64u),   T(100), T(random())};
  Store(at, choices[random() % std::size(choices)]);
}

template <class T>
void OtherReal(std::mt19937_64& random, char* at) {
  const T choices[] = {std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity(),
                       T(0),
                       T(-1),
                       T(1),
                       T(1e9),
                       T(-1e9),
                       T(double(random() % 2000) - 1000)};
  Store(at, choices[random() % std::size(choices)]);
}

void OtherElement(std::mt19937_64& random, uint32_t dtype, char* at) {
  switch (dtype) {
    case TW_FLOAT:
    case TW_COMPLEX64: return OtherReal<float>(random, at);
    case TW_DOUBLE:
    case TW_COMPLEX128: return OtherReal<double>(random, at);
    case TW_INT64: return OtherWhole<int64_t>(random, at);
    case TW_UINT64: return OtherWhole<uint64_t>(random, at);
    case TW_INT32:
    case TW_QINT32: return OtherWhole<int32_t>(random, at);
    case TW_UINT32: return OtherWhole<uint32_t>(random, at);
    case TW_INT16:
    case TW_QINT16: return OtherWhole<int16_t>(random, at);
    case TW_UINT16:
    case TW_QUINT16:
    case TW_HALF:
    case TW_BFLOAT16: return OtherWhole<uint16_t>(random, at);
    case TW_BOOL: *at = char(!*at); return;
    default: return OtherWhole<uint8_t>(random, at);
  }
}

}  // namespace

LentMemory::LentMemory(uint64_t seed) : random_(seed) {
  void* pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) Broken("no memory to lend");
  data_ = static_cast<char*>(pages);
}

LentMemory::~LentMemory() { munmap(data_, kBytes); }

tw_tensor* LentMemory::Lend(tw_tensor* value) {
  const uint32_t dtype = tw_tensor_dtype(value), rank = tw_tensor_rank(value);
  const uint64_t bytes = tw_tensor_bytes(value);
  if (dtype == TW_STRING || dtype == TW_RESOURCE || dtype == TW_VARIANT || bytes == 0) return nullptr;
  const auto [found, added] = parts_.try_emplace(value);
  if (added) {
    if (used_ + bytes > kBytes) {
      parts_.erase(found);
      return nullptr;
    }
    found->second = {used_, size_t(bytes), dtype};
    used_ += (bytes + 63) / 64 * 64;
    fed_.resize(this->bytes());
    other_.resize(fed_.size());
    std::memcpy(fed_.data() + found->second.at, tw_tensor_data(value), bytes);
    std::memcpy(data_ + found->second.at, tw_tensor_data(value), bytes);
  }
  tw_tensor* lent = nullptr;
  Must(tw_tensor_create_from(dtype, tw_tensor_dims(value), rank, data_ + found->second.at, bytes, nullptr, nullptr, &lent),
       "lending a tensor");
  return lent;
}

void LentMemory::Draw() {
  std::memcpy(data_, fed_.data(), fed_.size());
  other_ = fed_;
  for (const auto& [value, part] : parts_) {
    const size_t element = tw_dtype_bytes(part.dtype);
    const bool all = random_() % 2;
    for (size_t at = part.at; at + element <= part.at + part.bytes; at += element) {
      if (all || random_() % 3 == 0) OtherElement(random_, part.dtype, other_.data() + at);
    }
  }
}

// ---- Accesses one by one ----

#if defined(__x86_64__)
namespace {

// The state of the signal handlers. One step at a time, on any threads.
struct Watched {
  char* data = nullptr;
  size_t bytes = 0;
  const char *fed = nullptr, *other = nullptr;
  uint64_t turn = 0;        // the access before which the contents change
  bool to_and_fro = false;  // also toggles at each later access
  std::atomic<uint64_t> accesses{0};
};
Watched watched;
struct sigaction faults_before;
constexpr greg_t kTrapFlag = 0x100;
constexpr uint64_t kMostTrapped = 1 << 16;  // accesses of one step; later ones are not noticed

void OnFault(int, siginfo_t* info, void* context) {
  const char* at = static_cast<char*>(info->si_addr);
  if (!watched.data || at < watched.data || at >= watched.data + watched.bytes) {
    sigaction(SIGSEGV, &faults_before, nullptr);  // reruns the instruction under the previous handler
    return;
  }
  mprotect(watched.data, watched.bytes, PROT_READ | PROT_WRITE);
  const uint64_t n = watched.accesses.fetch_add(1);
  if (n >= watched.turn && (n == watched.turn || watched.to_and_fro)) {
    std::memcpy(watched.data, (n - watched.turn) % 2 == 0 ? watched.other : watched.fed, watched.bytes);
  }
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
}

void OnTrap(int, siginfo_t*, void* context) {
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  // A change can make a step that has a million times as many accesses, such as an image of another size.
  if (watched.data && watched.accesses < kMostTrapped) mprotect(watched.data, watched.bytes, PROT_NONE);
}

void Handle(int signal, void (*handler)(int, siginfo_t*, void*), struct sigaction* before) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, before) != 0) Broken("a signal cannot be handled");
}

}  // namespace

bool SteppingLender::Offered() { return true; }

SteppingLender::~SteppingLender() { watched.data = nullptr; }

void SteppingLender::Begin() {
  if (memory_.empty()) return;
  memory_.Draw();
  watched.data = memory_.data();
  watched.bytes = memory_.bytes();
  watched.fed = memory_.fed();
  watched.other = memory_.other();
  watched.accesses = 0;
  watched.to_and_fro = steps_ % 3 == 2;
  // The first step reads the fed values; later steps change them at one of the accesses.
  watched.turn = steps_ == 0 ? ~uint64_t{0} : (steps_ * 0x9e3779b97f4a7c15u >> 20) % counted_;
  Handle(SIGSEGV, OnFault, &faults_before);
  Handle(SIGTRAP, OnTrap, nullptr);
  mprotect(watched.data, watched.bytes, PROT_NONE);
}

bool SteppingLender::End(bool succeeded) {
  if (memory_.empty()) return false;
  mprotect(watched.data, watched.bytes, PROT_READ | PROT_WRITE);
  watched.data = nullptr;
  sigaction(SIGSEGV, &faults_before, nullptr);
  signal(SIGTRAP, SIG_DFL);
  const uint64_t seen = watched.accesses;
  accesses_ += seen;
  if (steps_ == 0) {
    counted_ = seen;
    succeeded_ = succeeded;
  }
  ++steps_;
  return succeeded_ && counted_ > 0 && steps_ <= std::clamp<uint64_t>(kMostAccesses / counted_, 2, kSteps);
}
#else
bool SteppingLender::Offered() { return false; }
SteppingLender::~SteppingLender() = default;
void SteppingLender::Begin() {}
bool SteppingLender::End(bool) { return false; }
#endif

// ---- A concurrent writer ----

struct RacingLender::Writer {
  std::atomic<bool> began{false}, over{false};
  std::thread thread;
};

RacingLender::~RacingLender() { delete writer_; }

void RacingLender::Begin() {
  if (memory_.empty()) return;
  memory_.Draw();
  writer_ = new Writer;
  writer_->thread = std::thread([this] {
    const size_t n = memory_.bytes() / 8;
    auto* to = reinterpret_cast<volatile uint64_t*>(memory_.data());
    const auto* fed = reinterpret_cast<const uint64_t*>(memory_.fed());
    const auto* other = reinterpret_cast<const uint64_t*>(memory_.other());
    for (uint64_t round = 0; !writer_->over.load(std::memory_order_relaxed); ++round) {
      for (size_t i = 0; i < n; ++i) to[i] = round % 2 == 0 ? other[i] : fed[i];
      writer_->began.store(true, std::memory_order_release);
    }
  });
  while (!writer_->began.load(std::memory_order_acquire)) std::this_thread::yield();
}

bool RacingLender::End(bool succeeded) {
  if (memory_.empty()) return false;
  writer_->over = true;
  writer_->thread.join();
  delete std::exchange(writer_, nullptr);
  failures_ += !succeeded;
  return ++steps_ % kRaces != 0;
}

}  // namespace thalweg::fuzz
