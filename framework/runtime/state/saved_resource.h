// The form of a plugin's resource in checkpoints: a vector of three strings: its type, its format
// in decimal, and the bytes that the plugin wrote. Threads: any; both functions take the resource
// locks and may block as plugins do.
#pragma once
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/state/resource.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class MemoryBudget;

// budget: is charged for the tensor; NULL: none. Errors: those of tw_resource_api's save.
StatusOr<Tensor> SaveResource(Resource* resource, MemoryBudget* budget);

// Restores resources[k] from saved[k], or leaves it if saved[k] is empty; all or none. budget: is
// charged for memory that the plugins count. Errors: those of tw_resource_api's restore.
Status RestoreResources(const std::vector<Resource*>& resources, const std::vector<const tw_view*>& saved, MemoryBudget* budget = nullptr);

}  // namespace thalweg
