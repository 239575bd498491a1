#include "distributed/piece.h"

#include "distributed/wire.h"
#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/function.h"
#include "framework/proto/wire.h"
#include "framework/runtime/runtime.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kMostSplat = uint64_t{1} << 30;  // bytes that repeated elements may expand to
constexpr size_t kMapEntry = 64 + 2 * sizeof(std::string);
constexpr size_t kLeastNode = 9 * sizeof(uint32_t);  // bytes of a node in a message: four texts, three lists, two maps

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
  for (uint32_t i = 0; i < n && from->Take(kMapEntry); ++i) {
    std::string name = from->KeptText();
    all.emplace(std::move(name), from->KeptText());
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
  for (std::string* s : {&n.name, &n.op, &n.device, &n.place}) *s = from->KeptText();
  for (auto* list : {&n.inputs, &n.controls, &n.colocate_with}) *list = from->Texts();
  n.attrs = GetMap(from);
  n.extra_attrs = GetMap(from);
  return n;
}

// Returns the bytes of an attribute's message that are tensor elements, which take as many in
// memory. The rest expands: two bytes are an empty shape, or a string.
uint64_t PlainBytes(std::string_view message) {
  constexpr uint32_t kAttrTensor = 8, kTensorContent = 4;
  uint64_t plain = 0;
  ::thalweg::WireReader attr(message);
  for (WireField f; attr.Next(&f);) {
    if (f.number != kAttrTensor || f.type != WireField::kBytes) continue;
    ::thalweg::WireReader tensor(f.bytes);
    for (WireField part; tensor.Next(&part);) {
      if (part.number == kTensorContent && part.type == WireField::kBytes) plain += part.bytes.size();
    }
  }
  return plain;
}

class Adder {
 public:
  Adder(bool imported, Graph* graph, MemoryBudget* budget, Meter* kept) : imported_(imported), graph_(graph), budget_(budget), kept_(kept) {
    if (budget_) splat_.may = [this](uint64_t bytes) { return budget_->Check(bytes); };
  }

  Status Add(const PieceNode& n) {
    RETURN_IF_ERROR(Pay(n));
    return AddPaid(n);
  }

 private:
  // Charges the approximate memory of a node in a graph and its plans: a fixed part, and its names
  // in both.
  Status Pay(const PieceNode& n) {
    constexpr uint64_t kNode = 2048, kEdge = 64, kExtraAttr = 128;
    if (!kept_) return Status();
    uint64_t bytes = kNode + 3 * n.name.size() + n.device.size() + n.place.size();
    bytes += kEdge * (n.inputs.size() + n.controls.size() + n.colocate_with.size());
    for (const std::string& other : n.colocate_with) bytes += other.size();
    for (const auto& [name, message] : n.extra_attrs) bytes += kExtraAttr + name.size() + message.size();
    return kept_->Take(bytes) ? Status() : Prefix(kept_->status(), StrCat(n.op, " '", Shown(n.name), "':"));
  }

  Status AddPaid(const PieceNode& n) {
    const OpSchema* op = graph_->host().FindOp(n.op);
    NodeSpec spec;
    spec.name = n.name;
    spec.op = n.op;
    if (!op) return graph_->AddNode(std::move(spec)).status();  // reports the unknown op and the remedy
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
    auto value = Parse(message, op.attrs[size_t(at)], &whole);
    if (!value.ok()) return Prefix(value.status(), StrCat(n.op, " '", Shown(n.name), "': attribute '", Shown(name), "':"));
    (*values)[size_t(at)] = *std::move(value);
    if (!whole) spec->extra_attrs.emplace(name, message);
    return Status();
  }

  // Charges the message while it is parsed; charges its value for as long as the value lives.
  StatusOr<AttrValue> Parse(const std::string& message, const AttrSpec& spec, bool* whole) {
    constexpr size_t kShort = 32;
    constexpr uint64_t kOfShort = 256, kRead = 32, kKept = 16;  // bytes; multiples of the message's bytes
    if (!budget_) return ParseAttr(message, spec, &splat_, whole);
    const uint64_t plain = message.size() <= kShort ? message.size() : PlainBytes(message), other = message.size() - plain;
    if (!kept_->Take(message.size() <= kShort ? kOfShort : kKept * other)) return kept_->status();
    Meter read(budget_);
    if (message.size() > kShort && !read.Take(3 * plain + kRead * other)) return read.status();
    ASSIGN_OR_RETURN(AttrValue value, ParseAttr(message, spec, &splat_, whole));
    if (value.kind() == TW_ATTR_TENSOR) {
      for (const Tensor& t : value.tensors()) RETURN_IF_ERROR(budget_->Charge(t.get()));
    }
    return value;
  }

  const bool imported_;
  Graph* const graph_;
  MemoryBudget* const budget_;
  Meter* const kept_;
  SplatBudget splat_{kMostSplat, {}};
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

StatusOr<PieceMessage> PieceMessage::Get(std::string_view bytes, Meter* meter) {
  WireReader r(bytes, meter);
  PieceMessage m;
  const auto texts = [&r](std::initializer_list<std::string*> all) {
    for (std::string* text : all) *text = r.KeptText();
  };
  m.library = r.KeptText();
  const uint32_t nodes = r.Room(&m.nodes, kLeastNode);
  for (uint32_t i = 0; i < nodes && r.ok(); ++i) m.nodes.push_back(GetNode(&r));
  const uint32_t loops = r.Room(&m.loops, 3 * sizeof(uint32_t));
  for (uint32_t i = 0; i < loops && r.ok(); ++i) {
    PieceLoop& l = m.loops.emplace_back();
    texts({&l.merge, &l.next});
    l.input = r.Number<int32_t>();
  }
  const uint32_t extended = r.Room(&m.extended, 2 * sizeof(uint32_t));
  for (uint32_t i = 0; i < extended && r.ok(); ++i) {
    auto& [node, by] = m.extended.emplace_back();
    texts({&node, &by});
  }
  for (auto* list : {&m.feeds, &m.fetches, &m.targets}) *list = r.Texts();
  const uint32_t sources = r.Room(&m.sources, 3 * sizeof(uint32_t) + sizeof(uint64_t));
  for (uint32_t i = 0; i < sources && r.ok(); ++i) {
    PieceSource& s = m.sources.emplace_back();
    texts({&s.key, &s.address, &s.title});
    s.incarnation = r.Number<uint64_t>();
  }
  if (r.ok() && !r.rest().empty()) m.over = r.Texts();
  if (r.ok() && !r.rest().empty()) {
    const uint32_t sinks = r.Room(&m.sinks, 3 * sizeof(uint32_t) + sizeof(uint64_t) + 1);
    for (uint32_t i = 0; i < sinks && r.ok(); ++i) {
      PieceSink& s = m.sinks.emplace_back();
      texts({&s.key, &s.address, &s.title});
      s.incarnation = r.Number<uint64_t>();
      s.carried = r.Number<uint8_t>() != 0;
    }
    m.pushed = r.Texts();
  }
  RETURN_IF_ERROR(r.End("a piece of a graph"));
  return m;
}

Status AddPiece(const PieceMessage& piece, bool imported, Graph* graph, MemoryBudget* budget, Meter* kept) {
  // Functions are stored as bytes until they are called; then they become nodes, in a graph, and in
  // plans.
  constexpr uint64_t kOfFunctions = 24;
  if (kept && !kept->Take(kOfFunctions * piece.library.size())) return Prefix(kept->status(), "functions:");
  if (!piece.library.empty()) RETURN_IF_ERROR(graph->functions()->Store(piece.library));
  Adder adder(imported, graph, budget, kept);
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
