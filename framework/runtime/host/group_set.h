// The optional set "group" of the host table: implements plugin/group.h with the groups of the step's
// session.
#pragma once
#include "thalweg/plugin/group.h"

namespace thalweg {

const tw_group_api* GroupSet();

}  // namespace thalweg
