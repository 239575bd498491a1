// ControlGroup: a control group (version 1 or 2) beneath this process's own, for one other process: what it may hold of memory, and how
// many threads it may have. Threads: one at a time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace thalweg::distributed {

class ControlGroup {
 public:
  ControlGroup() = default;
  ControlGroup(const ControlGroup&) = delete;
  // Removes it. REQUIRES: the process is gone.
  ~ControlGroup();
  // Makes it and moves the process there, as far as that is allowed here. A limit of 0 is none.
  void Take(pid_t pid, uint64_t memory, uint64_t threads);
  bool memory() const { return memory_; }    // is limited
  bool threads() const { return threads_; }  // likewise

 private:
  bool TakeOne(const std::string& parent, pid_t pid, const char* limit, uint64_t most, const char* second_limit, uint64_t second);
  bool memory_ = false, threads_ = false;
  std::vector<std::string> folders_;
};

}  // namespace thalweg::distributed
