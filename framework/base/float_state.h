// FloatState: what the results of a thread's floating-point arithmetic depend on beside its numbers: rounding, and whether denormal numbers
// count as zero. A library that is linked with -ffast-math changes it for the thread that loads it, and for all that this one starts later.
// Threads: any; each has a state of its own.
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
  // The calling thread's.
  static FloatState Now() { return FloatState(Read()); }
  // Makes it the calling thread's again.
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
  // "denormal numbers count as zero, numbers are rounded toward zero"; "as usual" for what a program begins with.
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
  static constexpr uint32_t kFlags = 0x3f;  // what has happened, which is nobody's setting
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

// Puts the thread's state back where it goes out of scope, or before.
class KeptFloatState {
 public:
  ~KeptFloatState() { Undo(); }
  KeptFloatState() = default;
  KeptFloatState(const KeptFloatState&) = delete;
  // What the state had become, as FloatState::text; empty where it is as it was.
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
