#include "framework/proto/wire.h"

namespace thalweg {

void PutVarint(uint64_t v, std::string* to) {
  for (; v >= 128; v >>= 7) to->push_back(char(v | 128));
  to->push_back(char(v));
}

bool GetVarint(const char** p, const char* end, uint64_t* out) {
  uint64_t v = 0;
  for (uint32_t shift = 0; shift < 64 && *p < end; shift += 7) {
    const uint64_t byte = static_cast<unsigned char>(*(*p)++);
    if (shift == 63 && byte > 1) return false;
    v |= (byte & 127) << shift;
    if (byte < 128) {
      *out = v;
      return true;
    }
  }
  return false;
}

void PutVarintField(uint32_t number, uint64_t v, std::string* to) {
  PutVarint(number << 3 | WireField::kVarint, to);
  PutVarint(v, to);
}

void PutBytesField(uint32_t number, std::string_view bytes, std::string* to) {
  PutVarint(number << 3 | WireField::kBytes, to);
  PutVarint(bytes.size(), to);
  to->append(bytes);
}

namespace {

// Most varints have one byte.
inline bool Varint(const char** p, const char* end, uint64_t* out) {
  if (*p == end || (**p & 128) != 0) return GetVarint(p, end, out);
  *out = uint64_t(*(*p)++);
  return true;
}

}  // namespace

bool WireReader::Next(WireField* field) {
  if (!ok_ || p_ == end_) return false;
  const char* p = p_;
  uint64_t tag, size = 0;
  ok_ = Varint(&p, end_, &tag) && tag >> 3 > 0 && tag >> 3 < (1u << 29);
  if (!ok_) return false;
  field->number = uint32_t(tag >> 3);
  field->type = WireField::Type(tag & 7);
  switch (field->type) {
    case WireField::kVarint: ok_ = Varint(&p, end_, &field->value); break;
    case WireField::kFixed64: size = 8; break;
    case WireField::kFixed32: size = 4; break;
    case WireField::kBytes: ok_ = Varint(&p, end_, &size); break;
    default: ok_ = false;
  }
  ok_ = ok_ && size <= uint64_t(end_ - p);
  if (!ok_) return false;
  field->bytes = {p, size_t(size)};
  field->raw = {p_, size_t(p - p_) + size_t(size)};
  p_ = p + size;
  return true;
}

}  // namespace thalweg
