// Choices and `set` functions of the options that sessions and eager contexts both have: see
// base/option.h. Threads: values, not shared.
#pragma once
#include <string_view>

#include "framework/base/option.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/state/container.h"

namespace thalweg {

inline constexpr const char* kFallbackChoices[] = {"fail", "warn", "allow"};
inline constexpr const char* kValueCheckChoices[] = {"off", "nan", "finite"};

// A `set` function for a member that names a device.
template <auto kMember, class T>
bool SetDeviceMember(T* options, const tw_option&, std::string_view, std::string_view value) {
  if (!ParseDeviceSpec(value).ok()) return false;
  options->*kMember = value;
  return true;
}

// A `set` function for a member that names a container.
template <auto kMember, class T>
bool SetContainerMember(T* options, const tw_option&, std::string_view, std::string_view value) {
  if (!CheckContainerName(value).ok()) return false;
  options->*kMember = value;
  return true;
}

}  // namespace thalweg
