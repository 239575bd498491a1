// What a process has once, and a library that lives in it must leave as it is: its working folder, what it does on signals, how its threads
// compute, its language; and the standard files, which belong to the program.
// Threads: one at a time.
#pragma once
#include <signal.h>

#include <array>
#include <string>

#include "framework/base/float_state.h"

namespace thalweg::conformance {

class ProcessSettings {
 public:
  // Those of now; of what a thread has, the calling one's.
  ProcessSettings();
  // "the working folder is '/tmp' instead of '/'"; empty where now is as then.
  std::string ChangedSince() const;
  // As then again.
  void Restore() const;

 private:
  std::string folder_, locale_;
  FloatState floats_ = FloatState::Now();
  mode_t mask_;
  std::array<struct sigaction, 65> actions_{};  // by signal
};

// Whatever is written to standard output and standard error as long as it lives goes into a file of its own.
class Overheard {
 public:
  Overheard();
  ~Overheard() { (void)Stop(); }
  Overheard(const Overheard&) = delete;
  // Both as before. What was written: at most a line of it; empty: nothing.
  std::string Stop();

 private:
  int file_ = -1, out_ = -1, error_ = -1;
};

}  // namespace thalweg::conformance
