// DeviceSpec: a device name such as "/job:ps/task:1" in parts. Threads: any.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg {

struct DeviceSpec {
  std::string job, kind;                        // empty: any
  int32_t replica = -1, task = -1, index = -1;  // -1: any
  bool Admits(const DeviceSpec& full) const;
  std::string text() const;
};
// INVALID_ARGUMENT quotes the wrong part. Kinds are converted to upper case.
StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view text);
// Returns a spec that satisfies both; INVALID_ARGUMENT if they contradict each other.
StatusOr<DeviceSpec> MergeDeviceSpecs(const DeviceSpec& a, const DeviceSpec& b);

}  // namespace thalweg
