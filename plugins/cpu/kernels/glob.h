// File names that match a pattern, as in a shell: * for any characters, ? for one, [a-z] or [^a-z] for one of these or one of the others,
// \ before a character that is meant itself. None of them matches '/', all of them match a dot in front.
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
  std::shared_ptr<void> paid;  // for them, until it goes
};
// The names in a folder; nullopt where there is none. found_out: its own name was found by a pattern.
using ListFolder = std::function<std::optional<Names>(const std::string& folder, bool found_out)>;

// Paths, in no order. A pattern with magic but no folder gives "./name". takes: is told of bytes that paths take, before they do.
std::vector<std::string> Glob(std::string_view pattern, const ListFolder& list, const std::function<void(uint64_t bytes)>& takes);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_GLOB_H_
