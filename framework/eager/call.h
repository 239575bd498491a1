// EagerCall: one op with its inputs, and the key under which Eager keeps the entry prepared for it.
// Threads: values, not shared.
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
  std::string_view device;         // empty: the device that holds the inputs
  std::span<const Tensor> inputs;  // flat, in the order of the schema
  std::span<const tw_attr> attrs;
};

// Appends op, device, element types of the inputs and attributes to *key. Calls with equal keys can
// use one prepared entry. The key has no shapes, because an entry has a plan for each shape.
// Errors: INVALID_ARGUMENT, naming op and attribute, for values that are NULL, an unknown kind, a
// single value whose count is not 1, or a tensor in device memory. UNIMPLEMENTED for a function.
Status AppendKey(const EagerCall& call, std::string* key);

}  // namespace thalweg
