// The optional set "callback" of the host table: implements plugin/callback.h with LaterCalls and the
// runtime's threads.
#pragma once
#include "thalweg/plugin/callback.h"

namespace thalweg {

const tw_callback_api* CallbackSet();

}  // namespace thalweg
