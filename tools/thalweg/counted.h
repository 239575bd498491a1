// Formats a count with its noun.
#pragma once
#include <cstdint>
#include <string>

namespace thalweg::cli {

// "1 tensor", "26 tensors".
inline std::string Counted(uint64_t n, const std::string& noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

}  // namespace thalweg::cli
