// Collects text that the host passes through a sink.
#ifndef THALWEG_PLUGINS_FAKE_TEXT_H_
#define THALWEG_PLUGINS_FAKE_TEXT_H_

#include <string>

#include "thalweg/plugin/plugin.h"

namespace thalweg::fake {

inline tw_sink SinkInto(std::string* text) {
  return {TW_SIZED(tw_sink), text, [](tw_sink* s, const void* bytes, uint64_t len) -> tw_status* {
            static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), len);
            return nullptr;
          }};
}

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_TEXT_H_
