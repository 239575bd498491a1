// File names that match a pattern, as in a shell: * for any characters, ? for one, [a-z] or [^a-z] for one of these or one of the others,
// \ before a character that is meant itself. None of them matches '/', all of them match a dot in front.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_GLOB_H_
#define THALWEG_PLUGINS_CPU_KERNELS_GLOB_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::cpu {

bool Matches(std::string_view pattern, std::string_view name);

// The names in a folder; nullopt where there is none. found_out: its own name was found by a pattern.
using ListFolder = std::function<std::optional<std::vector<std::string>>(const std::string& folder, bool found_out)>;

// Paths, in no order. A pattern with magic but no folder gives "./name".
std::vector<std::string> Glob(std::string_view pattern, const ListFolder& list);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_GLOB_H_
