#include "framework/base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace thalweg {
namespace {

// A file that holds a number; anything else, such as "max", is no limit.
uint64_t LimitIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t bytes = 0;
  return file >> bytes && bytes > 0 ? bytes : UINT64_MAX;
}

// Where this process stands in the tree of control groups, version 2: "/a/b".
std::string ControlGroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 3, "0::") == 0) return line.substr(3);
  }
  return "";
}

}  // namespace

uint64_t MachineMemory() {
  uint64_t bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE));
  bytes = std::min(bytes, LimitIn("/sys/fs/cgroup/memory/memory.limit_in_bytes"));  // version 1
  // A group's limit holds for all below it.
  for (std::string group = ControlGroup();; group.resize(group.rfind('/'))) {
    bytes = std::min(bytes, LimitIn("/sys/fs/cgroup" + group + "/memory.max"));
    if (group.find('/') == group.npos) return bytes;
  }
}

}  // namespace thalweg
