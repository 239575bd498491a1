// Finds file names that match a shell pattern: * matches any characters, ? matches one, [a-z] one
// of the set, [^a-z] one outside it, and \ takes the next character literally. No wildcard matches
// '/'; all of them match a leading dot.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_GLOB_H_
#define THALWEG_PLUGINS_CPU_KERNELS_GLOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::cpu {

bool Matches(std::string_view pattern, std::string_view name);

struct Names {
  std::vector<std::string> names;
  std::shared_ptr<void> paid;  // the payment for the names, held until it is destroyed
};
// Returns the names in a folder, or nullopt if the folder does not exist. found_out: a pattern
// found the folder's own name.
using ListFolder = std::function<std::optional<Names>(const std::string& folder, bool found_out)>;

// Returns the paths, in no order. A pattern with wildcards but no folder gives "./name". takes:
// called with the bytes of new paths before they are allocated.
std::vector<std::string> Glob(std::string_view pattern, const ListFolder& list, const std::function<void(uint64_t bytes)>& takes);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_GLOB_H_
