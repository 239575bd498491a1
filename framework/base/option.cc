#include "framework/base/option.h"

#include <algorithm>

namespace thalweg {
namespace {

// Parses a number with an optional suffix K, M, G or T (powers of 1024).
bool ParseBytes(std::string_view text, int64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error != std::errc()) return false;
  const std::string_view unit = text.substr(size_t(end - text.data()));
  if (unit.empty()) return true;
  const size_t power = std::string_view("KMGT").find(unit[0]);
  return unit.size() == 1 && power != std::string_view::npos && !__builtin_mul_overflow(*out, int64_t{1024} << (10 * power), out);
}

bool ParseInt(std::string_view text, int64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// Formats "a, b or c".
std::string OneOf(std::span<const char* const> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += StrCat(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
  return text;
}

}  // namespace

std::string WhatItTakes(const tw_option& o) {
  switch (o.kind) {
    case TW_OPTION_BOOL: return "true or false";
    case TW_OPTION_INT:
      return o.max == INT64_MAX || o.max == UINT32_MAX ? StrCat("a number, ", o.min, " or more")
                                                       : StrCat("a number from ", o.min, " to ", o.max);
    case TW_OPTION_BYTES: return StrCat("a number of bytes", o.min > 0 ? StrCat(" from ", o.min, " on") : "", ", such as 1000000 or 2G");
    case TW_OPTION_CHOICE: return OneOf({o.choices, o.n_choices});
    case TW_OPTION_LIST: return StrCat("texts separated by '", std::string(1, char(o.separator)), "'");
    default: return "a text";
  }
}

bool ParseOption(const tw_option&, std::string_view value, bool* out) {
  if (value != "true" && value != "1" && value != "false" && value != "0") return false;
  *out = value == "true" || value == "1";
  return true;
}

bool ParseOption(const tw_option& about, std::string_view value, int64_t* out) {
  int64_t n = 0;
  if (!(about.kind == TW_OPTION_BYTES ? ParseBytes(value, &n) : ParseInt(value, &n))) return false;
  if (n < about.min || n > about.max) return false;
  *out = n;
  return true;
}

bool ParseOption(const tw_option& about, std::string_view value, std::string* out) {
  const std::span<const char* const> choices(about.choices, about.n_choices);
  if (about.kind == TW_OPTION_CHOICE && std::find(choices.begin(), choices.end(), value) == choices.end()) return false;
  *out = value;
  return true;
}

bool ParseOption(const tw_option& about, std::string_view value, std::vector<std::string>* out) {
  out->clear();
  while (!value.empty()) {
    const size_t end = std::min(value.find(char(about.separator)), value.size());
    if (end) out->emplace_back(value.substr(0, end));
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return true;
}

bool IsNamed(std::string_view name, std::string_view key) {
  const size_t open = name.find('<');
  if (open == name.npos) return name == key;
  if (key.size() <= open || key.substr(0, open) != name.substr(0, open)) return false;
  const std::string_view rest = name.substr(name.find('>') + 1);
  if (rest.empty()) return true;
  const size_t next = key.find(rest.substr(0, rest.find('<')), open + 1);  // the user's part ends where the rest of the name begins
  return next != key.npos && IsNamed(rest, key.substr(next));
}

Status WrongValue(std::string_view whose, const tw_option& about, std::string_view key, std::string_view value) {
  return InvalidArgument(whose, " option '", key, "' cannot be '", value, "'; it takes ", WhatItTakes(about));
}

Status NoSuchOption(std::string_view whose, std::string_view key, const std::vector<const char*>& names) {
  std::string all;
  for (const char* name : names) all += StrCat(all.empty() ? "" : ", ", name);
  return InvalidArgument("there is no ", whose, " option '", key, "'; there are: ", all);
}

}  // namespace thalweg
