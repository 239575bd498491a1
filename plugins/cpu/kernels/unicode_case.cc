#include "kernels/unicode_case.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace thalweg::cpu {
namespace {

struct Run {  // every `step`th character from `first` to `last` maps to the character at this distance
  uint32_t first, last, step;
  int32_t difference;
};
struct Several {
  uint32_t from, first, second, third;  // the result ends at the first 0
};
struct Range {
  uint32_t first, last;
};

#include "kernels/unicode_case_data.inc"

constexpr uint32_t kNoCharacter = 0xfffd, kSigma = 0x3a3, kLastSigma = 0x3c2;

// Returns the entry that may contain c, the last whose first character is not above c, or nullptr.
template <class T, size_t N, class First>
const T* Find(const T (&table)[N], uint32_t c, First first) {
  const T* behind = std::upper_bound(table, table + N, c, [&](uint32_t value, const T& entry) { return value < first(entry); });
  return behind == table ? nullptr : behind - 1;
}

template <size_t N>
bool In(const Range (&table)[N], uint32_t c) {
  const Range* r = Find(table, c, [](const Range& e) { return e.first; });
  return r && c <= r->last;
}

// The continuation bytes after the first byte of a character: how many, and the range of the first
// of them.
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

// Returns the character at `at` and moves `at` past it. REQUIRES: *at < text.size().
uint32_t Next(std::string_view text, size_t* at) {
  const auto first = uint8_t(text[(*at)++]);
  if (first < 0x80) return first;
  Rest rest = RestOf(first);
  if (rest.n == 0) return kNoCharacter;
  uint32_t c = first & (0x3fu >> rest.n);
  for (; rest.n > 0; --rest.n, ++*at) {
    const uint8_t byte = *at < text.size() ? uint8_t(text[*at]) : 0;
    if (byte < rest.low || byte > rest.high) return kNoCharacter;
    c = c << 6 | (byte & 0x3f);
    rest.low = 0x80;
    rest.high = 0xbf;
  }
  return c;
}

std::vector<uint32_t> Characters(std::string_view text) {
  std::vector<uint32_t> characters;
  characters.reserve(text.size());
  for (size_t at = 0; at < text.size();) characters.push_back(Next(text, &at));
  return characters;
}

void Append(uint32_t c, std::string* text) {
  if (c < 0x80) {
    *text += char(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  *text += char((0xff80u >> more & 0xff) | c >> (6 * more));
  for (int k = more; k-- > 0;) *text += char(0x80 | (c >> (6 * k) & 0x3f));
}

template <size_t N, size_t M>
void AppendMapped(uint32_t c, const Run (&runs)[N], const Several (&several)[M], std::string* text) {
  if (const Several* s = Find(several, c, [](const Several& e) { return e.from; }); s && s->from == c) {
    for (const uint32_t to : {s->first, s->second, s->third}) {
      if (to) Append(to, text);
    }
    return;
  }
  const Run* r = Find(runs, c, [](const Run& e) { return e.first; });
  const bool in = r && c <= r->last && (c - r->first) % r->step == 0;
  Append(in ? uint32_t(int32_t(c) + r->difference) : c, text);
}

// Returns true if the next character that is not ignorable, from `at` on in steps of `step`, is a
// letter with two cases.
bool MeetsLetter(const std::vector<uint32_t>& text, size_t at, int step) {
  while (at < text.size() && In(kIgnorable, text[at])) at += size_t(step);
  return at < text.size() && In(kCased, text[at]);
}

}  // namespace

std::string UnicodeLower(std::string_view text) {
  const std::vector<uint32_t> characters = Characters(text);
  std::string lower;
  for (size_t i = 0; i < characters.size(); ++i) {
    const bool ends_word = characters[i] == kSigma && MeetsLetter(characters, i - 1, -1) && !MeetsLetter(characters, i + 1, 1);
    if (ends_word)
      Append(kLastSigma, &lower);
    else
      AppendMapped(characters[i], kLowerRuns, kLowerSeveral, &lower);
  }
  return lower;
}

std::string UnicodeUpper(std::string_view text) {
  std::string upper;
  for (size_t at = 0; at < text.size();) AppendMapped(Next(text, &at), kUpperRuns, kUpperSeveral, &upper);
  return upper;
}

}  // namespace thalweg::cpu
