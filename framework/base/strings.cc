#include "framework/base/strings.h"

#include <charconv>

#include "absl/strings/str_cat.h"

namespace thalweg {

void TextPart::AppendTo(std::string* text) const {
  const auto number = [text](auto n) {
    char digits[24];
    text->append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
  };
  switch (size_) {
    case kReal: return absl::StrAppend(text, real_);
    case kUnsigned: return number(unsigned_);
    case kSigned: return number(signed_);
    default: text->append(text_, size_);
  }
}

std::string Joined(std::initializer_list<TextPart> parts) {
  size_t size = 0;
  for (const TextPart& part : parts) size += part.text_size();
  std::string text;
  text.reserve(size);
  for (const TextPart& part : parts) part.AppendTo(&text);
  return text;
}

std::string Hex(uint64_t value, size_t digits) {
  char text[16];
  const size_t n = size_t(std::to_chars(text, text + sizeof text, value, 16).ptr - text);
  return std::string(digits > n ? digits - n : 0, '0').append(text, n);
}

}  // namespace thalweg
