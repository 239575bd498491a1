#include "framework/io/checkpoint_strings.h"

#include <cstring>

#include "framework/base/crc32c.h"
#include "framework/proto/wire.h"

namespace thalweg {
namespace {

constexpr uint64_t kCrcBytes = 4;

uint32_t ExtendByLength(uint32_t crc, uint64_t length) { return ExtendCrc32c(crc, &length, length <= UINT32_MAX ? 4 : 8); }

}  // namespace

std::string EncodeStringLengths(const tw_string* strings, uint64_t n, uint32_t* out_crc) {
  std::string head;
  head.reserve(n + kCrcBytes);
  uint32_t crc = 0;
  for (uint64_t i = 0; i < n; ++i) {
    PutVarint(strings[i].size, &head);
    crc = ExtendByLength(crc, strings[i].size);
  }
  const uint32_t masked = MaskCrc(crc);
  head.append(reinterpret_cast<const char*>(&masked), kCrcBytes);
  *out_crc = ExtendCrc32c(crc, &masked, kCrcBytes);
  return head;
}

Status DecodeStrings(const void* bytes, uint64_t size, Tensor* out, uint32_t* out_crc) {
  const char* const begin = static_cast<const char*>(bytes);
  const char* const end = begin + size;
  const uint64_t n = out->count();
  const char* p = begin;
  uint32_t crc = 0;
  uint64_t sum = 0, length;
  for (uint64_t i = 0; i < n; ++i) {
    if (!GetVarint(&p, end, &length) || __builtin_add_overflow(sum, length, &sum))
      return DataLoss("the length of string ", i, " is damaged");
    crc = ExtendByLength(crc, length);
  }
  if (uint64_t(end - p) < kCrcBytes || uint64_t(end - p) - kCrcBytes != sum) {
    return DataLoss("the lengths of its ", n, " strings add up to ", sum, " bytes, but ", end - p, " bytes follow");
  }
  uint32_t stored;
  std::memcpy(&stored, p, kCrcBytes);
  if (stored != MaskCrc(crc)) return DataLoss("the checksum of its string lengths does not match");
  *out_crc = ExtendCrc32c(crc, p, uint64_t(end - p));
  const char* text = p + kCrcBytes;
  // The lengths are known to be valid; they are decoded again rather than stored.
  p = begin;
  for (uint64_t i = 0; i < n; ++i) {
    GetVarint(&p, end, &length);
    RETURN_IF_ERROR(out->SetString(i, {text, length}));
    text += length;
  }
  return Status();
}

}  // namespace thalweg
