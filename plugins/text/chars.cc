#include "chars.h"

namespace thalweg::text {
namespace {

// The continuation bytes after the first byte of a character: how many, and the range of the first
// of them. The range excludes long forms, halves of pairs, and numbers above the last character.
struct Rest {
  int n;
  uint8_t low, high;
};
Rest RestOf(uint8_t first) {
  if (first >= 0xc2 && first <= 0xdf) return {1, 0x80, 0xbf};
  if (first >= 0xe0 && first <= 0xef) return {2, uint8_t(first == 0xe0 ? 0xa0 : 0x80), uint8_t(first == 0xed ? 0x9f : 0xbf)};
  if (first >= 0xf0 && first <= 0xf4) return {3, uint8_t(first == 0xf0 ? 0x90 : 0x80), uint8_t(first == 0xf4 ? 0x8f : 0xbf)};
  return {0, 0, 0};
}

}  // namespace

std::string Quoted(std::string_view s) {
  constexpr size_t kMost = 60;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "'";
  for (const char c : s.substr(0, kMost)) {
    if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      const auto byte = uint8_t(c);
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text + (s.size() > kMost ? "...'" : "'");
}

uint32_t NextChar(std::string_view text, size_t* at, bool* out_valid) {
  if (out_valid) *out_valid = true;
  const auto first = uint8_t(text[(*at)++]);
  if (first < 0x80) return first;
  Rest rest = RestOf(first);
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

void DecodeChars(std::string_view text, Chars* to) {
  if (text.size() > INT32_MAX) Invalid("a text has " + std::to_string(text.size()) + " bytes; it may have at most 2^31 - 1");
  for (size_t at = 0; at < text.size();) {
    const auto begin = uint32_t(at);
    const uint32_t c = NextChar(text, &at);
    to->push_back({c, begin, uint32_t(at)});
  }
}

void CheckSplits(const tw_view* splits, uint64_t values, const char* name) {
  const std::string shown = "'" + std::string(name) + "'";
  if (splits->rank != 1 || splits->count == 0)
    Invalid(shown + " is " + tw::text(splits->dims, splits->rank) + "; it must be a vector with at least one entry");
  for (uint64_t i = 0; i < splits->count; ++i) {
    const int64_t at = SplitAt(splits, i);
    if (i == 0 ? at != 0 : at < SplitAt(splits, i - 1))
      Invalid(shown + "[" + std::to_string(i) + "] is " + std::to_string(at) + "; splits begin with 0 and never fall");
  }
  const int64_t end = SplitAt(splits, splits->count - 1);
  if (end != int64_t(values))
    Invalid(shown + " end with " + std::to_string(end) + ", but they split " + std::to_string(values) + " values");
}

}  // namespace thalweg::text
