// Who may ask a task for what. Everybody who gets this far has proven who they are, or the program asked for peers that prove nothing.
// Threads: values, no sharing.
#pragma once
#include <cstdint>

#include "distributed/messages.h"
#include "framework/base/status.h"

namespace thalweg::distributed {

// role: TW_PEER_*. PERMISSION_DENIED for a method that is not for it.
Status CheckRole(Method method, uint32_t role);

}  // namespace thalweg::distributed
