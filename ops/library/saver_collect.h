// What a saver is for: variables, and resources of plugins that save them.
#pragma once
#include "ops/library/saver_parts.h"

namespace thalweg::library {

// The values of `handles` or, where n is 0, all of the graph: each resource once, however many nodes make a handle to it. Fails the scope
// for a value that is no such handle, and where there is none.
void Collect(tw_scope* scope, const tw_output* handles, uint32_t n, tw_saver* saver);

}  // namespace thalweg::library
