// UTF-8, character by character. Threads: pure functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace thalweg::common {

inline constexpr uint32_t kReplacement = 0xfffd;

// The continuation bytes after the first byte of a character: how many, and the range of the first
// of them. The range excludes long forms, halves of pairs, and numbers above the last character.
struct Continuation {
  int n;
  uint8_t low, high;
};
inline Continuation ContinuationOf(uint8_t first) {
  if (first >= 0xc2 && first <= 0xdf) return {1, 0x80, 0xbf};
  if (first >= 0xe0 && first <= 0xef) return {2, uint8_t(first == 0xe0 ? 0xa0 : 0x80), uint8_t(first == 0xed ? 0x9f : 0xbf)};
  if (first >= 0xf0 && first <= 0xf4) return {3, uint8_t(first == 0xf0 ? 0x90 : 0x80), uint8_t(first == 0xf4 ? 0x8f : 0xbf)};
  return {0, 0, 0};
}

// Returns the character at `at` and moves `at` past it. Returns kReplacement for the longest run of
// bytes that could have begun a character, as the Unicode standard recommends (chapter 3.9, "U+FFFD
// substitution of maximal subparts"); *out_valid is then false. REQUIRES: *at < text.size().
inline uint32_t NextChar(std::string_view text, size_t* at, bool* out_valid = nullptr) {
  if (out_valid) *out_valid = true;
  const auto first = uint8_t(text[(*at)++]);
  if (first < 0x80) return first;
  Continuation rest = ContinuationOf(first);
  bool valid = rest.n > 0;
  uint32_t c = first & (0x3fu >> rest.n);
  for (; rest.n > 0; --rest.n, ++*at) {
    const uint8_t byte = *at < text.size() ? uint8_t(text[*at]) : 0;
    if (byte < rest.low || byte > rest.high) {
      valid = false;
      break;
    }
    c = c << 6 | (byte & 0x3f);
    rest.low = 0x80;
    rest.high = 0xbf;
  }
  if (out_valid) *out_valid = valid;
  return valid ? c : kReplacement;
}

// Appends c as UTF-8.
template <class Text>
void AppendChar(uint32_t c, Text* to) {
  if (c < 0x80) {
    to->push_back(char(c));
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  to->push_back(char((0xff80u >> more & 0xff) | c >> (6 * more)));
  for (int k = more; k-- > 0;) to->push_back(char(0x80 | (c >> (6 * k) & 0x3f)));
}

}  // namespace thalweg::common
