// ShapeSource: the data that a plan keeps to serve feeds of other shapes: the work graph after all
// passes. Threads: one.
#pragma once
#include <memory>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/planner/compile.h"
#include "framework/planner/work_graph.h"

namespace thalweg {

class ShapeClasses;

struct ShapeSource {
  ShapeSource();
  ~ShapeSource();
  Signature signature;
  PlanOptions options;
  WorkGraph w;
  std::vector<WorkEdge> edges;            // per value of the plan: the edge that it holds, in whatever memory it lies
  std::unique_ptr<ShapeClasses> classes;  // made when first needed
};

// Returns true if some feed may have a shape other than the one that it was given.
bool MayHaveOtherShapes(const WorkGraph& w);

// Sets the elements and bytes of a value whose shape is known and possible; else sets both to 0.
void SetSizes(uint32_t dtype, PlanShapes::Value* value);

inline bool FitsBudget(const PlanOptions& options, const PlanShapes& shapes) {
  return options.memory_budget == 0 || shapes.total_bytes() <= options.memory_budget;
}

}  // namespace thalweg
