// Which feeds a step copies before it reads them. A program may write to the memory that it feeds while the step runs, against the rule; a
// kernel that checks an index there and reads it again would then touch memory that is not its own. So only those feeds are read where they
// lie whose readers say that it does not matter (the hint `?data` of schemas, plugin/op.h). Threads: one.
#pragma once
#include "framework/plan/plan.h"

namespace thalweg {

// Floating-point and complex numbers.
bool IsReal(uint32_t dtype);

// Whether no kernel lets elements of argument `a`, of that type, decide which memory it touches.
bool IsData(const OpSchema& op, size_t a, uint32_t dtype);

// Fills in copied_feeds. A function's plan, which takes its feeds, has none: calls say nothing of their arguments, so that what was fed was
// copied before the call. REQUIRES: nodes, values and feeds are there.
void MarkCopiedFeeds(Plan* plan);

}  // namespace thalweg
