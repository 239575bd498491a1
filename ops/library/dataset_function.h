// What the builders of thalweg/dataset.h with functions of elements share.
#pragma once
#include "ops/library/dataset_parts.h"

namespace thalweg::library {

// The function that a block became, with the values that it captured.
struct ElementFunction {
  const char* name = nullptr;
  Captured captured;
  Components results;
  std::vector<uint32_t> captured_types;
};

// Takes the block. `dataset_result`: the block gives a dataset, and `results` are its components.
ElementFunction DefineFunction(tw_scope* scope, const char* function, tw_block* block, bool dataset_result = false);

// Adds an argument that is a dataset of these elements, and an operation that says so, from which
// other dataset ops learn it.
tw_output DatasetArgument(tw_block* block, const Components& elements);

}  // namespace thalweg::library
