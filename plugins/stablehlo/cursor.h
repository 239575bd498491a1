// Reads the primitives of MLIR's bytecode with every size checked. A failure names the byte. Threads: values.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "module.h"

namespace thalweg::stablehlo {

class Cursor {
 public:
  Cursor() = default;
  // base: the offset of `bytes` in the module, for messages and alignments.
  Cursor(std::string_view bytes, uint64_t base) : rest_(bytes), offset_(base) {}

  bool empty() const { return rest_.empty(); }
  uint64_t left() const { return rest_.size(); }
  uint64_t offset() const { return offset_; }

  std::string_view take(uint64_t n) {
    if (n > rest_.size()) fail("needs " + std::to_string(n) + " bytes, but only " + std::to_string(rest_.size()) + " are left");
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    offset_ += n;
    return taken;
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }

  // The zeros below the lowest set bit of the first byte count the bytes that follow.
  uint64_t varint() {
    const uint8_t first = byte();
    if (first & 1) return first >> 1;
    int more = 8;
    if (first) {
      more = 0;
      while (!((first >> more) & 1)) ++more;
    }
    const std::string_view rest = take(static_cast<uint64_t>(more));
    uint64_t value = 0;
    for (size_t i = rest.size(); i-- > 0;) value = (value << 8) | static_cast<uint8_t>(rest[i]);
    return first == 0 ? value : ((value << 8) | first) >> (more + 1);
  }
  int64_t svarint() {
    const uint64_t v = varint();
    return static_cast<int64_t>((v >> 1) ^ (~(v & 1) + 1));
  }
  uint64_t flagged(bool* flag) {
    const uint64_t v = varint();
    *flag = (v & 1) != 0;
    return v >> 1;
  }
  // A number of things that take at least a byte each.
  uint64_t count(const char* what) {
    const uint64_t n = varint();
    if (n > rest_.size()) fail("has " + std::to_string(n) + " " + what + ", but only " + std::to_string(rest_.size()) + " bytes are left");
    return n;
  }
  std::string_view text() {  // up to a zero byte
    const size_t end = rest_.find('\0');
    if (end == std::string_view::npos) fail("a text does not end");
    const std::string_view taken = take(end);
    take(1);
    return taken;
  }
  void align(uint64_t alignment) {
    if (alignment == 0 || (alignment & (alignment - 1)) || alignment > (1u << 20)) {
      fail("an alignment of " + std::to_string(alignment) + " is no power of two up to 2^20");
    }
    while (offset_ & (alignment - 1)) {
      if (byte() != 0xcb) fail("a byte of padding is not 0xcb");
    }
  }

  [[noreturn]] void fail(const std::string& text) const {
    throw Error{TW_INVALID_ARGUMENT, "the StableHLO module is damaged at byte " + std::to_string(offset_) + ": " + text};
  }

 private:
  std::string_view rest_;
  uint64_t offset_ = 0;
};

}  // namespace thalweg::stablehlo
