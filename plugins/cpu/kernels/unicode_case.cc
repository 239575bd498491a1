#include "kernels/unicode_case.h"

#include <cstdint>
#include <vector>

#include "common/char_table.h"
#include "common/utf8.h"

namespace thalweg::cpu {
namespace {

using common::AppendChar;
using common::InRanges;
using common::NextChar;
using Run = common::CharRun;
using Several = common::CharExpansion;
using Range = common::CharRange;

#include "kernels/unicode_case_data.inc"

constexpr uint32_t kSigma = 0x3a3, kLastSigma = 0x3c2;

std::vector<uint32_t> Characters(std::string_view text) {
  std::vector<uint32_t> characters;
  characters.reserve(text.size());
  for (size_t at = 0; at < text.size();) characters.push_back(NextChar(text, &at));
  return characters;
}

template <size_t N, size_t M>
void AppendMapped(uint32_t c, const Run (&runs)[N], const Several (&several)[M], std::string* text) {
  common::MapChar(c, runs, several, [text](uint32_t mapped) { AppendChar(mapped, text); });
}

// Returns true if the next character that is not ignorable, from `at` on in steps of `step`, is a
// letter with two cases.
bool MeetsLetter(const std::vector<uint32_t>& text, size_t at, int step) {
  while (at < text.size() && InRanges(kIgnorable, text[at])) at += size_t(step);
  return at < text.size() && InRanges(kCased, text[at]);
}

}  // namespace

std::string UnicodeLower(std::string_view text) {
  const std::vector<uint32_t> characters = Characters(text);
  std::string lower;
  for (size_t i = 0; i < characters.size(); ++i) {
    const bool ends_word = characters[i] == kSigma && MeetsLetter(characters, i - 1, -1) && !MeetsLetter(characters, i + 1, 1);
    if (ends_word)
      AppendChar(kLastSigma, &lower);
    else
      AppendMapped(characters[i], kLowerRuns, kLowerSeveral, &lower);
  }
  return lower;
}

std::string UnicodeUpper(std::string_view text) {
  std::string upper;
  for (size_t at = 0; at < text.size();) AppendMapped(NextChar(text, &at), kUpperRuns, kUpperSeveral, &upper);
  return upper;
}

}  // namespace thalweg::cpu
