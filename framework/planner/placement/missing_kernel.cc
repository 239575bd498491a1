#include "framework/planner/placement/missing_kernel.h"

#include <set>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

constexpr size_t kMostTold = 8;

// "CPU (plugin 'org.thalweg.cpu'), ..."; empty if no kind has a kernel.
std::string KindsFor(Runtime& runtime, const Node& n, const std::set<std::string>& kinds) {
  std::string text;
  for (const std::string& kind : kinds) {
    const KernelDef* k = runtime.registry().FindKernel(n.op(), kind, n.types(), n.in_at(), n.out_at(), n.attrs());
    if (k) text += StrCat(text.empty() ? "" : ", ", kind, " (plugin '", Shown(k->plugin), "')");
  }
  return text;
}

std::string SomeOf(const std::set<std::string>& specs) {
  if (specs.empty()) return "none";
  std::string text;
  size_t told = 0;
  for (const std::string& s : specs) {
    if (told++ == kMostTold) return StrCat(text, " and ", specs.size() - kMostTold, " more");
    text += StrCat(text.empty() ? "" : "; ", s);
  }
  return text;
}

}  // namespace

std::string InputTypesText(const Node& node) {
  std::string s;
  for (int32_t i = 0; i < node.n_in(); ++i) s += StrCat(i ? ", " : "", DTypeName(node.in_type(i)));
  return s;
}

Status MissingKernel(Runtime& runtime, const Node& node, std::string_view asked, std::string_view declined) {
  std::set<std::string> kinds, specs;
  for (const KernelDef* k : runtime.registry().Kernels(node.op().name)) {
    kinds.insert(k->spec.kind);
    specs.insert(StrCat(k->spec.text, " of plugin '", Shown(k->plugin), "'"));
  }
  const std::string there = KindsFor(runtime, node, kinds);
  std::string have = there.empty() ? StrCat("kernels of ", node.op().name, ": ", SomeOf(specs)) : StrCat("there is one on ", there);
  if (!declined.empty()) {
    return NotFound(node.title(), ": no kernel for it on device '", asked.empty() ? "any" : Shown(asked), "': ", declined,
                    "; place the node elsewhere, or set the session option fallback=warn");
  }
  return NotFound(node.title(), ": no kernel for (", InputTypesText(node), ") on device '", asked.empty() ? "any" : Shown(asked), "'; ",
                  have, "; place the node elsewhere, set the session option fallback=warn, or load a plugin that has the kernel");
}

}  // namespace thalweg
