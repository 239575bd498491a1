#include "framework/base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

#include <sys/resource.h>

namespace thalweg {
namespace {

// Reads a file that holds one number; any other content, such as "max", means no limit.
uint64_t LimitIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t bytes = 0;
  return file >> bytes ? bytes : UINT64_MAX;
}

std::string TextOf(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool Lists(std::string_view list, std::string_view word) {
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

// A hierarchy of control groups that limits memory.
struct Hierarchy {
  bool second;        // version 2
  std::string place;  // mount point
  std::string top;    // the group that the mount point shows; not "/" if a subtree is mounted
};

// Parses "36 35 0:30 /top /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory". False if the line is
// not a memory hierarchy.
bool ReadMount(const std::string& line, Hierarchy* to) {
  std::istringstream words(line);
  std::string word, type, source, options;
  words >> word >> word >> word >> to->top >> to->place;
  while (words >> word && word != "-") {
  }
  words >> type >> source >> options;
  to->second = type == "cgroup2";
  return to->second || (type == "cgroup" && Lists(options, "memory"));
}

// Returns the process's group in the hierarchy, such as "/a/b".
std::string GroupIn(const Hierarchy& h, const std::string& groups) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,memory:/a/b"; version 2: "0::/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (h.second ? controllers.empty() : Lists(controllers, "memory")) return line.substr(second + 1);
  }
  return "";
}

// Returns the process's own limit on its private writable memory.
uint64_t OwnLimit() {
  rlimit limit;
  return getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? uint64_t{limit.rlim_cur} : UINT64_MAX;
}

}  // namespace

uint64_t ControlGroupMemory(const std::string& groups, const std::string& mounts, const std::string& root) {
  uint64_t bytes = UINT64_MAX;
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    Hierarchy h;
    if (!ReadMount(line, &h)) continue;
    std::string group = GroupIn(h, groups);
    if (h.top != "/" && group.compare(0, h.top.size(), h.top) == 0) group.erase(0, h.top.size());
    const std::string file = h.second ? "/memory.max" : "/memory.limit_in_bytes";
    // A group's limit applies to all groups below it. Groups above the mounted one are not visible.
    for (;; group.resize(group.rfind('/'))) {
      bytes = std::min(bytes, LimitIn(root + h.place + group + file));
      if (group.find('/') == group.npos) break;
    }
  }
  return bytes;
}

uint64_t MachineMemory() {
  const uint64_t bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE));
  return std::min(std::min(bytes, OwnLimit()), ControlGroupMemory(TextOf("/proc/self/cgroup"), TextOf("/proc/self/mountinfo")));
}

}  // namespace thalweg
