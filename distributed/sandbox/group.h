// ControlGroup: a control group (version 1 or 2) beneath this process's own, which limits the
// memory and the number of threads of one other process. Threads: one at a time.
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
  // Removes the group. REQUIRES: the process is gone.
  ~ControlGroup();
  // Makes the group and moves the process there, as far as the system allows. A limit of 0 means no
  // limit.
  void Take(pid_t pid, uint64_t memory, uint64_t threads);
  bool memory() const { return memory_; }    // whether memory is limited
  bool threads() const { return threads_; }  // whether threads are limited

 private:
  bool TakeOne(const std::string& parent, pid_t pid, const char* limit, uint64_t most, const char* second_limit, uint64_t second);
  bool memory_ = false, threads_ = false;
  std::vector<std::string> folders_;
};

}  // namespace thalweg::distributed
