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
  bool strict = false;          // refuse where memory and threads cannot be limited
  uint64_t memory = 0;          // bytes; 0: a quarter of what this process may have
  uint64_t threads = 64;        // at most
  int64_t step_ns = 0;          // that a request may take; 0: any
  uint64_t most_processes = 0;  // at once
  std::string allow_files;      // a folder that its graphs may read; empty: none
};

class SandboxProcess {
 public:
  // Blocks until it is ready, ten seconds at most; then it is killed. Errors: NOT_FOUND (no helper beside libthalweg.so),
  // FAILED_PRECONDITION naming what of the confinement this machine does not allow.
  static StatusOr<std::unique_ptr<SandboxProcess>> Start(const SandboxSettings& settings, Runtime* runtime);
  ~SandboxProcess();
  // Of this end of its pipe (pipe_transport.h).
  std::string address() const { return StrCat("fd", socket_, "m", memory_); }
  const std::string& in_force() const { return in_force_; }  // for people
  bool alive();
  void Kill();
  // Kills it. How it ended, in words.
  std::string Reap();

 private:
  SandboxProcess() = default;
  Status Spawn(const std::string& helper, int* conversation);
  Status Listen(int conversation, const SandboxSettings& settings);
  Status Judge(const std::map<std::string, bool>& has, const SandboxSettings& settings);

  std::mutex mu_;
  pid_t pid_ = -1;  // -1: it is reaped
  std::string end_;
  int socket_ = -1, memory_ = -1;
  ControlGroup group_;  // gone after the process
  std::string in_force_;
};

// What a quarter of this process's memory is, and such: the settings with nothing left to default.
SandboxSettings Complete(SandboxSettings settings);

}  // namespace thalweg::distributed
