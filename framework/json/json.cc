#include "json.h"

#include <charconv>
#include <cmath>

#include "utf8.h"

namespace thalweg {

std::string JsonQuote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const size_t n = Utf8Length(text);
    if (byte == '"' || byte == '\\')
      (out += '\\') += text[0];
    else if (byte == '\n')
      out += "\\n";
    else if (byte < 0x20 || byte == 0x7f)
      ((out += "\\u00") += kHex[byte >> 4]) += kHex[byte & 15];
    else
      out += n > 0 ? text.substr(0, n) : "\uFFFD";
    text.remove_prefix(n > 0 ? n : 1);
  }
  return out + '"';
}

void Json::Separate(std::string_view key) {
  if (!first_) text_ += ", ";
  first_ = false;
  if (!open_.empty() && open_.back() == '{') (text_ += JsonQuote(key)) += ": ";
}

Json& Json::Open(std::string_view key, char bracket) {
  Separate(key);
  text_ += bracket;
  open_.push_back(bracket);
  first_ = true;
  return *this;
}

Json& Json::End() {
  text_ += open_.back() == '{' ? '}' : ']';
  open_.pop_back();
  first_ = false;
  return *this;
}

Json& Json::Raw(std::string_view key, std::string_view json) {
  Separate(key);
  text_ += json;
  return *this;
}

Json& Json::Real(std::string_view key, double value) {
  if (!std::isfinite(value)) return Text(key, std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
  char digits[64];
  return Raw(key, std::string_view(digits, size_t(std::to_chars(digits, digits + sizeof(digits), value).ptr - digits)));
}

}  // namespace thalweg
