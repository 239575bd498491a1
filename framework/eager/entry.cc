#include "framework/eager/entry.h"

#include <algorithm>
#include <utility>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/step/step.h"
#include "framework/session/session.h"

namespace thalweg {
namespace {

// Copies tensors, because the program may later write to their memory, and the entry outlives the call.
StatusOr<AttrValue> Kept(AttrValue value) {
  if (value.kind() != TW_ATTR_TENSOR) return value;
  std::vector<Tensor> copies;
  for (const Tensor& t : value.tensors()) {
    ASSIGN_OR_RETURN(copies.emplace_back(), t.Clone());
  }
  return value.is_list() ? AttrValue::Tensors(std::move(copies)) : AttrValue::OfTensor(std::move(copies[0]));
}

// Requires a name for state that is found by name. Without a name, all calls with the same attributes
// would share the state unintentionally.
Status CheckNamed(const OpSchema& op, const Node& node) {
  const AttrValue* name = node.FindAttr("shared_name");
  const bool gives = std::any_of(op.outputs.begin(), op.outputs.end(), [](const ArgSpec& y) { return y.dtype == TW_RESOURCE; });
  if (!gives || !name || name->kind() != TW_ATTR_STRING || name->is_list() || !name->strings()[0].empty()) return Status();
  return InvalidArgument(op.name, ": attribute 'shared_name' is empty; set it to the name that the state is to be found by");
}

Status CheckNoReferences(const Node& node) {
  for (uint32_t type : node.types()) {
    if (type >= TW_REF) {
      return InvalidArgument(node.op().name, ": its values are references, which only a session has; use the op on resource handles");
    }
  }
  return Status();
}

}  // namespace

EagerEntry::EagerEntry() = default;
EagerEntry::~EagerEntry() = default;

StatusOr<std::shared_ptr<EagerEntry>> EagerEntry::Make(std::shared_ptr<Runtime> runtime, const SessionOptions& options,
                                                       MemoryBudget* account, const EagerBuild& build) {
  auto graph = std::make_shared<Graph>(std::move(runtime));
  Prepared::Parts parts;
  RETURN_IF_ERROR(build(graph.get(), &parts));
  std::shared_ptr<EagerEntry> entry(new EagerEntry);
  ASSIGN_OR_RETURN(entry->session_, Session::Create(std::move(graph), options, account));
  entry->op_ = std::make_unique<Prepared>(entry->session_.get(), &entry->differentiating_, std::move(parts));
  return entry;
}

StatusOr<Edge> AddInput(Graph* graph, uint32_t dtype, size_t i) {
  ASSIGN_OR_RETURN(const OpSchema* op, graph->host().FindRole("placeholder"));
  NodeSpec spec;
  spec.op = op->name;
  spec.name = StrCat("input_", i);
  spec.attrs["dtype"] = AttrValue::Type(dtype);
  ASSIGN_OR_RETURN(const Node* n, graph->AddNode(std::move(spec)));
  return Edge{n, 0};
}

Status BuildCall(const EagerCall& call, Graph* graph, Prepared::Parts* parts) {
  NodeSpec spec;
  spec.op = call.op;
  spec.name = kEagerNode;
  spec.device = call.device;
  for (const tw_attr& a : call.attrs) {
    ASSIGN_OR_RETURN(AttrValue value, AttrValue::FromC(a));
    ASSIGN_OR_RETURN(spec.attrs[std::string(a.name, a.name_len)], Kept(std::move(value)));
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    ASSIGN_OR_RETURN(const Edge input, AddInput(graph, call.inputs[i].dtype(), i));
    parts->in.push_back(input);
  }
  spec.inputs = parts->in;
  ASSIGN_OR_RETURN(const Node* node, graph->AddNode(std::move(spec)));
  RETURN_IF_ERROR(CheckNoReferences(*node));
  RETURN_IF_ERROR(CheckNamed(node->op(), *node));
  for (int32_t o = 0; o < node->n_out(); ++o) parts->out.push_back({node, o});
  if (parts->out.empty()) parts->targets.push_back(node);
  parts->op = node;
  return Status();
}

}  // namespace thalweg
