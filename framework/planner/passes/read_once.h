// Chooses the feeds that a step copies before it reads them. A program may, against the rules,
// write to fed memory while the step runs. A kernel that checks an index there and reads it again
// would then access memory outside its bounds. So a feed is read in place only if all its readers
// say that this is harmless (the hint `?data` of schemas, plugin/op.h). Threads: one.
#pragma once
#include "framework/plan/plan.h"

namespace thalweg {

// Returns true for floating-point and complex types.
bool IsReal(uint32_t dtype);

// Returns true if no kernel lets the elements of argument `a` of that type decide which memory it
// accesses.
bool IsData(const OpSchema& op, size_t a, uint32_t dtype);

// Sets copied_feeds. The plan of a function, which takes its feeds, has none: the schema of a call
// says nothing about its arguments, so a feed was copied before the call. REQUIRES: nodes, values
// and feeds are there.
void MarkCopiedFeeds(Plan* plan);

}  // namespace thalweg
