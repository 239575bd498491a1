// The plugin's kernels that generated cases can call, in order.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/conformance/cases.h"
#include "tools/conformance/kernel_call.h"
#include "tools/conformance/outcome.h"

namespace thalweg::conformance {

// Returns all kernels but those for any op, which would only take time.
std::vector<const KernelDef*> CallableKernels(const World& world);
// The kernels of a rule, and those on which its check runs: all, or, if there are many, a few element
// types of each op and kind of device.
struct KernelSet {
  std::vector<const KernelDef*> all, tried;
  bool empty() const { return all.empty(); }
  // Returns the subset of kernels for which `is` holds.
  template <class F>
  KernelSet Where(F&& is) const {
    KernelSet some = *this;
    std::erase_if(some.all, [&](const KernelDef* k) { return !is(*k); });
    std::erase_if(some.tried, [&](const KernelDef* k) { return !is(*k); });
    return some;
  }
};
// Returns the callable kernels. all: the check runs on every kernel.
KernelSet KernelsOf(const World& world, bool all);
std::string KernelTitle(const KernelDef& k);                          // "Add @TOY"
std::string KernelName(const KernelDef& k);                           // "'Add(float) @TOY'"
std::string CountText(const std::vector<const KernelDef*>& kernels);  // "3 kernels"
// Counts the kernels that were not tried as missed.
void MissUntried(const KernelSet& kernels, Tally* tally);
// Returns true if results of the kernel can be compared. If the kernel is random, or has state that the
// kit does not see, only types and shapes can be compared.
bool Comparable(const KernelDef& k);

// A case in the world of the plugin, with its graph.
struct Placed {
  std::unique_ptr<Graph> graph;
  const Node* node = nullptr;
};
StatusOr<Placed> PlaceCase(World* world, const Case& c);
// Returns true if the kernel is registered for these types; the case may belong to another of
// several kernels.
bool Fits(const KernelDef& k, const Node& node);
// Returns a text such as "output 1: element 0 of 6 is 2 instead of 3"; empty if nothing differs.
std::string DiffersIn(const std::vector<Tensor>& got, const std::vector<Tensor>& want);
// Compares results as far as those of the kernel are comparable.
std::string DiffersIn(const KernelDef& k, const std::vector<Tensor>& got, const std::vector<Tensor>& want);

using KernelCheck = std::function<Outcome(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device)>;
// Runs the check on each kernel with all of the author's cases, and with generated ones until `cases`
// cases have passed. A kernel on which no case passed counts as missed, unless the rule does not apply
// to it.
Outcome ForKernels(World* world, CaseBook* book, const KernelSet& kernels, size_t cases, const KernelCheck& check);

}  // namespace thalweg::conformance
