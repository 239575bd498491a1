// The argument names and types of a kernel's spec, tied to the op that it is for.
#pragma once
#include "framework/base/status.h"
#include "framework/graph/op_schema.h"
#include "framework/registry/kernel_spec.h"

namespace thalweg {

// Errors: NOT_FOUND for an argument that the op does not have; INVALID_ARGUMENT for what does not go with the op.
Status ResolveKernel(const OpSchema& op, KernelDef* kernel);

}  // namespace thalweg
