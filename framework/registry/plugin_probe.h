// Examines a plugin for the first time in a process of its own: a helper opens it, queries it, runs
// its init with the helper's own host, and reports its registrations. A crash or hang affects only
// the helper. Threads: any.
#pragma once
#include <chrono>
#include <map>
#include <string>

#include "framework/base/status.h"
#include "framework/registry/plugin_manifest.h"
#include "framework/registry/plugin_record.h"

namespace thalweg {

// The file descriptor of the helper's end of the socket. Input: settings, one "key=value" per line,
// until the end of the stream. Output: "stage dlopen", "stage query", "stage init", "stage
// shutdown" as each begins; then the record of a refusal or the manifest; then "over".
constexpr int kProbeDescriptor = 3;

struct PluginProbeRequest {
  std::string helper, path;
  std::chrono::milliseconds patience{5000};     // time limit from the plugin's first stage to the end
  std::map<std::string, std::string> settings;  // "plugin.<id>.<key>"
};

enum class ProbeOutcome {
  kManifest,  // the plugin is good
  kRefused,   // the helper refused it; the record gives the reason
  kBroken,    // it crashed or wrote too much; the record says in which stage
  kLate,      // it exceeded the time limit, because it hangs or the machine is busy; the record as for kBroken
  kNoHelper,  // the helper could not run
};
struct ProbeResult {
  ProbeOutcome outcome = ProbeOutcome::kNoHelper;
  PluginManifest manifest;
  Status why;  // set unless there is a manifest
};
// Blocks. Fills id, version, build, reason and fix of the record as far as they are known.
ProbeResult ProbePlugin(const PluginProbeRequest& request, PluginRecord* record);

// Formats the helper's output for a refused plugin.
std::string RefusalText(const PluginRecord& record, const Status& why);

}  // namespace thalweg
