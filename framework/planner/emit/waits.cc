#include "framework/planner/emit/waits.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "framework/graph/function.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

void AddCalled(const Node& node, std::vector<std::string>* to) {
  for (size_t a = 0; a < node.attrs().size(); ++a) {
    if (node.op().attrs[a].kind != TW_ATTR_FUNC) continue;
    const auto& names = node.attrs()[a].strings();
    to->insert(to->end(), names.begin(), names.end());
  }
}

// Returns true if the function, or one that it calls, waits.
bool SomeWaits(const WorkGraph& w, FunctionLibrary* library, const std::string& name) {
  std::vector<std::string> todo = {name};
  std::set<std::string> seen;
  while (!todo.empty()) {
    const std::string next = std::move(todo.back());
    todo.pop_back();
    if (!seen.insert(next).second) continue;
    if (const auto known = w.waits.find(next); known != w.waits.end()) {
      if (known->second) return true;
      continue;
    }
    const auto f = library->Find(next);
    if (!f.ok()) continue;  // the caller of the function gets the error
    const Graph& body = (*f)->body();
    for (int32_t id = 0; id < body.size(); ++id) {
      const Node& n = *body.node(id);
      if (MayWait(w, n.runs_as() ? *n.runs_as() : n)) return true;
      AddCalled(n, &todo);
    }
  }
  return false;
}

}  // namespace

bool MayWait(const WorkGraph& w, const Node& node) {
  const auto kernels = w.runtime().registry().Kernels(node.op().name);
  return std::any_of(kernels.begin(), kernels.end(), [](const KernelDef* k) { return k->spec.async; });
}

bool CallsWhatWaits(const WorkGraph& w, const Node& node) {
  const auto library = w.graph->functions();
  if (!library) return false;
  std::vector<std::string> called;
  AddCalled(node, &called);
  return std::any_of(called.begin(), called.end(), [&](const std::string& name) {
    if (const auto known = w.waits.find(name); known != w.waits.end()) return known->second;
    return w.waits[name] = SomeWaits(w, library.get(), name);
  });
}

}  // namespace thalweg
