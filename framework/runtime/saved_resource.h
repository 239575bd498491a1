// What checkpoints hold of a plugin's resource: a vector of three strings, its type, its format in decimal, and what the plugin wrote.
// Threads: any; both functions take the locks, and may block as plugins do.
#pragma once
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/resource.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class MemoryBudget;

// budget: pays for it; NULL: nobody. Errors: those of tw_resource_api's save.
StatusOr<Tensor> SaveResource(Resource* resource, MemoryBudget* budget);

// resources[k] becomes what saved[k] holds, or stays as it is where that is empty; all or none. budget: pays for what the plugins count.
// Errors: those of tw_resource_api's restore.
Status RestoreResources(const std::vector<Resource*>& resources, const std::vector<const tw_view*>& saved, MemoryBudget* budget = nullptr);

}  // namespace thalweg
