// The optional set "timeline" of the host table: implements plugin/timeline.h.
#pragma once
#include "thalweg/plugin/timeline.h"

namespace thalweg {

const tw_timeline_set* TimelineSet();

}  // namespace thalweg
