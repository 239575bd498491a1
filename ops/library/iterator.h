// Helpers that the iterators of thalweg/iterator.h, and the loops that read them, share.
#pragma once
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "thalweg/iterator.h"
#include "thalweg/status.h"

namespace thalweg::library {

// INVALID_ARGUMENT with "<function>: <text>".
inline tw_status* Refusal(const char* function, const std::string& text) {
  return tw_status_create(TW_INVALID_ARGUMENT, (std::string(function) + ": " + text).c_str());
}

// Wraps functions that return a status: no exception passes through C.
template <class F>
tw_status* Guard(const char* function, F&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (...) {
    return tw_status_create(TW_INTERNAL, function);
  }
}

// INVALID_ARGUMENT for a record that is not filled; else NULL.
tw_status* CheckIterator(const char* function, const tw_iterator* iterator);

struct ReleaseBuffer {
  void operator()(tw_buffer* b) const { tw_buffer_release(b); }
};
using OwnedBuffer = std::unique_ptr<tw_buffer, ReleaseBuffer>;

struct DestroyCallable {
  void operator()(tw_callable* c) const { tw_callable_destroy(c); }
};
using OwnedCallable = std::unique_ptr<tw_callable, DestroyCallable>;

}  // namespace thalweg::library
