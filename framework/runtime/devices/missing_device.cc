#include "framework/runtime/devices/missing_device.h"

#include <algorithm>

#include "framework/base/shown.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

// Returns the reasons of the plugins that provide the kind; "" if there is none, or it has such
// devices.
std::string Provider(const Runtime& runtime, std::string_view kind) {
  std::string text;
  for (const PluginRecord& r : runtime.plugins()) {
    if (kind.empty() || r.reason.empty() || std::find(r.devices.begin(), r.devices.end(), kind) == r.devices.end()) continue;
    text += StrCat("; plugin '", Shown(r.id), "' provides ", kind,
                   r.state == PluginRecord::kLoaded ? ": " : " and is not loaded: ", r.reason, r.fix.empty() ? "" : "; ", r.fix);
  }
  return text;
}

}  // namespace

Status MissingDevice(const Runtime& runtime, std::string_view asked, std::string_view kind) {
  std::string all, provider;
  bool has_kind = false;
  for (const Device* d : runtime.devices()) {
    all += StrCat(all.empty() ? "" : ", ", d->kind(), ":", d->index());
    has_kind = has_kind || d->kind() == kind;
  }
  if (!has_kind) provider = Provider(runtime, kind);
  return NotFound("device '", Shown(asked), "' not found; registered: ", all.empty() ? "none" : all,
                  has_kind           ? "; name one of them"
                  : provider.empty() ? "; load the plugin that provides it"
                                     : provider);
}

}  // namespace thalweg
