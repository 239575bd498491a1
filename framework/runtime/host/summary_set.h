// The optional set "summary" of the host table: plugin/summary.h over summary.h and EventWriter.
#pragma once
#include "thalweg/plugin/summary.h"

namespace thalweg {

const tw_summary_api* SummarySet();

}  // namespace thalweg
