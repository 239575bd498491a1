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
  std::vector<Tensor> results;  // the oracle's outputs, then its resources; empty without an oracle
  bool author = false;          // supplied by the author, not generated
  std::string text() const;     // "float [2, 3], float [3]"
};

// Returns the inputs, with an empty tensor in place of each handle.
std::vector<Tensor> ValuesOf(const Case& c);

// Adds a node of the case, fed from placeholders. known: the placeholders declare their shapes.
// Errors: those of the host or the shape rule.
StatusOr<const Node*> AddCase(Graph* graph, const Case& c, bool known = true);

// Runs the kernel on the case.
CallResult CallKernel(World* world, const Node* node, const KernelDef* kernel, Device* device, const Case& c, const CallSetting& how = {});

// Runs the CPU's kernel on the case. NOT_FOUND if the CPU has none.
StatusOr<std::vector<Tensor>> AskOracle(World* oracle, const Case& c);

class CaseFile;

class CaseBook {
 public:
  // world: has the plugin; oracle: has not; file: the author's cases, or NULL. All must outlive the
  // book.
  CaseBook(World* world, World* oracle, const CaseFile* file, Effort effort)
      : world_(world), oracle_(oracle), file_(file), effort_(effort) {}
  // Returns cases for the kernel, the author's first. with_results: only cases that the oracle can
  // compute. The kernel, or the oracle, accepts every case with resources. The list is empty if no case
  // could be generated.
  const std::vector<Case>& For(const KernelDef& kernel, bool with_results);
  // Returns the reason for which For's list is empty, and a remedy.
  std::string WhyNone(const KernelDef& kernel, bool with_results);
  // Returns some cases of an op, for any kernel. If there are none, sets *why as WhyNone does.
  std::vector<Case> ForOp(const OpSchema& op, uint32_t preferred_dtype, std::string* why);

 private:
  World* world_;
  World* oracle_;
  const CaseFile* file_;
  Effort effort_;
  struct Made {
    std::vector<Case> cases;
    std::string refusal;  // of the first case that was proposed, or the reason for which none was
  };
  Made& MadeFor(const KernelDef& kernel, bool with_results);
  void AddAuthors(const OpSchema& op, const Attrs& bound, World* oracle, Made* made);
  // Returns the reason for which there is no case, and a remedy; requests a case with WantCase.
  std::string NoCase(const OpSchema& op, const std::string& refusal) const;
  std::map<std::string, Made> made_;
  struct Barren {
    int sets = 0;  // number of type sets without a case
    std::string refusal;
  };
  std::map<std::string, Barren> barren_;  // by op
};

}  // namespace thalweg::conformance
