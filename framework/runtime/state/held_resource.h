// Implements thalweg/plugin/held_resource.h: plugins hold resources beyond a call, and wait for
// changes that no call makes.
#pragma once
#include "thalweg/plugin/held_resource.h"

namespace thalweg {

const tw_held_resource_api* HeldResourceSet();

}  // namespace thalweg
