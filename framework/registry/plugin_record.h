// PluginRecord: a plugin that was found or named, and its state. Threads: a value.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/base/strings.h"

namespace thalweg {

struct PluginRecord {
  enum State {
    kLoaded,
    kFailed,
    kDisabled,
    kShadowed,     // another plugin provides the same and has precedence
    kKnown,        // good; loaded when something of it is first used
    kQuarantined,  // it crashed or hung when it was examined
    kNotAllowed,   // not on the allow-list
  };
  std::string path, id, version, build;
  State state = kFailed;
  std::string reason;  // why it is not loaded, or where it was found
  std::string fix;     // how to fix that; empty if loaded
  std::string digest;  // SHA-256 of the file in hexadecimal; empty: not computed
  std::vector<std::string> ops, devices;
  std::vector<std::string> roles;     // "file_system mem"
  std::vector<std::string> left_out;  // definitions that this runtime cannot use: which, why, and how to fix that
  uint32_t kernels = 0, epoch = 0, minor = 0;
};

// Returns a reason for a good plugin: the definitions that are left out; "" if there are none.
inline std::string LeftOutText(const PluginRecord& record) {
  std::string text;
  for (const std::string& l : record.left_out) text += StrCat(text.empty() ? "left out: " : "; left out: ", l);
  return text;
}

// Records why a plugin is not loaded and how to fix that. Returns `why`.
inline Status Refuse(PluginRecord* record, Status why, std::string_view fix) {
  record->reason = Message(why);
  record->fix = fix;
  return why;
}
inline Status Refuse(PluginRecord* record, PluginRecord::State state, Status why, std::string_view fix) {
  record->state = state;
  return Refuse(record, std::move(why), fix);
}

}  // namespace thalweg
