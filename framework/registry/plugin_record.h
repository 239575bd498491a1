// A plugin that was found or named, and what became of it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace thalweg {

struct PluginRecord {
  enum State {
    kLoaded,
    kFailed,
    kDisabled,
    kShadowed,     // another brings the same and goes before it
    kKnown,        // fine, and loaded when something of it is first used
    kQuarantined,  // it crashed or hung when it was looked at
    kNotAllowed,   // not on the list of those that are
  };
  std::string path, id, version, build;
  State state = kFailed;
  std::string reason;  // why it is not loaded, or where it was found
  std::string fix;     // what to do about it; empty if loaded
  std::string digest;  // SHA-256 of the file in hexadecimal; empty: nobody asked
  std::vector<std::string> ops, devices;
  std::vector<std::string> roles;  // "file_system mem"
  uint32_t kernels = 0, epoch = 0, minor = 0;
};

// Why a plugin is not loaded, and what to do about it, in one go. Answers `why`.
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
