// FloatState: the floating-point settings of a thread, such as rounding and whether denormal numbers
// count as zero. A library that is linked with -ffast-math changes them for the thread that loads it,
// and for all threads that this one starts later.
// Threads: any; each thread has its own state.
#pragma once
#include <cfenv>
#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace thalweg {

class FloatState {
 public:
  // Returns the state of the calling thread.
  static FloatState Now() { return FloatState(Read()); }
  // Sets the state of the calling thread to this one.
  void Restore() const {
#if defined(__x86_64__)
    _mm_setcsr((_mm_getcsr() & kFlags) | uint32_t(word_));
#elif defined(__aarch64__)
    __asm__ __volatile__("msr fpcr, %0" : : "r"(word_));
#else
    std::fesetround(int(word_));
#endif
  }
  bool operator==(const FloatState& o) const { return word_ == o.word_; }
  // Returns a text such as "denormal numbers count as zero, numbers are rounded toward zero"; "as
  // usual" for the state in which a program begins.
  std::string text() const {
    std::string text;
    const auto add = [&](bool is, const char* what) {
      if (is) text += (text.empty() ? "" : ", ") + std::string(what);
    };
#if defined(__x86_64__)
    add((word_ & 0x8040) != 0, "denormal numbers count as zero");
    add((word_ & 0x6000) == 0x2000, "numbers are rounded down");
    add((word_ & 0x6000) == 0x4000, "numbers are rounded up");
    add((word_ & 0x6000) == 0x6000, "numbers are rounded toward zero");
    add((word_ & 0x1f80) != 0x1f80, "floating-point exceptions are signals");
#elif defined(__aarch64__)
    add((word_ & (uint64_t{1} << 24)) != 0, "denormal numbers count as zero");
    add((word_ & (uint64_t{3} << 22)) == uint64_t{1} << 22, "numbers are rounded up");
    add((word_ & (uint64_t{3} << 22)) == uint64_t{2} << 22, "numbers are rounded down");
    add((word_ & (uint64_t{3} << 22)) == uint64_t{3} << 22, "numbers are rounded toward zero");
#else
    add(word_ != uint64_t(FE_TONEAREST), "numbers are not rounded to the nearest");
#endif
    return text.empty() ? "as usual" : text;
  }

 private:
  explicit FloatState(uint64_t word) : word_(word) {}
#if defined(__x86_64__)
  static constexpr uint32_t kFlags = 0x3f;  // flags of past exceptions, which are not settings
#endif
  static uint64_t Read() {
#if defined(__x86_64__)
    return _mm_getcsr() & ~kFlags;
#elif defined(__aarch64__)
    uint64_t word;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(word));
    return word;
#else
    return uint64_t(std::fegetround());
#endif
  }
  uint64_t word_;
};

// Saves the thread's state and restores it on destruction, or earlier by Undo.
class KeptFloatState {
 public:
  ~KeptFloatState() { Undo(); }
  KeptFloatState() = default;
  KeptFloatState(const KeptFloatState&) = delete;
  // Restores the saved state. Returns the state found, as FloatState::text; empty if it was unchanged.
  std::string Undo() const {
    const FloatState now = FloatState::Now();
    if (now == kept_) return "";
    kept_.Restore();
    return now.text();
  }

 private:
  const FloatState kept_ = FloatState::Now();
};

}  // namespace thalweg
