#include "example.h"

#include <cstring>

namespace thalweg::data {
namespace {

// Reads the fields of a message in wire format.
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
  bool Varint(uint64_t* out) {
    uint64_t v = 0;
    for (size_t i = 0; i < 10 && i < left_.size(); ++i) {
      const auto b = static_cast<unsigned char>(left_[i]);
      if (i == 9 && b > 1) return Bad();
      v |= uint64_t(b & 127) << 7 * i;
      if (b < 128) {
        left_.remove_prefix(i + 1);
        *out = v;
        return true;
      }
    }
    return Bad();
  }

  std::string_view left_;
  bool good_ = true;
};

bool ReadFeature(std::string_view bytes, Feature* out) {
  Fields f(bytes);
  while (f.Next()) {
    if (f.wire != Fields::kBytes || f.number > Feature::kInt64) continue;
    *out = {Feature::Kind(f.number), f.bytes};
  }
  return f.good();
}

bool ReadEntry(std::string_view bytes, const Keys& keys, Feature* out) {
  Fields f(bytes);
  std::string_view key, value;
  while (f.Next()) {
    if (f.wire != Fields::kBytes) continue;
    if (f.number == 1) key = f.bytes;
    if (f.number == 2) value = f.bytes;
  }
  if (!f.good()) return false;
  const auto wanted = keys.find(key);
  if (wanted == keys.end()) return true;
  Feature feature;
  if (!ReadFeature(value, &feature)) return false;
  for (const uint32_t k : wanted->second) out[k] = feature;
  return true;
}

template <class T>
void Append(std::string_view bytes, std::vector<T>* out) {
  const size_t n = bytes.size() / sizeof(T), before = out->size();
  out->resize(before + n);
  std::memcpy(out->data() + before, bytes.data(), n * sizeof(T));
}

}  // namespace

bool ReadExample(std::string_view bytes, const Keys& keys, Feature* out) {
  Fields example(bytes);
  while (example.Next()) {
    if (example.number != 1 || example.wire != Fields::kBytes) continue;
    Fields features(example.bytes);
    while (features.Next()) {
      if (features.number == 1 && features.wire == Fields::kBytes && !ReadEntry(features.bytes, keys, out)) return false;
    }
    if (!features.good()) return false;
  }
  return example.good();
}

bool ReadBytes(std::string_view list, std::vector<std::string_view>* out) {
  Fields f(list);
  while (f.Next())
    if (f.number == 1 && f.wire == Fields::kBytes) out->push_back(f.bytes);
  return f.good();
}

bool ReadFloats(std::string_view list, std::vector<float>* out) {
  Fields f(list);
  while (f.Next()) {
    if (f.number != 1) continue;
    if (f.wire == Fields::kBytes ? f.bytes.size() % 4 != 0 : f.wire != Fields::kFixed32) return false;
    Append(f.bytes, out);
  }
  return f.good();
}

bool ReadInt64s(std::string_view list, std::vector<int64_t>* out) {
  Fields f(list);
  while (f.Next()) {
    if (f.number != 1) continue;
    if (f.wire == Fields::kVarint) {
      out->push_back(int64_t(f.value));
      continue;
    }
    if (f.wire != Fields::kBytes) return false;
    const char* p = f.bytes.data();
    const char* end = p + f.bytes.size();
    while (p < end) {
      uint64_t v = 0;
      int shift = 0;
      for (;; shift += 7) {
        if (p == end || shift > 63) return false;
        const auto b = static_cast<unsigned char>(*p++);
        if (shift == 63 && b > 1) return false;
        v |= uint64_t(b & 127) << shift;
        if (b < 128) break;
      }
      out->push_back(int64_t(v));
    }
  }
  return f.good();
}

}  // namespace thalweg::data
