#include "framework/planner/passes/read_once.h"

#include <algorithm>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/graph/op_schema.h"
#include "framework/planner/compilers/part.h"

namespace thalweg {
namespace {

size_t ArgumentOf(const Node& node, size_t input) {
  const auto& at = node.in_at();
  return size_t(std::upper_bound(at.begin(), at.end(), uint32_t(input)) - at.begin()) - 1;
}

// Follows one feed to all nodes that may read its memory.
class Reach {
 public:
  explicit Reach(const Plan& plan) : p_(plan), seen_(plan.values.size(), 0) {}

  // Returns whether some reader of the value's memory is sensitive to changes.
  bool Matters(int32_t feed) {
    std::fill(seen_.begin(), seen_.end(), uint8_t{0});
    todo_.clear();
    Add(feed);
    while (!todo_.empty()) {
      const int32_t value = todo_.back();
      todo_.pop_back();
      for (const PlanNode& n : p_.nodes) {
        for (size_t k = 0; k < n.in.size(); ++k) {
          if (n.in[k] == value && MattersTo(n, k)) return true;
        }
      }
    }
    return false;
  }

 private:
  void Add(int32_t value) {
    const auto add = [&](size_t v) {
      if (!seen_[v]) todo_.push_back(int32_t(v));
      seen_[v] = 1;
    };
    add(size_t(value));
    for (size_t v = 0; v < p_.values.size(); ++v) {
      if (p_.values[v].view_of == value) add(v);
    }
  }

  bool MattersTo(const PlanNode& n, size_t k) {
    const uint32_t dtype = p_.values[size_t(n.in[k])].dtype;
    switch (n.kind) {
      case PlanNode::kCopyIn:
      case PlanNode::kCopyOut:
      case PlanNode::kCopyPeer: return false;  // the copy that they make is private
      case PlanNode::kFlow:                    // control flow decides by the value, or forwards it
        if (!IsReal(dtype)) return true;
        for (int32_t v : n.out) Add(v);
        return false;
      case PlanNode::kKernel: break;
    }
    return n.part ? MattersToPart(n, k) : MattersToNode(n, k, dtype);
  }

  bool MattersToNode(const PlanNode& n, size_t k, uint32_t dtype) {
    const OpSchema& op = n.run.node->op();
    const size_t a = ArgumentOf(*n.run.node, k);
    if (!IsData(op, a, dtype)) return true;
    // A kept value outlives the step; later steps read it and do not know its origin.
    if (n.run.kernel->keep[a] && !IsReal(dtype)) return true;
    if (n.given || !op.axes.elementwise) AddShares(n);
    return false;
  }

  // Adds the outputs that may lie in the memory of an input; outputs in the plan's memory do not.
  void AddShares(const PlanNode& n) {
    for (int32_t v : n.out) {
      if (p_.values[size_t(v)].kind == PlanValue::kHeld) Add(v);
    }
  }

  // If a member of the part forwards its input (a reshape), the readers of its output are examined
  // too.
  bool MattersToPart(const PlanNode& n, size_t k) {
    const PartGraph& g = n.part->graph();
    std::vector<WorkEdge> reached = {{-1, int32_t(k)}};
    for (size_t i = 0; i < reached.size(); ++i) {
      for (size_t m = 0; m < g.members.size(); ++m) {
        const PartGraph::Member& member = g.members[m];
        for (size_t x = 0; x < member.in.size(); ++x) {
          if (member.in[x].node != reached[i].node || member.in[x].port != reached[i].port) continue;
          const OpSchema& op = member.node->op();
          if (!IsData(op, ArgumentOf(*member.node, x), member.node->in_type(int32_t(x)))) return true;
          if (op.axes.elementwise && op.algebra.passes < 0) continue;
          for (int32_t o = 0; o < member.node->n_out(); ++o) {
            const WorkEdge out{int32_t(m), o};
            const auto same = [&](const WorkEdge& e) { return e.node == out.node && e.port == out.port; };
            if (std::none_of(reached.begin(), reached.end(), same)) reached.push_back(out);
          }
        }
      }
    }
    AddShares(n);
    return false;
  }

  const Plan& p_;
  std::vector<uint8_t> seen_;  // per value
  std::vector<int32_t> todo_;
};

}  // namespace

bool IsReal(uint32_t dtype) {
  return dtype == TW_FLOAT || dtype == TW_DOUBLE || dtype == TW_HALF || dtype == TW_BFLOAT16 || dtype == TW_COMPLEX64 ||
         dtype == TW_COMPLEX128;
}

bool IsData(const OpSchema& op, size_t a, uint32_t dtype) {
  if (a < op.data.size() && op.data[a]) return true;
  if (a < op.shape_only.size() && op.shape_only[a]) return true;
  return op.axes.elementwise && IsReal(dtype);
}

void MarkCopiedFeeds(Plan* plan) {
  if (plan->takes_feeds) return;
  Reach reach(*plan);
  for (size_t i = 0; i < plan->feeds.size(); ++i) {
    if (plan->feeds[i] < 0) continue;
    const PlanValue& value = plan->values[size_t(plan->feeds[i])];
    const DTypeInfo* info = FindDType(value.dtype);
    // Programs cannot write to shared strings and handles; programs must not write to device
    // memory.
    if (!info || !info->plain || value.location != 0) continue;
    if (reach.Matters(plan->feeds[i])) plan->copied_feeds.push_back(int32_t(i));
  }
}

}  // namespace thalweg
