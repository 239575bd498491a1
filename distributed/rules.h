// Which peers may call which methods of a task. Every peer that gets this far has proven its
// identity, unless the program allowed peers that prove nothing. Threads: values, no sharing.
#pragma once
#include <cstdint>

#include "distributed/messages.h"
#include "framework/base/status.h"

namespace thalweg::distributed {

// role: TW_PEER_*. PERMISSION_DENIED for a method that the role may not call.
Status CheckRole(Method method, uint32_t role);

}  // namespace thalweg::distributed
