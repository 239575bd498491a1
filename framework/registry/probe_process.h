// The helper process of plugin_probe.h and the conversation with it, which ends by a deadline whatever the plugin closes, writes or starts.
// Threads: any; one conversation by one thread.
#pragma once
#include <chrono>
#include <string>

#include <sys/types.h>

namespace thalweg {

enum class ProbeEnd {
  kOver,     // the helper said that it is done
  kGone,     // the process ended before that
  kLate,     // the deadline passed
  kTooMuch,  // more than kMostProbeText was written
};

constexpr size_t kMostProbeText = 16 << 20;  // of a manifest; the CPU plugin's has 0.2 MB

struct ProbeTalk {
  ProbeEnd end = ProbeEnd::kLate;
  std::string text;    // all that was written
  std::string status;  // how the process ended, in words; empty if that cannot be told: the program reaps its children itself
};

// Starts `helper` `path` on one end of a socket pair at kProbeDescriptor, sends it `settings`, and listens. The helper has `patience` until
// its first word and, once more, `patience` from that to its last; no later word moves that deadline. At the end of the conversation the
// helper and its process group are killed: what a plugin forked ends with it, unless it made a session of its own. Returns errno if the
// helper cannot be started.
int RunProbe(const std::string& helper, const std::string& path, const std::string& settings, std::chrono::milliseconds patience,
             ProbeTalk* talk);

}  // namespace thalweg
