// The error for a device that does not exist. Threads: any.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg {

class Runtime;

// Returns NOT_FOUND: "device 'asked' not found", the devices that there are, and a remedy. A plugin
// that provides the kind is named with the reason why it found no device or is not loaded. kind: of
// the device, in upper case; "": any.
Status MissingDevice(const Runtime& runtime, std::string_view asked, std::string_view kind);

}  // namespace thalweg
