// The wire format of Protocol Buffers. Threads: values, no sharing.
#ifndef THALWEG_PLUGINS_DATA_WIRE_H_
#define THALWEG_PLUGINS_DATA_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace thalweg::data {

// Takes a number off the front of `left`. Returns false, and leaves `left`, if no number is there.
inline bool TakeVarint(std::string_view* left, uint64_t* out) {
  uint64_t v = 0;
  for (size_t i = 0; i < 10 && i < left->size(); ++i) {
    const auto b = static_cast<unsigned char>((*left)[i]);
    if (i == 9 && b > 1) return false;
    v |= uint64_t(b & 127) << 7 * i;
    if (b < 128) {
      left->remove_prefix(i + 1);
      *out = v;
      return true;
    }
  }
  return false;
}

// Reads the fields of a message. The bytes may be hostile.
class Fields {
 public:
  enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  explicit Fields(std::string_view message) : left_(message) {}

  // Goes to the next field; false at the end and after damage.
  bool Next() {
    uint64_t tag = 0;
    if (left_.empty() || !Varint(&tag)) return false;
    number = uint32_t(tag >> 3);
    wire = int(tag & 7);
    if (number == 0 || tag >> 32 != 0) return Bad();
    switch (wire) {
      case kVarint: return Varint(&value);
      case kFixed64: return Take(8);
      case kFixed32: return Take(4);
      case kBytes: {
        uint64_t n = 0;
        return Varint(&n) && Take(n);
      }
      default: return Bad();  // groups, which no version of these messages has
    }
  }
  bool good() const { return good_; }

  uint32_t number = 0;
  int wire = 0;
  uint64_t value = 0;      // of a varint
  std::string_view bytes;  // of another field

 private:
  bool Bad() { return good_ = false; }
  bool Take(uint64_t n) {
    if (n > left_.size()) return Bad();
    bytes = left_.substr(0, n);
    left_.remove_prefix(n);
    return true;
  }
  bool Varint(uint64_t* out) { return TakeVarint(&left_, out) || Bad(); }

  std::string_view left_;
  bool good_ = true;
};

// Append to a text of any string class.
template <class Text>
void PutVarint(Text* to, uint64_t v) {
  for (; v > 127; v >>= 7) to->push_back(static_cast<char>((v & 127) | 128));
  to->push_back(static_cast<char>(v));
}
// The tag of a field, after which its contents follow.
template <class Text>
void PutTag(Text* to, uint32_t number, Fields::Wire wire) {
  PutVarint(to, uint64_t(number) << 3 | uint64_t(wire));
}
template <class Text>
void PutNumber(Text* to, uint32_t number, uint64_t v) {
  PutTag(to, number, Fields::kVarint);
  PutVarint(to, v);
}
template <class Text>
void PutBytes(Text* to, uint32_t number, std::string_view bytes) {
  PutTag(to, number, Fields::kBytes);
  PutVarint(to, bytes.size());
  to->append(bytes.data(), bytes.size());
}
// Returns the number of bytes of a number.
constexpr size_t VarintBytes(uint64_t v) {
  size_t n = 1;
  for (; v > 127; v >>= 7) ++n;
  return n;
}

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_WIRE_H_
