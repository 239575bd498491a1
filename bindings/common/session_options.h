// Options that the user of a client gives to all its sessions. Threads: reads the environment.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::bindings {

// Appends the options in an environment variable, which are separated by ";".
inline void AppendOptionsOf(const char* variable, std::vector<std::string>* options) {
  const char* text = std::getenv(variable);
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(';'), rest.size());
    if (end > 0) options->emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace thalweg::bindings
