// Shared by the bindings that export the C API of another library (libtensorflow, onnxruntime): failures as exceptions inside the library,
// which carry a code of that API, and owners of Thalweg's handles. Threads: values, no sharing.
#pragma once
#include <memory>
#include <string>

#include "thalweg/thalweg.h"

namespace thalweg::bindings {

template <class... Parts>
std::string Text(const Parts&... parts) {
  std::string out;
  ((out += parts), ...);
  return out;
}

// Code: the type of the API's error codes.
template <class Code>
struct Failure {
  Code code;
  std::string message;
};

// Each binding has a constant `Fail` of this type, so that it cannot throw a code of another API, which its Guard would not catch.
template <class Code>
struct Thrower {
  template <class... Parts>
  [[noreturn]] void operator()(Code code, const Parts&... parts) const {
    throw Failure<Code>{code, Text(parts...)};
  }
};

// Throws a failure of Thalweg under a code of the API, and releases it. status: not NULL.
template <class Code>
[[noreturn]] void Throw(tw_status* status, Code code) {
  Failure<Code> failure{code, tw_status_message(status)};
  tw_status_release(status);
  throw failure;
}

template <class T, void (*Release)(T*)>
struct Releaser {
  void operator()(T* p) const { Release(p); }
};
template <class T, void (*Release)(T*)>
using Owner = std::unique_ptr<T, Releaser<T, Release>>;

using TensorRef = Owner<tw_tensor, tw_tensor_release>;
using BufferRef = Owner<tw_buffer, tw_buffer_release>;
using EagerRef = Owner<tw_eager, tw_eager_destroy>;
using StatsRef = Owner<tw_step_stats, tw_step_stats_destroy>;

}  // namespace thalweg::bindings
