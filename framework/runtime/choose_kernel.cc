#include "framework/runtime/choose_kernel.h"

#include <algorithm>
#include <vector>

#include "framework/base/shown.h"
#include "framework/runtime/node_record.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {
namespace {

std::vector<tw_shape> ShapesOf(const NodeFacts& facts) {
  const Node& n = facts.node;
  std::vector<tw_shape> all;
  for (const Edge& e : n.inputs()) all.push_back(e.node->shape(e.port).c());
  for (int32_t o = 0; o < n.n_out(); ++o) all.push_back(n.shape(o).c());
  std::copy(facts.shapes.begin(), facts.shapes.end(), all.begin());
  return all;
}

}  // namespace

Status KernelFits(const KernelDef& kernel, const Device& device, const NodeFacts& facts) {
  if (!kernel.def.fits) return Status();
  const Node& n = facts.node;
  const std::vector<tw_shape> shapes = ShapesOf(facts);
  std::vector<const tw_view*> values;
  for (const Tensor& t : facts.values) values.push_back(t ? &t.view() : nullptr);
  NodeRun run;
  run.node = &n;
  run.kernel = &kernel;
  run.types = n.types().data();
  NodeRecord record(run, device, shapes);
  const bool any = std::any_of(values.begin(), values.end(), [](const tw_view* v) { return v != nullptr; });
  record.c.value = any ? values.data() : nullptr;
  return FromC(kernel.def.fits(&record.c));
}

StatusOr<const KernelDef*> ChooseKernel(const Registry& registry, const Device& device, const NodeFacts& facts, std::string* declined) {
  const Node& n = facts.node;
  const KernelDef* k = nullptr;
  while ((k = registry.FindKernel(n.op(), device.kind(), n.types(), n.in_at(), n.out_at(), n.attrs(), k))) {
    Status s = KernelFits(*k, device, facts);
    if (s.ok()) return k;
    if (s.code() != absl::StatusCode::kUnimplemented) return Prefix(s, StrCat(n.title(), ":"));
    if (declined) {
      *declined += StrCat(declined->empty() ? "" : "; ", "kernel '", Shown(k->spec.text), "' of plugin '", Shown(k->plugin),
                          "' declines: ", Message(s));
    }
  }
  return k;
}

}  // namespace thalweg
