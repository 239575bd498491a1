// Cases for an op, made up from its schema: types, attributes, shapes and values that the op's own shape rule lets pass, and the oracle
// too where there is one.
// Threads: one at a time.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "tools/conformance/world.h"

namespace thalweg::conformance {

struct Case {
  std::string op;
  std::map<std::string, AttrValue> attrs;
  std::vector<Tensor> inputs;   // host memory
  std::vector<Tensor> results;  // what the oracle gets; empty without one
  std::string text() const;     // "float [2, 3], float [3]"
};

// A node of the case, fed from placeholders. known: they say their shapes. Errors: what the host or the shape rule refuses.
StatusOr<const Node*> AddCase(Graph* graph, const Case& c, bool known = true);

// What the CPU's kernel gets. NOT_FOUND where the CPU has none.
StatusOr<std::vector<Tensor>> AskOracle(World* oracle, const Case& c);

class CaseBook {
 public:
  // oracle: runtime without the plugin; world: with it. Both must outlive the book.
  CaseBook(World* world, World* oracle, Effort effort) : world_(world), oracle_(oracle), effort_(effort) {}
  // Cases that the kernel is for. with_results: only such as the oracle can compute. The list is empty where none could be made up.
  const std::vector<Case>& For(const KernelDef& kernel, bool with_results);
  // Some cases of an op, whatever kernel it may have.
  std::vector<Case> ForOp(const OpSchema& op, uint32_t preferred_dtype);

 private:
  World* world_;
  World* oracle_;
  Effort effort_;
  std::map<std::string, std::vector<Case>> made_;
};

}  // namespace thalweg::conformance
