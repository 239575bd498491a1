#include "framework/planner/placement/device_map.h"

#include <algorithm>

#include "framework/base/shown.h"

namespace thalweg {

StatusOr<std::pair<DeviceSpec, DeviceSpec>> ParseDeviceRule(std::string_view text) {
  const size_t at = text.find('=');
  if (at == text.npos || at == 0) {
    return InvalidArgument("'", Shown(text),
                           "' is no rule for devices; write FROM=TO, such as '/job:ps=CPU:0', or '/job:ps=' for any device");
  }
  ASSIGN_OR_RETURN(DeviceSpec from, ParseDeviceSpec(text.substr(0, at)));
  ASSIGN_OR_RETURN(DeviceSpec to, ParseDeviceSpec(text.substr(at + 1)));
  return std::make_pair(std::move(from), std::move(to));
}

StatusOr<DeviceSpec> MappedDevice(const DeviceMap& map, std::string_view name) {
  ASSIGN_OR_RETURN(DeviceSpec spec, ParseDeviceSpec(name));
  const auto rule = std::find_if(map.begin(), map.end(), [&](const auto& r) { return r.first.Admits(spec); });
  return rule == map.end() ? std::move(spec) : rule->second;
}

}  // namespace thalweg
