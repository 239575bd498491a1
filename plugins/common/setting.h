// The settings of a plugin: runtime options `plugin.ID.KEY`.
#ifndef THALWEG_PLUGINS_COMMON_SETTING_H_
#define THALWEG_PLUGINS_COMMON_SETTING_H_

#include <string>
#include <string_view>

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

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_SETTING_H_
