// LayoutForms: decides whether a node can run in another order of axes, and in which form. Threads:
// one.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "framework/graph/resolve.h"
#include "framework/planner/axes/layout_choice.h"
#include "framework/registry/registry.h"

namespace thalweg {

class LayoutForms {
 public:
  // Borrows all arguments.
  LayoutForms(const WorkGraph& w, const OpSchema& transpose, const std::string& from, const std::string& to, const AxisOrder& order)
      : w_(w), transpose_(transpose), from_(from), to_(to), order_(order) {}
  // Returns false if the node cannot be turned; *form is then meaningless.
  bool Find(const WorkNode& n, LayoutChoice::Form* form);

 private:
  bool May(const WorkNode& n) const;
  bool SetAttrs(const WorkNode& n, LayoutChoice::Form* form) const;
  AxisUse UseOf(const WorkNode& n, size_t i) const;
  bool MayTurnRows(const WorkEdge& e) const;
  bool MayNumber(const WorkEdge& e) const;
  bool MayReduce(const WorkNode& n) const;
  bool CanTranspose(uint32_t dtype, const Device& device);

  const WorkGraph& w_;
  const OpSchema& transpose_;
  const std::string &from_, &to_;
  const AxisOrder& order_;
  std::map<std::pair<uint32_t, std::string>, bool> transposers_;  // by type and device kind
};

// Returns the kernel of an op that takes a value of the type and whole numbers, such as a
// transpose; NULL if there is none.
const KernelDef* TurningKernel(const WorkGraph& w, const OpSchema& op, uint32_t dtype, const Device& device);

}  // namespace thalweg
