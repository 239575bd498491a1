#include "groups.h"

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace thalweg::cli {

std::set<pid_t> LivingGroups() {
  std::set<pid_t> groups;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    if (!std::isdigit(static_cast<unsigned char>(at->path().filename().native()[0]))) continue;
    std::string line;
    std::getline(std::ifstream(at->path() / "stat"), line);
    const size_t name_ends = line.rfind(')');  // the name may contain any character
    char state;
    int parent, group;
    if (name_ends == std::string::npos || std::sscanf(line.c_str() + name_ends + 1, " %c %d %d", &state, &parent, &group) != 3) continue;
    if (state != 'Z' && state != 'X') groups.insert(group);
  }
  return groups;
}

}  // namespace thalweg::cli
