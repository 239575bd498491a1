#include "framework/graph/copy_nodes.h"

#include <string>
#include <utility>

namespace thalweg {

Edge Copied::Find(const Edge& e) const {
  if (auto it = values_.find(Key(e)); it != values_.end()) return it->second;
  const Node* node = Find(e.node);
  return node ? Edge{node, e.port} : Edge();
}

const Node* Copied::Find(const Node* n) const {
  auto it = nodes_.find(n);
  return it == nodes_.end() ? nullptr : it->second;
}

StatusOr<const Node*> CopyNode(const Node& node, Graph* to, Copied* copied, std::string_view prefix) {
  NodeSpec spec;
  spec.name = to->UniqueName(std::string(prefix) + node.name());
  for (const Edge& e : node.inputs()) spec.inputs.push_back(copied->Find(e));
  for (const Node* c : node.controls()) {
    if (const Node* mine = copied->Find(c)) spec.controls.push_back(mine);
  }
  spec.extra_attrs = node.extra_attrs();
  spec.unknown_fields = node.unknown_fields();
  spec.device = node.device();
  for (const std::string& other : node.colocate_with()) {
    if (to->Find(other)) spec.colocate_with.push_back(other);
  }
  spec.place = node.place();
  spec.imported = node.imported();
  if (node.op().role == "placeholder") spec.handle = node.handle(0);
  ASSIGN_OR_RETURN(const Node* made, to->AddNode(node.op(), node.attrs(), std::move(spec)));
  copied->Put(&node, made);
  return made;
}

Status CopyNodes(const Graph& from, Graph* to, Copied* copied) {
  const int32_t n = from.size();
  for (int32_t id = 0; id < n; ++id) {
    const Node* node = from.node(id);
    if (!copied->Find(node)) RETURN_IF_ERROR(CopyNode(*node, to, copied).status());
  }
  for (int32_t id = 0; id < n; ++id) {
    const Node* node = from.node(id);
    for (int32_t i = 0; i < node->n_in(); ++i) {
      if (const Node* next = node->back(i)) RETURN_IF_ERROR(to->CloseLoop(copied->Find(node), i, copied->Find(next)));
    }
    if (const Node* longer = from.ExtendedBy(node)) to->Extend(copied->Find(node), copied->Find(longer));
    for (int32_t o = 0; from.has_replaced() && o < node->n_out(); ++o) {
      if (const Edge by = from.ReplacedBy({node, o})) to->Replace(copied->Find(Edge{node, o}), copied->Find(by));
    }
  }
  return Status();
}

}  // namespace thalweg
