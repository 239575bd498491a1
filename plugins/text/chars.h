// Texts as characters that know where they come from, and what the kernels share: errors, views,
// rows. Threads: values, no sharing.
#ifndef THALWEG_PLUGINS_TEXT_CHARS_H_
#define THALWEG_PLUGINS_TEXT_CHARS_H_

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>

#include "../common/quoted.h"
#include "../common/utf8.h"
#include "thalweg/cpp/memory.hpp"

namespace thalweg::text {

[[noreturn]] inline void Invalid(std::string text) { throw tw::Error{TW_INVALID_ARGUMENT, std::move(text)}; }

inline std::string_view View(const tw_string& s) { return s.size ? std::string_view(s.data, size_t(s.size)) : std::string_view(""); }

using common::AppendChar;
using common::kReplacement;
using common::NextChar;
using common::Quoted;

// A character, and the bytes [begin, end) of the original text that it stands for. An inserted
// character stands for those of its neighbour.
struct Char {
  uint32_t c, begin, end;
};
using Chars = tw::TempVector<Char>;

// Appends the characters of `text`. Throws INVALID_ARGUMENT for texts of 2^31 bytes and more.
void DecodeChars(std::string_view text, Chars* to);

// Calls row(i) for each i below n, on several threads. Throws the exception of the first row that
// threw; rows behind it may not run.
template <class F>
void EachRow(tw::Frame f, uint64_t n, const F& row) {
  std::mutex mu;  // guards error and at
  std::exception_ptr error;
  uint64_t at = n;
  const auto drop = [&](const std::exception_ptr& other) {
    try {
      if (other) std::rethrow_exception(other);
    } catch (const tw::Raised& r) {
      f.f->host->status->release(r.status);
    } catch (...) {  // other exceptions own nothing
    }
  };
  f.parallel(n, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      try {
        row(i);
      } catch (...) {
        const std::lock_guard lock(mu);
        drop(i < at ? error : std::current_exception());
        if (i < at) error = std::current_exception();
        at = std::min(at, i);
        return;
      }
    }
  });
  if (error) std::rethrow_exception(error);
}

// Reads and writes elements of splits, which are int32 or int64. Count throws if n does not fit.
inline int64_t SplitAt(const tw_view* v, uint64_t i) {
  const char* data = static_cast<const char*>(v->data) + v->offset;
  return v->dtype == TW_INT32 ? reinterpret_cast<const int32_t*>(data)[i] : reinterpret_cast<const int64_t*>(data)[i];
}
inline void PutSplit(const tw::Out<tw::Any>& to, uint64_t i, uint64_t n) {
  if (to.v()->dtype == TW_INT32) {
    if (n > INT32_MAX) Invalid(std::to_string(n) + " pieces do not fit splits of int32; use int64");
    reinterpret_cast<int32_t*>(to.data())[i] = int32_t(n);
  } else {
    reinterpret_cast<int64_t*>(to.data())[i] = int64_t(n);
  }
}
// Throws unless the splits are valid and end with `values`.
void CheckSplits(const tw_view* splits, uint64_t values, const char* name);

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_CHARS_H_
