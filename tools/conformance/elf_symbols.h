// ReadElfSymbols reads the dynamic symbols of a shared library from its file, without loading it.
#pragma once
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace thalweg::conformance {

struct ElfSymbols {
  std::vector<std::string> exported, imported, needed;
};
// Errors: INVALID_ARGUMENT if the file is not a 64-bit shared library.
StatusOr<ElfSymbols> ReadElfSymbols(const std::string& path);

}  // namespace thalweg::conformance
