// The fields of a message in the format of Protocol Buffers. The bytes may be damaged. Threads:
// values, no sharing.
#ifndef THALWEG_PLUGINS_TEXT_WIRE_H_
#define THALWEG_PLUGINS_TEXT_WIRE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "chars.h"

namespace thalweg::text {

class Wire {
 public:
  struct Field {
    uint64_t number = 0;
    uint32_t type = 0;       // 0: integer, 1: 8 bytes, 2: bytes, 5: 4 bytes
    uint64_t value = 0;      // of all types but 2
    std::string_view bytes;  // of type 2
    float real() const {
      const auto bits = uint32_t(value);
      float v;
      std::memcpy(&v, &bits, sizeof v);
      return v;
    }
  };

  // what: the name of the message, for errors.
  Wire(std::string_view message, const char* what) : message_(message), what_(what) {}

  // Reads the next field; returns false at the end. Throws INVALID_ARGUMENT if the bytes are no
  // field.
  bool Next(Field* to) {
    if (at_ == message_.size()) return false;
    const uint64_t key = Varint();
    *to = {key >> 3, uint32_t(key & 7), 0, {}};
    if (to->number == 0) Fail();
    switch (to->type) {
      case 0: to->value = Varint(); break;
      case 1: to->value = Fixed(8); break;
      case 2: to->bytes = Take(Varint()); break;
      case 5: to->value = Fixed(4); break;
      default: Fail();
    }
    return true;
  }

 private:
  [[noreturn]] void Fail() const {
    Invalid("the model is damaged, or no model of SentencePiece: a message '" + std::string(what_) + "' of " +
            std::to_string(message_.size()) + " bytes has no field at its byte " + std::to_string(at_));
  }
  std::string_view Take(uint64_t size) {
    if (size > message_.size() - at_) Fail();
    const std::string_view taken = message_.substr(at_, size_t(size));
    at_ += size_t(size);
    return taken;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      const auto byte = uint8_t(Take(1)[0]);
      value |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Fail();
  }
  uint64_t Fixed(size_t size) {
    const std::string_view bytes = Take(size);
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | uint8_t(bytes[i]);
    return value;
  }

  const std::string_view message_;
  const char* const what_;
  size_t at_ = 0;
};

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_WIRE_H_
