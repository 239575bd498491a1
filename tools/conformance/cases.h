// Generates test cases for an op from its schema: types, attributes, shapes and values that the
// op's shape rule accepts, and that the oracle accepts if there is one.
// Threads: one at a time.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "tools/conformance/kernel_call.h"

namespace thalweg::conformance {

struct Case {
  std::string op;
  std::map<std::string, AttrValue> attrs;
  std::vector<Tensor> inputs;  // host memory; a handle is empty if `held` describes its target
  HeldBy held;
  std::vector<Tensor> results;  // what the oracle gets, and leaves in the resources; empty without one
  bool author = false;          // it is one of the author's, not made up
  std::string text() const;     // "float [2, 3], float [3]"
};

// Returns the inputs, with an empty tensor in place of each handle.
std::vector<Tensor> ValuesOf(const Case& c);

// Adds a node of the case, fed from placeholders. known: the placeholders declare their shapes.
// Errors: those of the host or the shape rule.
StatusOr<const Node*> AddCase(Graph* graph, const Case& c, bool known = true);

// The kernel on the case.
CallResult CallKernel(World* world, const Node* node, const KernelDef* kernel, Device* device, const Case& c, const CallSetting& how = {});

// Runs the CPU's kernel on the case. NOT_FOUND if the CPU has none.
StatusOr<std::vector<Tensor>> AskOracle(World* oracle, const Case& c);

class CaseFile;

class CaseBook {
 public:
  // oracle: runtime without the plugin; world: with it; file: what the author supplies, or NULL. All must outlive the book.
  CaseBook(World* world, World* oracle, const CaseFile* file, Effort effort)
      : world_(world), oracle_(oracle), file_(file), effort_(effort) {}
  // Cases that the kernel is for, the author's first. with_results: only such as the oracle can compute. Cases with resources are such as
  // the kernel, or the oracle, takes. The list is empty where none could be made up.
  const std::vector<Case>& For(const KernelDef& kernel, bool with_results);
  // Why For's list is empty, and what to do.
  std::string WhyNone(const KernelDef& kernel, bool with_results);
  // Some cases of an op, whatever kernel it may have. why: where there is none, as WhyNone.
  std::vector<Case> ForOp(const OpSchema& op, uint32_t preferred_dtype, std::string* why);

 private:
  World* world_;
  World* oracle_;
  const CaseFile* file_;
  Effort effort_;
  struct Made {
    std::vector<Case> cases;
    std::string refusal;  // of the first case that was proposed, or why none could be
  };
  Made& MadeFor(const KernelDef& kernel, bool with_results);
  void AddAuthors(const OpSchema& op, const Attrs& bound, World* oracle, Made* made);
  // Why there is no case, and what to do; asks for one.
  std::string NoCase(const OpSchema& op, const std::string& refusal) const;
  std::map<std::string, Made> made_;
  struct Barren {
    int sets = 0;  // of types that no case was found for
    std::string refusal;
  };
  std::map<std::string, Barren> barren_;  // by op
};

}  // namespace thalweg::conformance
