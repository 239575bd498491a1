#include "framework/plan/waits.h"

#include <algorithm>

#include "framework/graph/function.h"

namespace thalweg {
namespace {

bool MayWait(const WorkGraph& w, const Node& node) {
  const auto kernels = w.runtime().registry().Kernels(node.op().name);
  return std::any_of(kernels.begin(), kernels.end(), [](const KernelDef* k) { return k->spec.async; });
}

// One that is met again on the way adds nothing to what is found there.
bool Waits(const WorkGraph& w, FunctionLibrary* library, const std::string& name) {
  const auto [at, is_new] = w.waits.try_emplace(name, false);
  if (!is_new) return at->second;
  const auto f = library->Find(name);
  if (!f.ok()) return false;  // whoever calls it is told
  const Graph& body = (*f)->body();
  bool waits = false;
  for (int32_t id = 0; id < body.size() && !waits; ++id) {
    const Node& n = *body.node(id);
    waits = MayWait(w, n.runs_as() ? *n.runs_as() : n) || CallsWhatWaits(w, n);
  }
  return w.waits[name] = waits;
}

}  // namespace

bool CallsWhatWaits(const WorkGraph& w, const Node& node) {
  const auto library = w.graph->functions();
  if (!library) return false;
  for (size_t a = 0; a < node.attrs().size(); ++a) {
    if (node.op().attrs[a].kind != TW_ATTR_FUNC) continue;
    for (const std::string& name : node.attrs()[a].strings()) {
      if (Waits(w, library.get(), name)) return true;
    }
  }
  return false;
}

}  // namespace thalweg
