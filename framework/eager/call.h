// EagerCall: one op to run now, and the key of what is prepared for it. Threads: values, no sharing.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"
#include "thalweg/plugin/abi.h"

namespace thalweg {

struct EagerCall {
  std::string_view op;
  std::string_view device;         // empty: where the inputs are
  std::span<const Tensor> inputs;  // flat, in the order of the schema
  std::span<const tw_attr> attrs;
};

// Appends op, device, element types of the inputs and attributes to *key. Calls with equal keys can use one prepared entry. Shapes are not
// part of the key: the plans of an entry tell them apart.
// Errors: INVALID_ARGUMENT naming op and attribute: a name or values that are NULL, a kind that is unknown, a single value whose count is
// not 1, a tensor in device memory. UNIMPLEMENTED for a function.
Status AppendKey(const EagerCall& call, std::string* key);

}  // namespace thalweg
