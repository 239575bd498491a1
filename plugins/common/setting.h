// The settings of a plugin: runtime options `plugin.ID.KEY`.
#ifndef THALWEG_PLUGINS_COMMON_SETTING_H_
#define THALWEG_PLUGINS_COMMON_SETTING_H_

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::common {

// Returns the value of a setting; empty if it is not set.
inline std::string Setting(const tw_host* host, std::string_view key) {
  std::string value;
  tw_sink sink{TW_SIZED(tw_sink), &value, [](tw_sink* s, const void* bytes, uint64_t n) -> tw_status* {
                 static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), n);
                 return nullptr;
               }};
  tw_status* s = host->setting(host, key.data(), key.size(), &sink);
  if (s && host->status->code(s) == TW_NOT_FOUND) {
    host->status->release(s);
    return {};
  }
  tw::check(s);
  return value;
}

// Reads a number. Returns false if the text is none, or has more than one.
template <class T>
bool ParseNumber(std::string_view text, T* out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, base);
  return error == std::errc() && end == text.data() + text.size();
}

// Returns the number that a setting says; `standard` if it is not set. Throws tw::Error naming the
// setting and its value.
template <class T>
T NumberSetting(const tw_host* host, const char* key, T standard, T least, T most) {
  const std::string text = Setting(host, key);
  T number = standard;
  if (!text.empty() && (!ParseNumber(text, &number) || number < least || number > most)) {
    throw tw::Error{TW_INVALID_ARGUMENT, std::string("setting '") + key + "' is '" + text + "'; it must be a number from " +
                                             std::to_string(least) + " to " + std::to_string(most)};
  }
  return number;
}

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_SETTING_H_
