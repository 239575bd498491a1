#include "chars.h"

namespace thalweg::text {

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
