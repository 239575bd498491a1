#include "distributed/piece_nodes.h"

#include <utility>

#include "framework/graph/attr_proto.h"

namespace thalweg::distributed {
namespace {

Status SetMeeting(const Meeting& meeting, const std::string& type_attr, PieceNode* n) {
  ASSIGN_OR_RETURN(n->attrs[type_attr], SerializeAttr(AttrValue::Type(meeting.type)));
  ASSIGN_OR_RETURN(n->attrs["tensor_name"], SerializeAttr(AttrValue::String(meeting.key)));
  ASSIGN_OR_RETURN(n->attrs["send_device"], SerializeAttr(AttrValue::String(meeting.from)));
  ASSIGN_OR_RETURN(n->attrs["recv_device"], SerializeAttr(AttrValue::String(meeting.to)));
  ASSIGN_OR_RETURN(n->attrs["send_device_incarnation"], SerializeAttr(AttrValue::Int(0)));
  return Status();
}

}  // namespace

Status SetDevice(const Node& n, const DeviceSpec& wish, PieceNode* out) {
  auto spec = ParseDeviceSpec(n.device());
  if (!spec.ok()) return OfNode(n, Prefix(spec.status(), n.title() + ":"));
  if (auto both = MergeDeviceSpecs(*spec, wish); both.ok()) spec = *std::move(both);
  spec->job.clear();
  spec->replica = spec->task = -1;
  out->device = spec->text();
  return Status();
}

Status SetAttrs(const Node& n, PieceNode* out) {
  for (size_t i = 0; i < n.attrs().size(); ++i) {
    const std::string& name = n.op().attrs[i].name;
    if (n.extra_attrs().count(name)) continue;  // the extra attribute holds its full form
    auto message = SerializeAttr(n.attrs()[i]);
    if (!message.ok()) return OfNode(n, Prefix(message.status(), StrCat(n.title(), ": attribute '", name, "':")));
    out->attrs.emplace(name, *std::move(message));
  }
  for (const auto& [name, message] : n.extra_attrs()) {
    if (name == "_class") continue;
    (name[0] == '_' ? out->extra_attrs : out->attrs).emplace(name, message);
  }
  return Status();
}

StatusOr<PieceNode> SendNode(std::string name, std::string value, const Meeting& meeting) {
  PieceNode n;
  n.name = std::move(name);
  n.op = "_Send";
  n.inputs = {std::move(value)};
  RETURN_IF_ERROR(SetMeeting(meeting, "T", &n));
  return n;
}

StatusOr<PieceNode> ReceiveNode(std::string name, const Meeting& meeting) {
  PieceNode n;
  n.name = std::move(name);
  n.op = "_Recv";
  RETURN_IF_ERROR(SetMeeting(meeting, "tensor_type", &n));
  return n;
}

StatusOr<PieceNode> NothingNode(std::string name, const Registry& registry) {
  PieceNode n;
  n.name = std::move(name);
  ASSIGN_OR_RETURN(const OpSchema* op, registry.FindRole("const"));
  n.op = op->name;
  const int64_t none = 0;
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(TW_FLOAT, &none, 1));
  ASSIGN_OR_RETURN(n.attrs["dtype"], SerializeAttr(AttrValue::Type(TW_FLOAT)));
  ASSIGN_OR_RETURN(n.attrs["value"], SerializeAttr(AttrValue::OfTensor(std::move(t))));
  return n;
}

}  // namespace thalweg::distributed
