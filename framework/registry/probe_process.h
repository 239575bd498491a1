// The helper process of plugin_probe.h and the conversation with it, which ends at a deadline
// whatever the plugin closes, writes or starts. Threads: any; one thread per conversation.
#pragma once
#include <chrono>
#include <string>

#include <sys/types.h>

namespace thalweg {

enum class ProbeEnd {
  kOver,     // the helper reported its end
  kGone,     // the process ended before that
  kLate,     // the deadline passed
  kTooMuch,  // more than kMostProbeText was written
};

constexpr size_t kMostProbeText = 16 << 20;  // limit for a manifest in bytes; the CPU plugin's has 0.2 MB

struct ProbeTalk {
  ProbeEnd end = ProbeEnd::kLate;
  std::string text;    // the whole output
  std::string status;  // how the process ended, in words; empty if unknown because the program reaps its children itself
};

// Starts `helper` with the argument `path` on one end of a socket pair at kProbeDescriptor, sends
// it `settings`, and reads its output. The helper has `patience` until its first output, and
// `patience` again from then to its last; output in between does not extend the deadline. At the
// end the helper and its process group are killed, with everything that a plugin forked unless it
// made a session of its own. Returns errno if the helper cannot be started.
int RunProbe(const std::string& helper, const std::string& path, const std::string& settings, std::chrono::milliseconds patience,
             ProbeTalk* talk);

}  // namespace thalweg
