#include "base64.h"

#include <cstdint>

namespace thalweg::cli::serve {
namespace {
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}  // namespace

void AppendBase64(std::string_view bytes, ChargedText* out) {
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (at + i < bytes.size() ? uint8_t(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) *out += at + i > bytes.size() ? '=' : kDigits[group >> (18 - 6 * i) & 63];
  }
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 == 0) {
    for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  }
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  bytes.reserve(FromBase64Bytes(text));
  uint32_t group = 0, bits = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) return std::nullopt;
    group = group << 6 | uint32_t(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += char(group >> bits & 255);
  }
  return bytes;
}

}  // namespace thalweg::cli::serve
