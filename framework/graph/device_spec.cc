#include "framework/graph/device_spec.h"

#include <charconv>

#include "framework/base/shown.h"

namespace thalweg {
namespace {

bool IsWord(std::string_view s, bool dashes) {
  for (char c : s) {
    bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (dashes && c == '-');
    if (!ok) return false;
  }
  return !s.empty();
}

// Parses "*" (any) or a number.
bool ParseIndex(std::string_view s, int32_t* out) {
  if (s == "*") return true;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), *out);
  return error == std::errc() && end == s.data() + s.size() && *out >= 0;
}

// Parses KIND, KIND:3 or *:3.
bool ParseKind(std::string_view s, DeviceSpec* spec) {
  size_t colon = s.find(':');
  std::string_view kind = s.substr(0, colon);
  if (kind != "*") {
    if (!IsWord(kind, false)) return false;
    spec->kind = kind;
    for (char& c : spec->kind) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  }
  return colon == s.npos || ParseIndex(s.substr(colon + 1), &spec->index);
}

// Parses one part between slashes. *seen has a bit per key, so that no key is given twice.
bool ParsePart(std::string_view part, DeviceSpec* spec, uint32_t* seen) {
  size_t colon = part.find(':');
  std::string_view key = part.substr(0, colon), value = colon == part.npos ? std::string_view() : part.substr(colon + 1);
  uint32_t bit = key == "job" ? 1u : key == "replica" ? 2u : key == "task" ? 4u : 8u;
  if (*seen & bit) return false;
  *seen |= bit;
  if (bit == 8u) return ParseKind(key == "device" ? value : part, spec);
  if (bit == 2u) return ParseIndex(value, &spec->replica);
  if (bit == 4u) return ParseIndex(value, &spec->task);
  if (value == "*") return true;
  spec->job = value;
  return IsWord(value, true);
}

Status MergeName(const std::string& a, const std::string& b, std::string* out) {
  if (!a.empty() && !b.empty() && a != b) return InvalidArgument("'", Shown(a), "' and '", Shown(b), "'");
  *out = a.empty() ? b : a;
  return Status();
}
Status MergeIndex(int32_t a, int32_t b, int32_t* out) {
  if (a >= 0 && b >= 0 && a != b) return InvalidArgument(a, " and ", b);
  *out = a < 0 ? b : a;
  return Status();
}

}  // namespace

bool DeviceSpec::Admits(const DeviceSpec& full) const {
  return (job.empty() || job == full.job) && (kind.empty() || kind == full.kind) && (replica < 0 || replica == full.replica) &&
         (task < 0 || task == full.task) && (index < 0 || index == full.index);
}

std::string DeviceSpec::text() const {
  std::string s;
  if (!job.empty()) s += StrCat("/job:", job);
  if (replica >= 0) s += StrCat("/replica:", replica);
  if (task >= 0) s += StrCat("/task:", task);
  if (!kind.empty() || index >= 0) s += StrCat("/device:", kind.empty() ? "*" : kind);
  if (index >= 0) s += StrCat(":", index);
  return s;
}

StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view text) {
  DeviceSpec spec;
  std::string_view rest = text;
  if (!rest.empty() && rest[0] == '/') rest.remove_prefix(1);
  if (rest.empty() && text.empty()) return spec;
  uint32_t seen = 0;
  for (bool more = true; more;) {
    size_t slash = rest.find('/');
    std::string_view part = rest.substr(0, slash);
    if (!ParsePart(part, &spec, &seen)) {
      return InvalidArgument("device '", Shown(text), "': '", Shown(part),
                             "' is wrong; write a name such as 'CPU:0' or '/job:worker/task:1/device:CPU:0'");
    }
    more = slash != rest.npos;
    if (more) rest.remove_prefix(slash + 1);
  }
  return spec;
}

StatusOr<DeviceSpec> MergeDeviceSpecs(const DeviceSpec& a, const DeviceSpec& b) {
  DeviceSpec out;
  Status s = MergeName(a.job, b.job, &out.job);
  if (s.ok()) s = MergeName(a.kind, b.kind, &out.kind);
  if (s.ok()) s = MergeIndex(a.replica, b.replica, &out.replica);
  if (s.ok()) s = MergeIndex(a.task, b.task, &out.task);
  if (s.ok()) s = MergeIndex(a.index, b.index, &out.index);
  if (!s.ok()) return InvalidArgument("devices '", Shown(a.text()), "' and '", Shown(b.text()), "' contradict each other: ", Message(s));
  return out;
}

}  // namespace thalweg
