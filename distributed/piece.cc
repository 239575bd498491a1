#include "distributed/piece.h"

#include "distributed/wire.h"
#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/function.h"
#include "framework/runtime/runtime.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kMostSplat = uint64_t{1} << 30;  // bytes that repeated elements may grow to

void PutMap(const std::map<std::string, std::string>& all, WireWriter* to) {
  to->Number(uint32_t(all.size()));
  for (const auto& [name, value] : all) {
    to->Text(name);
    to->Text(value);
  }
}

std::map<std::string, std::string> GetMap(WireReader* from) {
  std::map<std::string, std::string> all;
  const uint32_t n = from->Count(2 * sizeof(uint32_t));
  for (uint32_t i = 0; i < n && from->ok(); ++i) {
    const std::string_view name = from->Text();
    all.emplace(name, from->Text());
  }
  return all;
}

void PutNode(const PieceNode& n, WireWriter* to) {
  for (const std::string* s : {&n.name, &n.op, &n.device, &n.place}) to->Text(*s);
  for (const auto* list : {&n.inputs, &n.controls, &n.colocate_with}) to->Texts(*list);
  PutMap(n.attrs, to);
  PutMap(n.extra_attrs, to);
}

PieceNode GetNode(WireReader* from) {
  PieceNode n;
  for (std::string* s : {&n.name, &n.op, &n.device, &n.place}) *s = from->Text();
  for (auto* list : {&n.inputs, &n.controls, &n.colocate_with}) *list = from->Texts();
  n.attrs = GetMap(from);
  n.extra_attrs = GetMap(from);
  return n;
}

class Adder {
 public:
  Adder(bool imported, Graph* graph) : imported_(imported), graph_(graph) {}

  Status Add(const PieceNode& n) {
    const OpSchema* op = graph_->runtime().registry().FindOp(n.op);
    NodeSpec spec;
    spec.name = n.name;
    spec.op = n.op;
    if (!op) return graph_->AddNode(std::move(spec)).status();  // which says what to do about it
    spec.place = n.place;
    spec.device = n.device;
    spec.imported = imported_;
    for (const std::string& text : n.inputs) {
      ASSIGN_OR_RETURN(const Edge e, graph_->FindEdge(text));
      spec.inputs.push_back(e);
    }
    for (const std::string& name : n.controls) {
      const Node* node = graph_->Find(name);
      if (!node) return NotFound("node '", Shown(n.name), "' waits for '", Shown(name), "', which is not there");
      spec.controls.push_back(node);
    }
    for (const std::string& other : n.colocate_with) {
      if (graph_->Find(other)) spec.colocate_with.push_back(other);
    }
    std::vector<AttrValue> values(op->attrs.size());
    for (const auto& [name, message] : n.attrs) RETURN_IF_ERROR(SetAttr(n, *op, name, message, &values, &spec));
    for (const auto& [name, message] : n.extra_attrs) spec.extra_attrs.emplace(name, message);
    if (auto shape = n.extra_attrs.find(kReceivedShape); op->role == "recv" && shape != n.extra_attrs.end()) {
      ASSIGN_OR_RETURN(spec.shape, ShapeOf(n, shape->second));
    }
    return graph_->AddNode(*op, std::move(values), std::move(spec)).status();
  }

 private:
  StatusOr<Shape> ShapeOf(const PieceNode& n, const std::string& message) {
    AttrSpec kind;
    kind.kind = TW_ATTR_SHAPE;
    bool whole = false;
    const auto value = ParseAttr(message, kind, &splat_, &whole);
    if (value.ok() && value->kind() == TW_ATTR_SHAPE && !value->is_list()) return value->shapes()[0];
    return InvalidArgument(n.op, " '", Shown(n.name), "': attribute '", kReceivedShape, "' is no shape");
  }
  Status SetAttr(const PieceNode& n, const OpSchema& op, const std::string& name, const std::string& message,
                 std::vector<AttrValue>* values, NodeSpec* spec) {
    const int at = op.FindAttr(name);
    if (at < 0) {
      return InvalidArgument(n.op, " '", Shown(n.name), "': attribute '", Shown(name), "' is not there in op ", op.name, " of plugin '",
                             op.plugin, "' of this task; use one version of the plugin in all processes");
    }
    bool whole;
    auto value = ParseAttr(message, op.attrs[size_t(at)], &splat_, &whole);
    if (!value.ok()) return Prefix(value.status(), StrCat(n.op, " '", Shown(n.name), "': attribute '", Shown(name), "':"));
    (*values)[size_t(at)] = *std::move(value);
    if (!whole) spec->extra_attrs.emplace(name, message);
    return Status();
  }

  const bool imported_;
  Graph* const graph_;
  SplatBudget splat_{kMostSplat};
};

StatusOr<const Node*> Need(const Graph& graph, const std::string& name) {
  const Node* node = graph.Find(name);
  if (node) return node;
  return NotFound("there is no node '", Shown(name), "'");
}

}  // namespace

std::string PieceMessage::Put() const {
  WireWriter w;
  w.Text(library);
  w.Number(uint32_t(nodes.size()));
  for (const PieceNode& n : nodes) PutNode(n, &w);
  w.Number(uint32_t(loops.size()));
  for (const PieceLoop& l : loops) {
    w.Text(l.merge);
    w.Text(l.next);
    w.Number(l.input);
  }
  w.Number(uint32_t(extended.size()));
  for (const auto& [node, by] : extended) {
    w.Text(node);
    w.Text(by);
  }
  for (const auto* list : {&feeds, &fetches, &targets}) w.Texts(*list);
  w.Number(uint32_t(sources.size()));
  for (const PieceSource& s : sources) {
    for (const std::string* text : {&s.key, &s.address, &s.title}) w.Text(*text);
    w.Number(s.incarnation);
  }
  const bool pushes = !sinks.empty() || !pushed.empty();
  if (!over.empty() || pushes) w.Texts(over);
  if (!pushes) return w.Take();
  w.Number(uint32_t(sinks.size()));
  for (const PieceSink& s : sinks) {
    for (const std::string* text : {&s.key, &s.address, &s.title}) w.Text(*text);
    w.Number(s.incarnation);
    w.Number(uint8_t{s.carried});
  }
  w.Texts(pushed);
  return w.Take();
}

StatusOr<PieceMessage> PieceMessage::Get(std::string_view bytes) {
  WireReader r(bytes);
  PieceMessage m;
  m.library = r.Text();
  const uint32_t nodes = r.Count(sizeof(uint32_t));
  for (uint32_t i = 0; i < nodes && r.ok(); ++i) m.nodes.push_back(GetNode(&r));
  const uint32_t loops = r.Count(sizeof(uint32_t));
  for (uint32_t i = 0; i < loops && r.ok(); ++i) {
    PieceLoop& l = m.loops.emplace_back();
    l.merge = r.Text();
    l.next = r.Text();
    l.input = r.Number<int32_t>();
  }
  const uint32_t extended = r.Count(sizeof(uint32_t));
  for (uint32_t i = 0; i < extended && r.ok(); ++i) {
    auto& [node, by] = m.extended.emplace_back();
    node = r.Text();
    by = r.Text();
  }
  for (auto* list : {&m.feeds, &m.fetches, &m.targets}) *list = r.Texts();
  const uint32_t sources = r.Count(sizeof(uint32_t));
  for (uint32_t i = 0; i < sources && r.ok(); ++i) {
    PieceSource& s = m.sources.emplace_back();
    for (std::string* text : {&s.key, &s.address, &s.title}) *text = r.Text();
    s.incarnation = r.Number<uint64_t>();
  }
  if (r.ok() && !r.rest().empty()) m.over = r.Texts();
  if (r.ok() && !r.rest().empty()) {
    const uint32_t sinks = r.Count(3 * sizeof(uint32_t) + sizeof(uint64_t) + 1);
    for (uint32_t i = 0; i < sinks && r.ok(); ++i) {
      PieceSink& s = m.sinks.emplace_back();
      for (std::string* text : {&s.key, &s.address, &s.title}) *text = r.Text();
      s.incarnation = r.Number<uint64_t>();
      s.carried = r.Number<uint8_t>() != 0;
    }
    m.pushed = r.Texts();
  }
  RETURN_IF_ERROR(r.End("a piece of a graph"));
  return m;
}

Status AddPiece(const PieceMessage& piece, bool imported, Graph* graph) {
  if (!piece.library.empty()) RETURN_IF_ERROR(graph->functions()->Store(piece.library));
  Adder adder(imported, graph);
  for (const PieceNode& n : piece.nodes) RETURN_IF_ERROR(adder.Add(n));
  for (const PieceLoop& l : piece.loops) {
    ASSIGN_OR_RETURN(const Node* merge, Need(*graph, l.merge));
    ASSIGN_OR_RETURN(const Node* next, Need(*graph, l.next));
    RETURN_IF_ERROR(graph->CloseLoop(merge, l.input, next));
  }
  for (const auto& [name, other] : piece.extended) {
    ASSIGN_OR_RETURN(const Node* node, Need(*graph, name));
    ASSIGN_OR_RETURN(const Node* by, Need(*graph, other));
    if (!graph->ExtendedBy(node)) graph->Extend(node, by);
  }
  return Status();
}

}  // namespace thalweg::distributed
