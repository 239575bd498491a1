// DeviceKind: a kind of device as its plugin registered it. Threads: any, once it is registered.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "thalweg/plugin/device.h"

namespace thalweg {

struct DeviceKind {
  std::string kind, plugin;
  tw_device_def def{};
  tw_stream_set streams{};  // valid if has_streams; `wait` may be NULL
  bool has_streams = false;
  // The optional sets that the device provides.
  std::optional<tw_pinned_set> pinned;
  std::optional<tw_peer_set> peer;
  std::optional<tw_event_set> events;
  std::optional<tw_statistics_set> statistics;
  std::optional<tw_capture_set> capture;
  std::optional<tw_profile_set> profile;
  std::optional<tw_dlpack_set> dlpack;
  const tw_host* host = nullptr;
  // Keeps the plugin mapped and running while memory of its devices is in use; set by the loader.
  std::shared_ptr<const void> pin;
  // Held by plans for its devices, which keeps the plugin loaded; see KernelDef.
  std::weak_ptr<const void> in_plans;
};

}  // namespace thalweg
