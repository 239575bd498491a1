// Names that come out of files, as messages show them: a message is for a person to read, whatever a file holds.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/strings.h"

namespace thalweg {

// The name, or its first bytes (no character cut in two) and how many there are.
inline std::string Shown(std::string_view name, size_t most = 200) {
  if (name.size() <= most) return std::string(name);
  while (most > 0 && (static_cast<unsigned char>(name[most]) & 0xc0) == 0x80) --most;
  return StrCat(name.substr(0, most), "... (", name.size(), " bytes)");
}

}  // namespace thalweg
