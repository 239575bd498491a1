#include "utf8.h"

#include <algorithm>
#include <cstdint>

namespace thalweg {

size_t Utf8Length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc0 || first > 0xf4 || text.size() < n) return 0;
  uint32_t character = first & (0x7fu >> n);
  for (size_t i = 1; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    character = character << 6 | (byte & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (character < kSmallest[n] || character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) return 0;
  return n;
}

std::string OneLine(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto plain = size_t(std::find_if_not(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto byte = static_cast<unsigned char>(text[0]);
    size_t n = Utf8Length(text);
    // The second row of control characters, which terminals obey too.
    const bool control = byte < 0x20 || byte == 0x7f || (byte == 0xc2 && n == 2 && static_cast<unsigned char>(text[1]) < 0xa0);
    if (n > 0 && !control) {
      out += text.substr(0, n);
    } else if (byte == '\n' || byte == '\t') {
      out += byte == '\n' ? "\\n" : "\\t";
    } else {
      n = 1;
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    text.remove_prefix(n);
  }
  return out;
}

}  // namespace thalweg
