#include "charsmap.h"

#include <algorithm>

#include "chars.h"

namespace thalweg::text {
namespace {

// Rules are much shorter. A damaged trie may lead in circles, so there has to be a limit.
constexpr size_t kLongestRule = 256;

uint32_t NumberAt(std::string_view bytes, size_t at) {
  uint32_t n = 0;
  for (size_t i = 4; i-- > 0;) n = n << 8 | uint8_t(bytes[at + i]);
  return n;
}

// The fields of a unit: the byte that leads to it (with the highest bit for values, which no byte
// has), the distance to its children, and whether a value is among these.
uint32_t LabelOf(uint32_t unit) { return unit & 0x800000ff; }
uint32_t OffsetOf(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }
bool HasLeaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t ValueOf(uint32_t unit) { return unit & 0x7fffffff; }

}  // namespace

Charsmap::Charsmap(std::string_view blob) {
  const uint64_t size = blob.size() < 4 ? UINT64_MAX : NumberAt(blob, 0);
  if (size == 0 || size % 4 != 0 || size > blob.size() - 4) {
    Invalid("the rules of normalization have " + std::to_string(blob.size()) + " bytes" +
            (blob.size() < 4 ? "" : ", and claim a trie of " + std::to_string(size)) + "; the model is damaged");
  }
  units_.reserve(size / 4);
  for (size_t at = 4; at < 4 + size; at += 4) units_.push_back(NumberAt(blob, at));
  texts_ = std::string(blob.substr(4 + size));
}

size_t Charsmap::Longest(std::string_view text, std::string_view* out_text) const {
  if (units_.empty()) return 0;
  size_t longest = 0;
  uint64_t at = OffsetOf(units_[0]);
  for (size_t i = 0; i < std::min(text.size(), kLongestRule); ++i) {
    at ^= uint8_t(text[i]);
    if (at >= units_.size() || LabelOf(units_[at]) != uint8_t(text[i])) break;
    const uint32_t unit = units_[at];
    at ^= OffsetOf(unit);
    if (!HasLeaf(unit) || at >= units_.size()) continue;
    const uint32_t value = ValueOf(units_[at]);
    if (value >= texts_.size()) continue;  // a damaged rule
    longest = i + 1;
    *out_text = std::string_view(texts_).substr(value, texts_.find('\0', value) - value);
  }
  return longest;
}

}  // namespace thalweg::text
