/* C++17 sugar for what a kernel reports to the trace of a step (thalweg/plugin/kernel.h,
 * tw_run_api.span). Header only; nothing here crosses the boundary. It declares nothing unless the
 * plugin is compiled with THALWEG_TARGET_MINOR 1 or more. With THALWEG_FLOOR_MINOR 0 the plugin also
 * runs in hosts of minor 0, where these calls do nothing.
 *
 *   {
 *     const tw::Span reading(f, "read");    // a bar in the trace, from here to the end of the block
 *     bytes += Read();
 *   }
 *   tw::count(f, "bytes", bytes);           // the counter has this value from now on
 *
 * In a step that is not recorded, a Span costs one call of the host and reads no clock. Threads: as
 * the C API; a Span is for one thread. */
#ifndef THALWEG_CPP_TRACE_HPP
#define THALWEG_CPP_TRACE_HPP
#include "thalweg/cpp/plugin.hpp"

#if THALWEG_TARGET_MINOR >= 1
namespace tw {
inline namespace TW_CAT(TW_CAT(m, TW_MINOR), TW_CAT(t, THALWEG_TARGET_MINOR)) {

/* Returns the number of the trace that records the step of the call; 0: none, or the host is of
 * minor 0. */
inline uint64_t trace(const tw_frame* f) noexcept { return TW_HAS(f->host->run, trace) ? f->host->run->trace(f) : 0; }
inline uint64_t trace(Frame f) noexcept { return trace(f.f); }

/* Sets the counter `name` of the call's node to a value. */
inline void count(const tw_frame* f, std::string_view name, int64_t value) noexcept {
  if (TW_HAS(f->host->run, count)) f->host->run->count(f, name.data(), name.size(), value);
}
inline void count(Frame f, std::string_view name, int64_t value) noexcept { count(f.f, name, value); }

/* The part of a call from construction to destruction. name, row: static text, or must outlive the
 * Span. row: where the trace shows it; empty: on the row of the thread, inside the node's bar. */
class Span {
 public:
  explicit Span(const tw_frame* f, std::string_view name, std::string_view row = {}) noexcept
      : f_(trace(f) ? f : nullptr), name_(name), row_(row), begin_(f_ ? f->host->run->now(f->host) : 0) {}
  explicit Span(Frame f, std::string_view name, std::string_view row = {}) noexcept : Span(f.f, name, row) {}
  Span(const Span&) = delete;
  ~Span() {
    if (!f_) return;
    const tw_run_api* run = f_->host->run;
    const tw_span s = {TW_SIZED(tw_span), row_.data(), row_.size(), name_.data(), name_.size(), begin_, run->now(f_->host), nullptr, 0};
    run->span(f_, &s);
  }

 private:
  const tw_frame* f_; /* NULL: nobody records the step */
  std::string_view name_, row_;
  int64_t begin_;
};

/* clang-format off */
}  // the inline namespace
/* clang-format on */
}  // namespace tw
#endif
#endif
