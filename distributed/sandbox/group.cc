#include "distributed/sandbox/group.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string_view>

#include <sys/stat.h>

#include "framework/base/strings.h"

namespace thalweg::distributed {
namespace {

bool WriteTo(const std::string& file, const std::string& text) {
  const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  const bool good = fd >= 0 && write(fd, text.data(), text.size()) == ssize_t(text.size());
  if (fd >= 0) close(fd);
  return good;
}

// Returns the path of this process in the tree of a controller, "/a/b". An empty name means version
// 2.
std::string OwnGroup(std::string_view controller) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t name = line.find(':') + 1, path = line.find(':', name) + 1;
    if (path <= name) continue;
    const std::string names = StrCat(",", line.substr(name, path - 1 - name), ",");
    const bool here = controller.empty() ? names == ",," : names.find(StrCat(",", controller, ",")) != names.npos;
    if (here) return line.substr(path) == "/" ? "" : line.substr(path);
  }
  return "";
}

}  // namespace

ControlGroup::~ControlGroup() {
  for (const std::string& folder : folders_) rmdir(folder.c_str());  // one that is not empty stays, and holds nothing
}

bool ControlGroup::TakeOne(const std::string& parent, pid_t pid, const char* limit, uint64_t most, const char* second_limit,
                           uint64_t second) {
  const std::string folder = StrCat(parent, "/thalweg-sandbox-", pid);
  if (mkdir(folder.c_str(), 0755) != 0) return false;
  folders_.push_back(folder);
  const bool limited = most > 0 && WriteTo(StrCat(folder, "/", limit), StrCat(most));
  const bool also = second_limit && second > 0 && WriteTo(StrCat(folder, "/", second_limit), StrCat(second));
  const bool there = (limited || also) && WriteTo(folder + "/cgroup.procs", StrCat(pid));
  if (second_limit) {
    memory_ = there && limited;
    threads_ = there && also;
  }
  return there && limited;
}

void ControlGroup::Take(pid_t pid, uint64_t memory, uint64_t threads) {
  const std::string root = "/sys/fs/cgroup";
  struct stat st;
  if (stat((root + "/cgroup.controllers").c_str(), &st) == 0) {
    TakeOne(root + OwnGroup(""), pid, "memory.max", memory, "pids.max", threads);
    if (memory_) WriteTo(folders_.back() + "/memory.swap.max", "0");  // the file is missing if the kernel does not count swap
    return;
  }
  if (memory > 0) memory_ = TakeOne(StrCat(root, "/memory", OwnGroup("memory")), pid, "memory.limit_in_bytes", memory, nullptr, 0);
  if (threads > 0) threads_ = TakeOne(StrCat(root, "/pids", OwnGroup("pids")), pid, "pids.max", threads, nullptr, 0);
}

}  // namespace thalweg::distributed
