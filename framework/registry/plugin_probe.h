// A first look at a plugin in a process of its own: a helper opens it, asks who it is, runs its init against a host of its own, and says
// what it registers. What crashes or hangs there does so alone.
// Threads: any.
#pragma once
#include <chrono>
#include <map>
#include <string>

#include "framework/base/status.h"
#include "framework/registry/plugin_manifest.h"
#include "framework/registry/plugin_record.h"

namespace thalweg {

// The file descriptor at which the helper finds its end of the conversation: settings in, one "key=value" a line, until the end; then out:
// "stage dlopen", "stage query", "stage init", "stage shutdown" as each begins; for a refusal its record; else the manifest; and "over".
constexpr int kProbeDescriptor = 3;

struct PluginProbeRequest {
  std::string helper, path;
  std::chrono::milliseconds patience{5000};     // from the plugin's first stage to the end
  std::map<std::string, std::string> settings;  // "plugin.<id>.<key>"
};

enum class ProbeOutcome {
  kManifest,  // the plugin is fine
  kRefused,   // by the helper, in good order: the record says why
  kBroken,    // it crashed, or was not done in time: the record says where
  kNoHelper,  // nobody could look
};
struct ProbeResult {
  ProbeOutcome outcome = ProbeOutcome::kNoHelper;
  PluginManifest manifest;
  Status why;  // unless there is a manifest
};
// Blocks. Fills id, version, build, reason and fix of the record as far as they are known.
ProbeResult ProbePlugin(const PluginProbeRequest& request, PluginRecord* record);

// What a helper writes of a plugin that was refused.
std::string RefusalText(const PluginRecord& record, const Status& why);

}  // namespace thalweg
