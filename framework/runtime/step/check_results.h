// Checks the results of kernel calls, for sessions with the option check_values. Threads: any.
#pragma once
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/devices/device_queues.h"
#include "framework/runtime/step/frame.h"
#include "framework/tensor/value_check.h"

namespace thalweg {

// Returns INVALID_ARGUMENT if an output of the call, or a variable that it updated, has an element
// that `check` refuses. queues: those of the call's device, for which the call waits; NULL: none.
// REQUIRES: the call has ended, and its resources are open unless it is asynchronous.
Status CheckResults(ValueCheck check, const KernelFrame& call, DeviceQueues* queues);

// Returns the RangeText of input i of the call, or "" if it cannot be read.
std::string InputRange(const KernelFrame& call, uint32_t i);

}  // namespace thalweg
