// A text that grows, whose memory is charged to a request: a body or an answer.
// Threads: one at a time.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "request_memory.h"

namespace thalweg::cli::serve {

class ChargedText {
 public:
  explicit ChargedText(std::shared_ptr<RequestMemory> request) : charge_(std::move(request)) {}

  // Make room for `size` bytes in all, and append. Throw HttpError if the request may not hold as much; the text stays as it was then.
  void Reserve(size_t size) {
    if (size > text_.capacity()) Grow(size);
  }
  void Append(std::string_view more) {
    Reserve(text_.size() + more.size());
    text_ += more;
  }
  ChargedText& operator+=(std::string_view more) {
    Append(more);
    return *this;
  }
  ChargedText& operator+=(char c) {
    Reserve(text_.size() + 1);
    text_ += c;
    return *this;
  }

  const std::string& text() const { return text_; }
  size_t size() const { return text_.size(); }
  // Returns a charge of the same request.
  Charge NewCharge() const { return Charge(charge_.request()); }
  // Take the parts out. The charge must live as long as the text.
  std::string TakeText() { return std::move(text_); }
  Charge TakeCharge() { return std::move(charge_); }

 private:
  // The old memory and the new one are there together for a moment.
  void Grow(size_t size) {
    const size_t before = text_.capacity(), after = std::max(size, 2 * before);
    charge_.Add(after + 1);
    text_.reserve(after);
    if (before > kInside) charge_.Remove(before + 1);
  }

  static inline const size_t kInside = std::string().capacity();  // bytes that a string holds without the heap

  std::string text_;
  Charge charge_;
};

}  // namespace thalweg::cli::serve
