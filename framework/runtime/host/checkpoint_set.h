// The optional set "checkpoint" of the host table: plugin/checkpoint.h, implemented by
// CheckpointWriter and CheckpointReader.
#pragma once
#include "thalweg/plugin/checkpoint.h"

namespace thalweg {

const tw_checkpoint_api* CheckpointSet();

}  // namespace thalweg
