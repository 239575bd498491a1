// What a plan keeps so that it can serve feeds of other shapes: the work graph after all passes. Threads: one.
#pragma once
#include <memory>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/plan/work_graph.h"

namespace thalweg {

class ShapeClasses;

struct ShapeSource {
  ShapeSource();
  ~ShapeSource();
  Signature signature;
  PlanOptions options;
  WorkGraph w;
  std::vector<WorkEdge> edges;            // per value of the plan: what it is, wherever it lies
  std::unique_ptr<ShapeClasses> classes;  // made when first needed
};

// Some feed was given a shape that is not the only one that it may have.
bool MayHaveOtherShapes(const WorkGraph& w);

// Elements and bytes of a value whose shape is known and can be; else both 0.
void SetSizes(uint32_t dtype, PlanShapes::Value* value);

inline bool FitsBudget(const PlanOptions& options, const PlanShapes& shapes) {
  return options.memory_budget == 0 || shapes.total_bytes() <= options.memory_budget;
}

}  // namespace thalweg
