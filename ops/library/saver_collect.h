// Collects the handles of a saver: variables, and resources of plugins that can be saved.
#pragma once
#include "ops/library/saver_parts.h"

namespace thalweg::library {

// Collects `handles` or, if n is 0, all of the graph: each resource once, even if several nodes
// make handles to it. Fails the scope for a value that is no such handle, and if there is none.
void Collect(tw_scope* scope, const tw_output* handles, uint32_t n, tw_saver* saver);

}  // namespace thalweg::library
