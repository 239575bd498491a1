// Guarded: memory for the records that a plugin receives during one call. The bytes between and
// behind the records are poison. The hasty host makes the pages inaccessible after the call, so
// that a plugin that reads a record later crashes; other hosts reuse the pages.
// Threads: one at a time.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "thalweg/plugin/abi.h"

namespace thalweg::conformance {

constexpr unsigned char kPoison = 0xDB;
constexpr uint32_t kTail = 64;  // bytes of poison behind each record; also the extra length of a newer host's records

// A record of the host with its poison. size: the size in the record, see RecordSize.
template <class T>
struct Padded {
  explicit Padded(uint32_t size) {
    c.size = size;
    std::memset(tail, kPoison, sizeof tail);
  }
  T c{};
  unsigned char tail[kTail];
};

class Guarded {
 public:
  explicit Guarded(bool hasty) : hasty_(hasty) {}
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  void* Bytes(uint64_t n);
  template <class T>
  T* New(const T& value) {
    return new (Bytes(sizeof(T))) T(value);
  }
  template <class T>
  T* Array(const T* values, uint64_t n) {
    static_assert(std::is_trivially_copyable_v<T>);
    auto* p = static_cast<T*>(Bytes(n * sizeof(T)));
    if (n) std::memcpy(static_cast<void*>(p), values, n * sizeof(T));
    return p;
  }
  template <class T>
  T* Array(const std::vector<T>& values) {
    return Array(values.data(), values.size());
  }
  const char* Text(std::string_view s) { return Array(s.data(), s.size()); }
  // Copies the attributes with all data that they point to, except tensors.
  const tw_attr* Attrs(const tw_attr* attrs, uint32_t n);
  // Copies the shapes with their dims.
  const tw_shape* Shapes(const tw_shape* shapes, uint64_t n);
  // Ends the call.
  void Close();

 private:
  struct Chunk {
    char* at;
    uint64_t bytes;
  };
  bool hasty_, closed_ = false;
  std::vector<Chunk> chunks_;
  uint64_t used_ = 0;  // bytes of the last chunk in use
};

}  // namespace thalweg::conformance
