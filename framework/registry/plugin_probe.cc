#include "framework/registry/plugin_probe.h"

#include <unistd.h>

#include <charconv>
#include <system_error>
#include <utility>

#include "framework/registry/probe_process.h"

namespace thalweg {
namespace {

std::string SettingsText(const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += EscapeLine(StrCat(key, "=", value)) + "\n";
  return text;
}

struct Answer {
  std::string stage;  // the last stage that began
  bool manifest = false, refused = false, over = false;
  PluginManifest m;
  uint32_t code = 0;
};

// Parses up to the first invalid line.
Answer Parse(std::string_view text, PluginRecord* record) {
  Answer a;
  for (std::string_view word, rest; !a.over && TakeLine(&text, &word, &rest);) {
    if (word == "stage") {
      a.stage = rest;
    } else if (word == "manifest") {
      a.manifest = TakeManifest(&text, &a.m);
      if (!a.manifest) break;
    } else if (word == "refused") {
      a.refused = std::from_chars(rest.data(), rest.data() + rest.size(), a.code).ec == std::errc() && a.code > 0;
    } else if (word == "over") {
      a.over = true;
    } else {
      std::string* field = word == "id"        ? &record->id
                           : word == "version" ? &record->version
                           : word == "build"   ? &record->build
                           : word == "reason"  ? &record->reason
                           : word == "fix"     ? &record->fix
                                               : nullptr;
      if (!field || !UnescapeLine(rest, field)) break;
    }
  }
  return a;
}

std::string StageText(const std::string& stage) {
  if (stage == "dlopen") return "while it was opened (dlopen)";
  if (stage == "query") return "in tw_plugin_query_v0";
  return StrCat("in its ", stage);
}

ProbeResult NoHelper(const Status& why) { return {ProbeOutcome::kNoHelper, {}, why}; }

// Describes what the plugin did to the helper.
std::string Harm(const PluginProbeRequest& request, const ProbeTalk& talk) {
  switch (talk.end) {
    case ProbeEnd::kLate: return StrCat("was not done after ", request.patience.count(), " ms");
    case ProbeEnd::kTooMuch: return StrCat("wrote more than ", kMostProbeText, " bytes into the conversation of the helper");
    default: return talk.status.empty() ? "ended the process" : talk.status;
  }
}

ProbeResult Judge(const PluginProbeRequest& request, const ProbeTalk& talk, PluginRecord* record) {
  Answer a = Parse(talk.text, record);
  if (a.stage.empty()) {
    const bool late = talk.end == ProbeEnd::kLate;
    return NoHelper(Internal("the helper '", request.helper, "' ",
                             late                  ? StrCat("said nothing for ", request.patience.count(), " ms")
                             : talk.status.empty() ? "said nothing"
                                                   : talk.status));
  }
  if (a.over && a.manifest) {
    record->reason.clear();
    record->fix.clear();
    return {ProbeOutcome::kManifest, std::move(a.m), Status()};
  }
  if (a.over && a.refused) return {ProbeOutcome::kRefused, {}, Status(absl::StatusCode(a.code), AbslView(record->reason))};
  const bool late = talk.end == ProbeEnd::kLate;
  Status why = Error(late ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kAborted, "it ", Harm(request, talk), " ",
                     StageText(a.stage), ", when it was looked at");
  Refuse(record, PluginRecord::kQuarantined, why, "").IgnoreError();
  return {late ? ProbeOutcome::kLate : ProbeOutcome::kBroken, {}, why};
}

}  // namespace

ProbeResult ProbePlugin(const PluginProbeRequest& request, PluginRecord* record) {
  if (request.helper.empty() || access(request.helper.c_str(), X_OK) != 0) {
    return NoHelper(
        NotFound("the helper '", request.helper.empty() ? std::string_view("thalweg-probe") : request.helper, "' is not there"));
  }
  ProbeTalk talk;
  if (int error = RunProbe(request.helper, request.path, SettingsText(request.settings), request.patience, &talk)) {
    return NoHelper(Internal("the helper '", request.helper, "' cannot be started: ", std::generic_category().message(error)));
  }
  return Judge(request, talk, record);
}

std::string RefusalText(const PluginRecord& record, const Status& why) {
  std::string out;
  const std::pair<const char*, const std::string*> lines[] = {
      {"id", &record.id}, {"version", &record.version}, {"build", &record.build}, {"reason", &record.reason}, {"fix", &record.fix}};
  for (const auto& [word, text] : lines) out += StrCat(word, " ", EscapeLine(*text), "\n");
  return StrCat(out, "refused ", int(why.code()), "\n");
}

}  // namespace thalweg
