/* C++17 sugar over the set "memory" (thalweg/plugin/memory.h). Header only; nothing here crosses
 * the boundary.
 *
 *   tw::TempVector<int64_t> order(n, f);               // a std::vector, charged to the session of the call
 *   tw::TempString text(f);                            // likewise
 *   const tw::Charge charge(f, n * sizeof(Entry));     // for memory that is allocated below
 *   holding.set(f, bytes);                             // a tw::Holding of an object: the bytes that it holds from now on
 *
 * Errors: thrown, as in plugin.hpp. Threads: as the C API; a Charge and a Holding are for one
 * thread at a time. */
#ifndef THALWEG_CPP_MEMORY_HPP
#define THALWEG_CPP_MEMORY_HPP
#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/cpp/plugin.hpp"
#include "thalweg/plugin/memory.h"

namespace tw {
inline namespace TW_CAT(TW_CAT(m, TW_MINOR), TW_CAT(t, THALWEG_TARGET_MINOR)) {

/* The account that pays for a call; valid until the call has ended. Runtimes without the set count
 * nothing. */
class Payer {
 public:
  Payer(const tw_frame* f) /* NOLINT: a frame is as good */
      : api_(static_cast<const tw_memory_api*>(f->host->query(f->host, TW_S(TW_MEMORY_SET), 1))),
        account_(api_ ? api_->account(f) : nullptr) {}
  Payer(Frame f) : Payer(f.f) {} /* NOLINT */
  /* The account that pays on this thread: inside `restore` of a resource's type that of the
   * restoring call. */
  explicit Payer(const tw_host* h)
      : api_(static_cast<const tw_memory_api*>(h->query(h, TW_S(TW_MEMORY_SET), 1))), account_(api_ ? api_->account(nullptr) : nullptr) {}
  void take(uint64_t bytes) const {
    if (account_) check(api_->take(account_, bytes));
  }
  void give(uint64_t bytes) const noexcept {
    if (account_) api_->give(account_, bytes);
  }
  const tw_memory_api* api() const { return api_; }
  tw_account* account() const { return account_; }

 private:
  const tw_memory_api* api_;
  tw_account* account_;
};

/* Heap bytes of a call, counted until the Charge is destroyed. */
class Charge {
 public:
  explicit Charge(Payer payer, uint64_t bytes = 0) : payer_(payer) { add(bytes); }
  Charge(const Charge&) = delete;
  ~Charge() { payer_.give(bytes_); }
  void add(uint64_t bytes) {
    if (bytes == 0) return;
    payer_.take(bytes);
    bytes_ += bytes;
  }

 private:
  const Payer payer_;
  uint64_t bytes_ = 0;
};

/* While this lives, the call's account pays for this thread's calls of the host without a frame. */
class PaysHere {
 public:
  explicit PaysHere(Payer payer) : api_(payer.api()), before_(api_ ? api_->pays(payer.account()) : nullptr) {}
  PaysHere(const PaysHere&) = delete;
  ~PaysHere() {
    if (api_) api_->pays(before_);
  }

 private:
  const tw_memory_api* api_;
  tw_account* before_;
};

/* Overhead of malloc for a block. */
inline constexpr uint64_t kHeapBlock = 16;

/* An allocator for standard containers that charges memory to the call. A container with it must
 * not outlive the call. */
template <class T>
class TempAllocator {
 public:
  using value_type = T;
  TempAllocator(const tw_frame* f) : payer_(f) {} /* NOLINT: containers are given the frame */
  TempAllocator(Frame f) : payer_(f) {}           /* NOLINT */
  template <class U>
  TempAllocator(const TempAllocator<U>& o) : payer_(o.payer()) {} /* NOLINT */
  T* allocate(size_t n) {
    if (n > size_t(PTRDIFF_MAX) / sizeof(T)) throw std::bad_alloc();
    const uint64_t bytes = n * sizeof(T) + kHeapBlock;
    payer_.take(bytes);
    try {
      return static_cast<T*>(::operator new(n * sizeof(T)));
    } catch (...) {
      payer_.give(bytes);
      throw;
    }
  }
  void deallocate(T* p, size_t n) noexcept {
    payer_.give(n * sizeof(T) + kHeapBlock);
    ::operator delete(p);
  }
  const Payer& payer() const { return payer_; }
  template <class U>
  bool operator==(const TempAllocator<U>& o) const {
    return payer_.account() == o.payer().account();
  }
  template <class U>
  bool operator!=(const TempAllocator<U>& o) const {
    return !(*this == o);
  }

 private:
  Payer payer_;
};
template <class T>
using TempVector = std::vector<T, TempAllocator<T>>;
using TempString = std::basic_string<char, std::char_traits<char>, TempAllocator<char>>;

/* Memory that an object holds between calls. The accounts of the calls that made it grow pay for it
 * until it shrinks or is destroyed. */
class Holding {
 public:
  Holding() = default;
  Holding(const Holding&) {} /* a copy of an object has paid for nothing yet */
  Holding(Holding&& o) noexcept : parts_(std::move(o.parts_)), bytes_(std::exchange(o.bytes_, 0)) { o.parts_.clear(); }
  Holding& operator=(Holding&& o) noexcept {
    std::swap(parts_, o.parts_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~Holding() {
    for (const Part& p : parts_) drop(p, p.bytes);
    for (const Part& p : parts_) p.api->release(p.account);
  }
  /* Sets the total bytes. Call it before the object grows, and after it shrank. Throws without a
   * change if the account refuses the growth. */
  void set(Payer payer, uint64_t bytes) {
    if (bytes > bytes_) grow(payer, bytes - bytes_);
    if (bytes < bytes_) shrink(bytes_ - bytes);
  }
  void add(Payer payer, uint64_t bytes) { set(payer, bytes_ + bytes); }
  void sub(uint64_t bytes) noexcept { shrink(std::min(bytes, bytes_)); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Part {
    const tw_memory_api* api;
    tw_account* account;
    uint64_t bytes;
  };
  static void drop(const Part& p, uint64_t bytes) noexcept { p.api->give(p.account, bytes); }
  void grow(Payer payer, uint64_t bytes) {
    if (!payer.account()) { /* no account pays */
      bytes_ += bytes;
      return;
    }
    auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.account == payer.account(); });
    if (part == parts_.end()) {
      parts_.push_back({payer.api(), payer.account(), 0});
      payer.api()->retain(payer.account());
      part = parts_.end() - 1;
    }
    payer.take(bytes);
    part->bytes += bytes;
    bytes_ += bytes;
  }
  /* Releases uncounted bytes first, then those of the latest payer. */
  void shrink(uint64_t bytes) noexcept {
    uint64_t paid = 0;
    for (const Part& p : parts_) paid += p.bytes;
    const uint64_t free = std::min(bytes, bytes_ - paid);
    bytes_ -= bytes;
    bytes -= free;
    while (bytes > 0) {
      Part& last = parts_.back();
      const uint64_t n = std::min(bytes, last.bytes);
      drop(last, n);
      last.bytes -= n;
      bytes -= n;
      if (last.bytes > 0) continue;
      last.api->release(last.account);
      parts_.pop_back();
    }
  }

  std::vector<Part> parts_;
  uint64_t bytes_ = 0;
};

/* clang-format off */
}  // the inline namespace
/* clang-format on */
}  // namespace tw
#endif
