// Shortens names from files for error messages, so that a message stays readable whatever the file
// holds. Threads: any.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/strings.h"

namespace thalweg {

// Returns the name, or its first bytes (whole UTF-8 characters only) and its length if it is longer
// than `most`.
inline std::string Shown(std::string_view name, size_t most = 200) {
  if (name.size() <= most) return std::string(name);
  while (most > 0 && (static_cast<unsigned char>(name[most]) & 0xc0) == 0x80) --most;
  return StrCat(name.substr(0, most), "... (", name.size(), " bytes)");
}

}  // namespace thalweg
