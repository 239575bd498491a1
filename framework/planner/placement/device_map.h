// DeviceMap: other devices for those that a stored graph names, as the session option `map_device`
// says. Threads: values.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/devices/device.h"

namespace thalweg {

// Rules in order. `first` stands for the names that have all its parts; `second` takes their place.
using DeviceMap = std::vector<std::pair<DeviceSpec, DeviceSpec>>;

// Reads "/job:ps=CPU:0", "/job:ps/task:1=" (then any device will do). INVALID_ARGUMENT quotes the
// text.
StatusOr<std::pair<DeviceSpec, DeviceSpec>> ParseDeviceRule(std::string_view text);

// Parses the name of a device and applies the first rule that fits. Errors: those of
// ParseDeviceSpec.
StatusOr<DeviceSpec> MappedDevice(const DeviceMap& map, std::string_view name);

}  // namespace thalweg
