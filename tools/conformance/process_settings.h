// ProcessSettings: process-wide settings that a library must not change: the working folder, signal
// handlers, locale, umask, and the calling thread's floating-point state. Overheard captures the
// standard files, which belong to the program.
// Threads: one at a time.
#pragma once
#include <signal.h>

#include <array>
#include <string>

#include "framework/base/float_state.h"

namespace thalweg::conformance {

class ProcessSettings {
 public:
  // Reads the current settings of the process and of the calling thread.
  ProcessSettings();
  // Returns a text such as "the working folder is '/tmp' instead of '/'"; empty if nothing changed.
  std::string ChangedSince() const;
  // Restores these settings.
  void Restore() const;

 private:
  std::string folder_, locale_;
  FloatState floats_ = FloatState::Now();
  mode_t mask_;
  std::array<struct sigaction, 65> actions_{};  // by signal
};

// Redirects standard output and standard error into a file of its own while it lives.
class Overheard {
 public:
  Overheard();
  ~Overheard() { (void)Stop(); }
  Overheard(const Overheard&) = delete;
  // Restores both. Returns the first line that was written, at most 120 bytes of it; empty if nothing
  // was written.
  std::string Stop();

 private:
  int file_ = -1, out_ = -1, error_ = -1;
};

}  // namespace thalweg::conformance
