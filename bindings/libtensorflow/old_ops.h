// Ops of old GraphDefs that Thalweg does not have, but a newer form of them. Threads: values, no sharing.
#pragma once
#include <string>

#include "framework/proto/graph.pb.h"

namespace thalweg::tf {

// The name of the op that stands for an op of this name, if only the name differs, and otherwise the name itself.
std::string CurrentOp(const std::string& op);
// Gives operations the current names of their ops.
void ReplaceOldOps(proto::GraphDef* def);

}  // namespace thalweg::tf
