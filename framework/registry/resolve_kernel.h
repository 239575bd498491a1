// Resolves the argument names and types of a kernel's spec against its op. Threads: any.
#pragma once
#include "framework/base/status.h"
#include "framework/graph/op_schema.h"
#include "framework/registry/kernel_spec.h"

namespace thalweg {

// NOT_FOUND for an argument that the op does not have; INVALID_ARGUMENT for a clause that
// contradicts the op.
Status ResolveKernel(const OpSchema& op, KernelDef* kernel);

}  // namespace thalweg
