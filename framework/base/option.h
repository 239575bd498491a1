// Options: settings given as text "key=value". Each option has one row in a table; setting, listing
// and error messages are all derived from that table. Threads: any.
#pragma once
#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/base/status.h"
#include "framework/base/strings.h"
#include "thalweg/option.h"

namespace thalweg {

// Fields that an option's kind does not use stay 0.
constexpr tw_option MakeOption(uint32_t kind, const char* name, const char* default_value, const char* doc) {
  return {sizeof(tw_option), kind, name, default_value, doc, 0, 0, nullptr, 0, 0, 0, 0};
}
constexpr tw_option TextOption(const char* name, const char* default_value, const char* doc) {
  return MakeOption(TW_OPTION_TEXT, name, default_value, doc);
}
constexpr tw_option BoolOption(const char* name, const char* default_value, const char* doc) {
  return MakeOption(TW_OPTION_BOOL, name, default_value, doc);
}
constexpr tw_option IntOption(const char* name, const char* default_value, int64_t min, int64_t max, const char* doc) {
  tw_option o = MakeOption(TW_OPTION_INT, name, default_value, doc);
  o.min = min;
  o.max = max;
  return o;
}
constexpr tw_option BytesOption(const char* name, const char* default_value, const char* doc) {
  tw_option o = MakeOption(TW_OPTION_BYTES, name, default_value, doc);
  o.max = INT64_MAX;
  return o;
}
// choices: must have static storage.
constexpr tw_option ChoiceOption(const char* name, const char* default_value, std::span<const char* const> choices, const char* doc) {
  tw_option o = MakeOption(TW_OPTION_CHOICE, name, default_value, doc);
  o.choices = choices.data();
  o.n_choices = uint32_t(choices.size());
  return o;
}
constexpr tw_option ListOption(const char* name, char separator, const char* doc) {
  tw_option o = MakeOption(TW_OPTION_LIST, name, "", doc);
  o.separator = uint32_t(separator);
  return o;
}
constexpr tw_option Repeating(tw_option o) {
  o.repeats = 1;
  return o;
}

// Describes the accepted values, for messages: "true or false", "a number from 0 to 4096", ...
std::string WhatItTakes(const tw_option& option);

bool ParseOption(const tw_option& about, std::string_view value, bool* out);
bool ParseOption(const tw_option& about, std::string_view value, int64_t* out);  // INT and BYTES; checks the range
bool ParseOption(const tw_option& about, std::string_view value, std::string* out);
bool ParseOption(const tw_option& about, std::string_view value, std::vector<std::string>* out);

// One row: the description of the option and the function that stores its value in a record of type
// T. `set` returns false if the option does not accept the value. key: as the user wrote it, for
// option names with a part in <>.
template <class T>
struct OptionRow {
  tw_option about;
  bool (*set)(T* options, const tw_option& about, std::string_view key, std::string_view value);
};

// A `set` function for an option that is one member of the record.
template <auto kMember, class T>
bool SetMember(T* options, const tw_option& about, std::string_view, std::string_view value) {
  auto& member = options->*kMember;
  using M = std::remove_reference_t<decltype(member)>;
  if constexpr (std::is_integral_v<M> && !std::is_same_v<M, bool>) {
    int64_t n = 0;
    if (!ParseOption(about, value, &n)) return false;
    member = M(n);
    return true;
  } else {
    return ParseOption(about, value, &member);
  }
}
// A `set` function for a list member: each use of the option appends one text.
template <auto kMember, class T>
bool AddToMember(T* options, const tw_option& about, std::string_view, std::string_view value) {
  std::string text;
  if (!ParseOption(about, value, &text)) return false;
  (options->*kMember).push_back(std::move(text));
  return true;
}

// Returns true if `key` matches `name`, which may have parts in <> as in tw_option.
bool IsNamed(std::string_view name, std::string_view key);
Status WrongValue(std::string_view whose, const tw_option& about, std::string_view key, std::string_view value);
Status NoSuchOption(std::string_view whose, std::string_view key, const std::vector<const char*>& names);

// Sets one option. whose: "runtime", "session". INVALID_ARGUMENT names the option, the value and
// the accepted values, or lists all options if the key is unknown.
template <class T>
Status SetOption(std::string_view whose, std::span<const OptionRow<T>> rows, T* options, std::string_view key, std::string_view value) {
  std::vector<const char*> names;
  for (const OptionRow<T>& row : rows) {
    if (IsNamed(row.about.name, key)) {
      return row.set(options, row.about, key, value) ? Status() : WrongValue(whose, row.about, key, value);
    }
    names.push_back(row.about.name);
  }
  return NoSuchOption(whose, key, names);
}

}  // namespace thalweg
