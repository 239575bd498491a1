#include "framework/runtime/trace/node_texts.h"

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/plan/frame_plan.h"
#include "framework/plan/plan.h"
#include "framework/runtime/devices/device.h"

namespace thalweg {
namespace {

// Returns the name of the node that made the copied value.
std::string CopiedName(const Plan& plan, const PlanNode& copy, const std::vector<int32_t>& maker) {
  const auto value = size_t(copy.in[0]);
  const int32_t made_by = maker[value];
  if (made_by >= 0 && plan.nodes[size_t(made_by)].run.node) return plan.nodes[size_t(made_by)].run.node->name();
  return plan.values[value].kind == PlanValue::kConst ? "constant" : "feed";
}

const char* CopyOp(PlanNode::Kind kind) {
  return kind == PlanNode::kCopyIn ? "CopyToDevice" : kind == PlanNode::kCopyOut ? "CopyToHost" : "CopyToPeer";
}

// Returns "" if a shape is known only at run time.
std::string PlannedShapes(const Plan& plan, const PlanShapes& shapes, const PlanNode& n) {
  std::vector<int64_t> all;
  for (const auto* side : {&n.in, &n.out}) {
    if (side == &n.out) all.push_back(kOutputsFollow);
    for (int32_t v : *side) {
      const Shape& s = shapes.values[size_t(v)].shape;
      const uint32_t dtype = plan.values[size_t(v)].dtype;
      if (!s.known() && dtype != TW_RESOURCE) return "";
      AddDims(dtype, s.dims().data(), s.known() ? s.rank() : 0, &all);
    }
  }
  return DimsText(all);
}

}  // namespace

void AddDims(uint32_t dtype, const int64_t* dims, int32_t rank, std::vector<int64_t>* to) {
  to->push_back(dtype);
  to->push_back(rank);
  for (int32_t i = 0; i < rank; ++i) to->push_back(dims[i]);
}

std::string DimsText(const std::vector<int64_t>& all) {
  std::string text;
  bool first = true;
  for (size_t i = 0; i < all.size();) {
    if (all[i] == kOutputsFollow) {
      text += text.empty() ? "-> " : " -> ";
      first = true;
      ++i;
      continue;
    }
    const auto dtype = uint32_t(all[i]);
    const auto rank = int32_t(all[i + 1]);
    text += StrCat(first ? "" : ", ", DTypeName(dtype));
    if (dtype != TW_RESOURCE) text += StrCat(" ", ShapeText(all.data() + i + 2, rank));
    first = false;
    i += 2 + size_t(std::max(rank, 0));
  }
  return text;
}

std::shared_ptr<const NodeTexts> NodeTexts::Of(const Plan& plan, const PlanShapes& shapes) {
  auto texts = std::make_shared<NodeTexts>();
  std::vector<int32_t> maker(plan.values.size(), -1);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    for (int32_t v : plan.nodes[i].out) maker[size_t(v)] = int32_t(i);
  }
  texts->nodes.resize(plan.nodes.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    Node& t = texts->nodes[i];
    t.copy = n.kind != PlanNode::kKernel && n.kind != PlanNode::kFlow;
    t.name = texts->Keep(t.copy ? CopiedName(plan, n, maker) : n.run.node->name());
    t.op = texts->Keep(t.copy ? CopyOp(n.kind) : n.run.node->op().name);
    t.kernel = texts->Keep(t.copy || !n.run.kernel ? "" : n.run.kernel->spec.text);
    t.device = texts->Keep(n.run.device ? n.run.device->name() : plan.host->name());
    t.shapes = texts->Keep(t.copy || n.dynamic ? "" : PlannedShapes(plan, shapes, n));
    const int32_t to = t.copy ? plan.values[size_t(n.out[0])].location : 0;
    t.to = texts->Keep(!t.copy ? "" : to == 0 ? plan.host->name() : plan.devices[size_t(to) - 1]->name());
    for (int32_t v : n.out) t.output_bytes += n.simple && !plan.frames ? shapes.values[size_t(v)].bytes : 0;
    for (int32_t k : n.next) texts->nodes[size_t(k)].after.push_back(uint32_t(i));
    texts->n_after += n.next.size();
    texts->asides = texts->asides || n.dynamic;
  }
  for (const Device* d : plan.devices) texts->asides = texts->asides || d->has_streams();
  if (plan.frames) {
    for (const FramePlan::Frame& f : plan.frames->frames) texts->frames.push_back(texts->Keep(f.name));
  }
  return texts;
}

}  // namespace thalweg
