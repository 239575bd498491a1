// What is said where a device is asked for that there is not.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg {

class Runtime;

// NOT_FOUND: "device 'asked' not found", what there is, and what to do: a plugin that provides the kind may have found none, and says why,
// or is not loaded, and says why. kind: of the device, in upper case; empty: any.
Status MissingDevice(const Runtime& runtime, std::string_view asked, std::string_view kind);

}  // namespace thalweg
