#include "old_ops.h"

#include <string>
#include <utility>

#include "ops.h"

namespace thalweg::tf {

std::string CurrentOp(const std::string& op) { return op == "Iterator" && !FindOp(op) ? "IteratorV2" : op; }

void ReplaceOldOps(proto::GraphDef* def) {
  for (proto::NodeDef& node : *def->mutable_node()) {
    if (std::string current = CurrentOp(node.op()); current != node.op()) node.set_op(std::move(current));
  }
}

}  // namespace thalweg::tf
