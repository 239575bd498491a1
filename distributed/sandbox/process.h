// SandboxProcess: a process of the helper thalweg-sandbox (tools/sandbox), which confines itself and then serves one client over a pipe.
// Threads: Kill any; the rest one at a time.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "distributed/sandbox/group.h"
#include "framework/base/status.h"
#include "framework/runtime/runtime.h"

namespace thalweg::distributed {

struct SandboxSettings {
  bool strict = false;          // refuse to start if memory and threads cannot be limited
  uint64_t memory = 0;          // bytes; 0 means a quarter of this process's memory
  uint64_t threads = 64;        // maximum
  int64_t step_ns = 0;          // time limit of a request; 0 means none
  uint64_t most_processes = 0;  // at once
  std::string allow_files;      // a folder that its graphs may read; empty for none
};

class SandboxProcess {
 public:
  // Blocks until the process is ready. A process that is not ready after ten seconds is killed.
  // Errors: NOT_FOUND (no helper beside libthalweg.so), FAILED_PRECONDITION naming the parts of the
  // confinement that this machine does not allow.
  static StatusOr<std::unique_ptr<SandboxProcess>> Start(const SandboxSettings& settings, Runtime* runtime);
  ~SandboxProcess();
  // The address of this end of its pipe (pipe_transport.h).
  std::string address() const { return StrCat("fd", socket_, "m", memory_); }
  const std::string& in_force() const { return in_force_; }  // human-readable
  bool alive();
  void Kill();
  // Kills the process and returns a text on how it ended.
  std::string Reap();

 private:
  SandboxProcess() = default;
  Status Spawn(const std::string& helper, int* conversation);
  Status Listen(int conversation, const SandboxSettings& settings);
  Status Judge(const std::map<std::string, bool>& has, const SandboxSettings& settings);

  std::mutex mu_;
  pid_t pid_ = -1;  // -1 if it is reaped
  std::string end_;
  int socket_ = -1, memory_ = -1;
  ControlGroup group_;  // destroyed after the process has ended
  std::string in_force_;
};

// Returns the settings with all defaults filled in, such as a quarter of this process's memory.
SandboxSettings Complete(SandboxSettings settings);

}  // namespace thalweg::distributed
