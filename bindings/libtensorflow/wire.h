// Fields of serialised messages that the library has no classes of, such as ConfigProto, RunOptions and RunMetadata. Threads: values, no
// sharing.
#pragma once
#include <cstdint>
#include <string_view>

#include "core.h"

namespace thalweg::tf {

// Calls varint(number, value) and bytes(number, text) for each field of these kinds; fails if the bytes are no message.
template <class Varint, class Bytes>
void EachField(std::string_view message, std::string_view what, Varint&& varint, Bytes&& bytes) {
  size_t at = 0;
  const auto fail = [&] { Fail(TF_INVALID_ARGUMENT, "Unparseable ", what); };
  const auto read = [&]() -> uint64_t {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at >= message.size()) fail();
      const auto byte = static_cast<unsigned char>(message[at++]);
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    fail();
    return 0;
  };
  const auto take = [&](uint64_t n) {
    if (n > message.size() - at) fail();
    at += n;
    return message.substr(at - n, n);
  };
  while (at < message.size()) {
    const uint64_t tag = read();
    const auto number = static_cast<uint32_t>(tag >> 3);
    if (number == 0) fail();
    switch (tag & 7) {
      case 0: varint(number, read()); break;
      case 1: take(8); break;
      case 2: bytes(number, take(read())); break;
      case 5: take(4); break;
      default: fail();
    }
  }
}

// Appends a field of bytes, or of a number.
inline void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 128; value >>= 7) *out += static_cast<char>((value & 127) | 128);
  *out += static_cast<char>(value);
}
inline void PutField(uint32_t number, std::string_view bytes, std::string* out) {
  PutVarint(number << 3 | 2, out);
  PutVarint(bytes.size(), out);
  *out += bytes;
}
inline void PutField(uint32_t number, uint64_t value, std::string* out) {
  PutVarint(number << 3, out);
  PutVarint(value, out);
}

}  // namespace thalweg::tf
