#include "framework/graph/graph.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory_resource>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/local_memory.h"
#include "framework/base/shown.h"
#include "framework/graph/flow.h"
#include "framework/graph/folding_budget.h"
#include "framework/graph/function.h"
#include "framework/graph/function_shapes.h"
#include "framework/graph/known_sizes.h"
#include "framework/graph/resolve.h"
#include "framework/graph/shape_inference.h"
#include "thalweg/plugin/resource.h"

namespace thalweg {

std::string Edge::text() const {
  if (!node) return "(none)";
  return port == 0 ? node->name() : StrCat(node->name(), ":", port);
}

Node Node::StandIn(const OpSchema* op, std::string name, std::vector<Edge> inputs, std::vector<uint32_t> types, std::vector<Shape> shapes) {
  Node n;
  n.id_ = -1;
  n.name_ = std::move(name);
  n.schema_ = op;
  n.inputs_ = std::move(inputs);
  n.types_ = std::move(types);
  n.shapes_ = std::move(shapes);
  n.values_.resize(n.shapes_.size());
  auto rare = std::make_unique<Rare>();
  for (uint32_t i = 0; i <= n.inputs_.size(); ++i) rare->in_at.push_back(i);
  for (uint32_t o = 0; o <= n.shapes_.size(); ++o) rare->out_at.push_back(o);
  n.rare_ = std::move(rare);
  return n;
}

std::string NodeTitle(std::string_view op, std::string_view name, std::string_view place) {
  return StrCat(Shown(op), name.empty() ? "" : StrCat(" '", Shown(name), "'"), place.empty() ? "" : StrCat(" (made at ", place, ")"));
}

const AttrValue* Node::FindAttr(std::string_view attr) const {
  int i = schema_->FindAttr(attr);
  return i < 0 ? nullptr : &attrs_[size_t(i)];
}

void Node::FillC(CAttrs* out) const {
  out->Reserve(attrs_.size());
  for (size_t i = 0; i < attrs_.size(); ++i) out->Add(schema_->attrs[i].name, attrs_[i]);
}

namespace {

// The permitted positions of each byte in a node name. A leading underscore is for nodes that the
// runtime makes; imported graphs may contain such names.
enum : uint8_t { kInner = 1, kFirst = 2 };
constexpr std::array<uint8_t, 256> NameBytes() {
  std::array<uint8_t, 256> may{};
  for (const auto& [from, to] : {std::pair('a', 'z'), {'A', 'Z'}, {'0', '9'}}) {
    for (int c = from; c <= to; ++c) may[size_t(c)] = kInner | kFirst;
  }
  for (char c : {'_', '.', '>'}) may[size_t(c)] = kInner | kFirst;
  for (char c : {'\\', '-', '/'}) may[size_t(c)] = kInner;
  return may;
}
constexpr std::array<uint8_t, 256> kNameBytes = NameBytes();

}  // namespace

bool IsNodeName(std::string_view s) {
  if (s.empty() || !(kNameBytes[uint8_t(s[0])] & kFirst)) return false;
  return std::all_of(s.begin(), s.end(), [](char c) { return (kNameBytes[uint8_t(c)] & kInner) != 0; });
}

namespace {

// Shape rules need small values only; larger constants are left to the planner's folding.
constexpr int64_t kSmallValue = 1024;

// Gives the names of nodes to the index.
struct NameOf {
  const std::vector<std::unique_ptr<Node>>& nodes;
  std::string_view operator()(int32_t id) const { return nodes[size_t(id)]->name(); }
};

bool WorthKnowing(const std::vector<Shape>& shapes) {
  for (const Shape& s : shapes) {
    if (!s.known()) return true;  // data-dependent shape: only execution tells it; the inputs are small, and so is the result
    auto n = CountElements(s.dims().data(), s.rank());
    if (!n.ok() || *n > kSmallValue) return false;
  }
  return true;
}

}  // namespace

Graph::Graph(std::shared_ptr<GraphHost> host)
    : host_(std::move(host)),
      container_(host_->NewContainer()),
      own_functions_(std::make_shared<FunctionLibrary>(this)),
      functions_(own_functions_),
      folding_(std::make_unique<FoldingBudget>()) {}
Graph::~Graph() { host_->EndContainer(container_); }

// A function owns its body and the library owns its functions, so a body must not own the library.
std::shared_ptr<Graph> Graph::Body(const Graph& outer) {
  auto body = std::make_shared<Graph>(outer.host_);
  body->functions_ = outer.functions_;
  body->own_functions_.reset();
  return body;
}

StatusOr<const Node*> Graph::AddNode(NodeSpec spec) {
  const bool unnamed = spec.name.empty();
  if (unnamed) spec.name = UniqueName(spec.op);
  auto added = FindOpAndAdd(&spec);
  if (added.ok()) return added;
  if (unnamed) {
    std::unique_lock lock(mu_);
    reserved_.erase(spec.name);
  }
  return OfNode(spec.name, spec.place, added.status());
}

StatusOr<const Node*> Graph::AddNode(const OpSchema& op, std::vector<AttrValue> attrs, NodeSpec spec) {
  auto added = CheckAndAdd(op, std::move(attrs), &spec);
  return added.ok() ? added : OfNode(spec.name, spec.place, added.status());
}

StatusOr<const Node*> Graph::FindOpAndAdd(NodeSpec* spec) {
  const auto title = [spec] { return NodeTitle(spec->op, spec->name, spec->place) + ":"; };
  const OpSchema* op = host_->FindOp(spec->op);
  if (!op) {
    return NotFound(title(), " no loaded plugin defines op '", Shown(spec->op), "'; load the plugin that does, or check the spelling",
                    host_->MeantOp(spec->op));
  }
  auto attrs = InSchemaOrder(*op, std::move(spec->attrs));
  if (!attrs.ok()) return Prefix(attrs.status(), title());
  return CheckAndAdd(*op, *std::move(attrs), spec);
}

// Takes the name last, when nothing else can fail.
StatusOr<const Node*> Graph::CheckAndAdd(const OpSchema& op, std::vector<AttrValue> attrs, NodeSpec* spec) {
  auto node = std::make_unique<Node>();
  node->schema_ = &op;
  Status s = Resolve(std::move(attrs), spec, node.get());
  if (s.ok()) s = Infer(spec->name, node.get());
  if (s.ok() && spec->handle.known()) node->handles_.assign(1, std::move(spec->handle));
  if (s.ok() && spec->shape.has_rank() && op.role == "recv") node->shapes_[0] = std::move(spec->shape);
  if (s.ok() && !op.runs_as.empty()) s = Lower(node.get());
  if (s.ok() && FlowOf(*node) == Flow::kMerge) PrepareMerge(node.get());
  if (!s.ok()) return Prefix(s, NodeTitle(op.name, spec->name, spec->place) + ":");
  return Insert(std::move(node), spec);
}

// Resolves inputs, attributes and types.
Status Graph::Resolve(std::vector<AttrValue> attrs, NodeSpec* spec, Node* node) const {
  LocalMemory<256> memory;
  std::pmr::vector<uint32_t> in_types(memory.get());
  in_types.reserve(spec->inputs.size());
  for (size_t i = 0; i < spec->inputs.size(); ++i) {
    const Edge& e = spec->inputs[i];
    if (!e.node) return InvalidArgument("input ", i, " is missing");
    if (e.port < 0 || e.port >= e.node->n_out()) {
      return InvalidArgument("input ", i, " is output ", e.port, " of '", Shown(e.node->name()), "', which has ", e.node->n_out());
    }
    in_types.push_back(e.node->out_type(e.port));
  }
  ASSIGN_OR_RETURN(ResolvedNode resolved, ResolveNode(*node->schema_, in_types, std::move(attrs)));
  node->attrs_ = std::move(resolved.attrs);
  node->types_ = std::move(resolved.types);
  node->inputs_ = std::move(spec->inputs);
  node->controls_ = std::move(spec->controls);
  node->device_ = std::move(spec->device);
  if (spec->extra_attrs.empty() && spec->unknown_fields.empty() && spec->colocate_with.empty() && resolved.in_at.empty() &&
      resolved.out_at.empty() && node->schema_->runs_as.empty()) {
    return Status();
  }
  node->rare_ = std::make_unique<Node::Rare>();
  node->rare_->extra = std::move(spec->extra_attrs);
  node->rare_->unknown = std::move(spec->unknown_fields);
  node->rare_->colocate = std::move(spec->colocate_with);
  node->rare_->in_at = std::move(resolved.in_at);
  node->rare_->out_at = std::move(resolved.out_at);
  return Status();
}

// Infers shapes, handles and values.
Status Graph::Infer(std::string_view name, Node* node) const {
  const uint32_t n_in = uint32_t(node->inputs_.size()), n_out = uint32_t(node->types_.size()) - n_in;
  CAttrs attrs;
  node->FillC(&attrs);
  LocalMemory<512> memory;
  std::pmr::vector<tw_shape> in_shapes(n_in, memory.get());
  std::pmr::vector<const tw_view*> values(n_in, memory.get());
  std::pmr::vector<const HandleInfo*> handles(n_in, memory.get());
  for (uint32_t i = 0; i < n_in; ++i) {
    const Edge& e = node->inputs_[i];
    in_shapes[i] = e.node->shape(e.port).c();
    handles[i] = &e.node->handle(e.port);
    if (const Tensor& v = e.node->value(e.port)) values[i] = &v.view();
  }
  ShapeQuery query;
  query.op = node->schema_;
  query.node = name;
  query.attrs = &attrs;
  query.types = node->types_.data();
  query.in_at = node->in_at().data();
  query.out_at = node->out_at().data();
  query.n_in = n_in;
  query.n_out = n_out;
  query.in = in_shapes.data();
  query.values = values.data();
  query.handles = handles.data();
  ShapeAnswer answer;
  RETURN_IF_ERROR(InferShapes(query, &answer));
  AddKnownSizes(*host_, *folding_, *node, query, &answer);
  node->shapes_ = std::move(answer.shapes);
  const bool handled = std::any_of(answer.handles.begin(), answer.handles.end(), [](const HandleInfo& h) { return h.known(); });
  if (handled) node->handles_ = std::move(answer.handles);
  node->values_.resize(n_out);
  if (CallsFunctions(*node->schema_)) {
    if (const auto library = functions()) RETURN_IF_ERROR(AskFunctions(library.get(), *node, &node->shapes_));
  }
  return SetValues(node, in_shapes);
}

// Sets the values of constants and of nodes that follow from constants.
Status Graph::SetValues(Node* node, std::span<const tw_shape> in_shapes) const {
  const OpSchema& op = *node->schema_;
  if (op.role == "const") {
    const Tensor& t = node->FindAttr("value")->tensors()[0];
    if (t.dtype() != node->out_type(0)) {
      return InvalidArgument("the value is ", DTypeName(t.dtype()), " but 'dtype' says ", DTypeName(node->out_type(0)));
    }
    node->shapes_[0] = t.shape();
    node->values_[0] = t;
    return Status();
  }
  if (op.name == "PlaceholderWithDefault") return Status();  // a run may feed another value than its default
  if (op.stateful || op.once || node->shapes_.empty() || node->inputs_.empty() || !WorthKnowing(node->shapes_)) return Status();
  LocalMemory<128> memory;
  std::pmr::vector<Tensor> constants(memory.get());
  constants.reserve(node->inputs_.size());
  for (const Edge& e : node->inputs_) constants.push_back(e.node->value(e.port));
  if (!CanEvaluate(op, node->in_at(), in_shapes, constants)) return Status();
  auto known = folding_->Evaluate(*host_, *node, in_shapes, constants);
  if (!known.ok()) return Status();  // not an error of the builder: the node will fail with the same message when it runs
  for (size_t o = 0; o < known->size(); ++o) {
    node->shapes_[o] = (*known)[o].shape();
    if ((*known)[o].count() <= uint64_t(kSmallValue)) node->values_[o] = (*known)[o];
  }
  return Status();
}

// Makes an auxiliary node that belongs to `origin`.
StatusOr<std::unique_ptr<Node>> Node::Beside(const Node* origin, const OpSchema& op, std::vector<Edge> inputs,
                                             const std::vector<uint32_t>& in_types, std::vector<AttrValue> attrs) {
  auto resolved = ResolveNode(op, in_types, std::move(attrs));
  if (!resolved.ok()) return Prefix(resolved.status(), StrCat("it runs as op ", op.name, ":"));
  auto n = std::make_unique<Node>();
  n->origin_ = origin;
  n->schema_ = &op;
  n->inputs_ = std::move(inputs);
  n->types_ = std::move(resolved->types);
  n->attrs_ = std::move(resolved->attrs);
  n->rare_ = std::make_unique<Rare>();
  n->rare_->in_at = std::move(resolved->in_at);
  n->rare_->out_at = std::move(resolved->out_at);
  n->values_.resize(n->types_.size() - in_types.size());
  return n;
}

StatusOr<const Node*> Graph::Beside(const Node& origin, std::string key, const OpSchema& op, std::vector<Edge> inputs,
                                    const std::vector<uint32_t>& in_types, std::vector<AttrValue> attrs) {
  std::unique_lock lock(mu_);
  std::unique_ptr<const Node>& known = beside_[{&origin, std::move(key)}];
  if (known) return known.get();
  auto made = Node::Beside(&origin, op, std::move(inputs), in_types, std::move(attrs));
  if (!made.ok()) return Prefix(made.status(), origin.title() + ":");
  (*made)->shapes_.resize((*made)->values_.size());
  known = *std::move(made);
  return known.get();
}

// Makes the node that plans run in place of a node with references, and the readers of its
// reference outputs.
Status Graph::Lower(Node* node) const {
  const OpSchema* op = host_->FindOp(node->schema_->runs_as);
  if (!op) return NotFound("it runs as op '", node->schema_->runs_as, "', which no loaded plugin defines; load the plugin that does");
  std::vector<uint32_t> in_types, out_types;
  bool given = false;  // the references are those of inputs, which are passed through
  for (int32_t i = 0; i < node->n_in(); ++i) {
    given = given || IsRef(node->in_type(i));
    in_types.push_back(IsRef(node->in_type(i)) ? uint32_t{TW_RESOURCE} : node->in_type(i));
  }
  if (!given && node->n_out() != 1) return Unimplemented("it makes a reference, but has ", node->n_out(), " outputs; it may have no other");
  std::vector<AttrValue> attrs;
  for (const AttrSpec& a : op->attrs) {
    const AttrValue* same = node->FindAttr(a.name);
    // An op on values of any type treats the handles as values.
    for (size_t k = 0; same && k < op->inputs.size() && k < node->op().inputs.size(); ++k) {
      if (op->inputs[k].type_attr == a.name && node->op().inputs[k].ref) same = nullptr;
    }
    attrs.push_back(same ? *same : AttrValue());
  }
  ASSIGN_OR_RETURN(auto runs, Node::Beside(node, *op, node->inputs_, in_types, std::move(attrs)));
  const bool hands_on = given && runs->n_in() + node->n_out() > int32_t(runs->types_.size());  // otherwise it returns handles
  for (int32_t o = 0; o < node->n_out(); ++o) {
    const bool ref = IsRef(node->out_type(o));
    if (ref && hands_on) continue;
    out_types.push_back(ref ? uint32_t{TW_RESOURCE} : node->out_type(o));
    runs->shapes_.push_back(ref ? Shape(std::vector<int64_t>{}) : node->shape(o));
    const bool variable = ref && (given || op->outputs[0].resource == TW_VARIABLE_TYPE);
    runs->handles_.push_back(variable ? HandleInfo{BaseType(node->out_type(o)), node->shape(o)} : HandleInfo());
  }
  if (!std::equal(out_types.begin(), out_types.end(), runs->types_.begin() + node->n_in(), runs->types_.end())) {
    return InvalidArgument("it runs as op ", op->name, ", whose outputs are not its own");
  }
  node->rare_->runs_as = std::move(runs);
  return AddReads(node);
}

Status Graph::AddReads(Node* node) const {
  node->rare_->reads.resize(size_t(node->n_out()));
  for (int32_t o = 0; o < node->n_out(); ++o) {
    if (!IsRef(node->out_type(o))) continue;
    ASSIGN_OR_RETURN(const OpSchema* op, host_->FindRole("read_variable"));
    std::vector<AttrValue> attrs(op->attrs.size());
    if (const int type = op->FindAttr(op->outputs[0].type_attr); type >= 0) {
      attrs[size_t(type)] = AttrValue::Type(BaseType(node->out_type(o)));
    }
    ASSIGN_OR_RETURN(auto read, Node::Beside(node, *op, {Edge{node, o}}, {TW_RESOURCE}, std::move(attrs)));
    read->shapes_ = {node->shape(o)};
    node->rare_->reads[size_t(o)] = std::move(read);
  }
  return Status();
}

// The value that comes back round the loop may have another shape than the one that enters.
void Graph::PrepareMerge(Node* node) {
  if (!node->rare_) node->rare_ = std::make_unique<Node::Rare>();
  node->rare_->back = std::make_unique<std::atomic<const Node*>[]>(node->inputs_.size());
  for (const Edge& e : node->inputs_) {
    if (FlowOf(*e.node) != Flow::kEnter) continue;
    node->shapes_[0] = Shape();
    node->handles_.clear();
  }
}

Status Graph::CloseLoop(const Node* merge, int32_t input, const Node* next) {
  if (!merge || FlowOf(*merge) != Flow::kMerge) {
    return InvalidArgument(merge ? merge->title() : "no node", ": only a Merge takes the value of a NextIteration");
  }
  std::unique_lock lock(mu_);
  const auto fails = [&](Status s) { return OfNode(*merge, Prefix(s, merge->title() + ":")); };
  const auto mine = [&](const Node* n) { return size_t(n->id()) < nodes_.size() && nodes_[size_t(n->id())].get() == n; };
  if (input < 0 || input >= merge->n_in()) return fails(InvalidArgument("there is no input ", input, "; it has ", merge->n_in()));
  if (!next || FlowOf(*next) != Flow::kNextIteration) {
    return fails(InvalidArgument("input ", input, " is to be closed with ", next ? next->title() : "nothing", "; give a NextIteration"));
  }
  if (!mine(merge) || !mine(next)) return fails(InvalidArgument("the Merge and ", next->title(), " must be of this graph"));
  if (next->out_type(0) != merge->in_type(input)) {
    return fails(InvalidArgument("input ", input, " is ", DTypeName(merge->in_type(input)), ", but ", next->title(), " is ",
                                 DTypeName(next->out_type(0))));
  }
  if (const Node* other = merge->back(input))
    return fails(FailedPrecondition("input ", input, " is closed with ", other->title(), " already"));
  int32_t open = 0;
  for (int32_t i = 0; i < merge->n_in(); ++i) open += merge->back(i) == nullptr;
  if (open == 1) return fails(FailedPrecondition("all other inputs come from a NextIteration; one must come from without"));
  merge->rare_->back[size_t(input)].store(next, std::memory_order_release);
  return Status();
}

StatusOr<const Node*> Graph::Insert(std::unique_ptr<Node> node, NodeSpec* spec) {
  std::unique_lock lock(mu_);
  const auto title = [&] { return NodeTitle(node->op().name, spec->name, spec->place) + ":"; };
  if (!IsNodeName(spec->name)) {
    return InvalidArgument(title(), " '", Shown(spec->name),
                           "' is not a node name; use letters, digits and _ . - / >, starting with a letter or digit");
  }
  if (FindLocked(spec->name)) return AlreadyExists(title(), " the graph has a node of that name; choose another");
  by_name_.Reserve(nodes_.size() + 1);
  const auto hold = [this](const Node* n) {
    if (auto used = n ? n->op().in_graphs.lock() : nullptr) plugins_.insert(std::move(used));
  };
  hold(node.get());
  hold(node->runs_as());
  for (const auto& read : node->rare().reads) hold(read.get());
  node->name_ = std::move(spec->name);
  node->imported_ = spec->imported;
  if (spec->imported) has_imported_.store(true, std::memory_order_release);
  node->id_ = int32_t(nodes_.size());
  node->place_ = PlaceLocked(spec->place);
  const Node* added = node.get();
  nodes_.push_back(std::move(node));
  by_name_.FindOrAdd(added->name_, added->id_, NameOf{nodes_});
  reserved_.erase(added->name_);
  return added;
}

Status Graph::Adopt(Graph* from, const GraphExtras& extras) {
  std::scoped_lock lock(mu_, from->mu_);
  for (const auto& n : from->nodes_) {
    if (!FindLocked(n->name_)) continue;
    return OfNode(*n, AlreadyExists(n->title(), ": the graph has a node of that name; import under a prefix"));
  }
  const bool first = nodes_.empty();  // then the nodes keep their numbers, and the name index stays valid
  // Everything that may run out of memory comes first.
  nodes_.reserve(nodes_.size() + from->nodes_.size());
  if (!first) by_name_.Reserve(nodes_.size() + from->nodes_.size());
  plugins_.insert(from->plugins_.begin(), from->plugins_.end());
  GraphExtras both = extras_;
  // Both parts must keep their meaning: that of the older writer, for readers that both accept.
  both.producer = nodes_.empty() ? extras.producer : std::min(both.producer, extras.producer);
  both.min_consumer = std::max(both.min_consumer, extras.min_consumer);
  for (int32_t v : extras.bad_consumers) {
    if (std::find(both.bad_consumers.begin(), both.bad_consumers.end(), v) == both.bad_consumers.end()) both.bad_consumers.push_back(v);
  }
  both.library += extras.library;  // concatenated messages are one message
  both.unknown_fields += extras.unknown_fields;

  std::swap(extras_, both);
  if (from->has_imported() || !extras.library.empty()) has_imported_.store(true, std::memory_order_release);
  for (auto& n : from->nodes_) {
    n->place_ = PlaceLocked(n->place());
    n->id_ = int32_t(nodes_.size());
    nodes_.push_back(std::move(n));
    if (!first) by_name_.FindOrAdd(nodes_.back()->name_, nodes_.back()->id_, NameOf{nodes_});
  }
  extended_.merge(from->extended_);
  replaced_.merge(from->replaced_);
  if (!extended_.empty()) has_extended_.store(true, std::memory_order_release);
  if (!replaced_.empty()) has_replaced_.store(true, std::memory_order_release);
  if (first) std::swap(by_name_, from->by_name_);
  from->by_name_.Clear();
  from->nodes_.clear();
  return Status();
}

// Returns the graph's copy of the text; NULL for "". REQUIRES: mu_ is held.
const std::string* Graph::PlaceLocked(std::string_view place) { return place.empty() ? nullptr : &*places_.emplace(place).first; }

GraphExtras Graph::extras() const {
  std::shared_lock lock(mu_);
  return extras_;
}

StatusOr<Edge> Graph::AddArgument(const Edge& like, std::string name, std::string_view place) {
  ASSIGN_OR_RETURN(const OpSchema* op, host_->FindRole("placeholder"));
  NodeSpec spec;
  spec.op = op->name;
  spec.name = std::move(name);
  spec.attrs["dtype"] = AttrValue::Type(BaseType(like.node->out_type(like.port)));
  spec.attrs["shape"] = AttrValue::OfShape(like.node->shape(like.port));
  spec.handle = like.node->handle(like.port);
  spec.place = place;
  ASSIGN_OR_RETURN(const Node* n, AddNode(std::move(spec)));
  return Edge{n, 0};
}

StatusOr<Edge> Graph::AddConst(const Tensor& value, std::string name, std::string_view place) {
  ASSIGN_OR_RETURN(const OpSchema* op, host_->FindRole("const"));
  NodeSpec spec;
  spec.op = op->name;
  spec.name = name.empty() ? UniqueName("Const") : std::move(name);
  spec.attrs["dtype"] = AttrValue::Type(value.dtype());
  spec.attrs["value"] = AttrValue::OfTensor(value);
  spec.place = place;
  ASSIGN_OR_RETURN(const Node* n, AddNode(std::move(spec)));
  return Edge{n, 0};
}

void Graph::Extend(const Node* node, const Node* by) {
  std::unique_lock lock(mu_);
  extended_.emplace(node, by);
  has_extended_.store(true, std::memory_order_release);
}

const Node* Graph::ExtendedBy(const Node* node) const {
  if (!has_extended_.load(std::memory_order_acquire)) return nullptr;
  std::shared_lock lock(mu_);
  auto it = extended_.find(node);
  return it == extended_.end() ? nullptr : it->second;
}

void Graph::Replace(const Edge& value, const Edge& by) {
  std::unique_lock lock(mu_);
  replaced_.emplace(std::pair(value.node, value.port), by);
  has_replaced_.store(true, std::memory_order_release);
}

Edge Graph::ReplacedBy(const Edge& value) const {
  if (!has_replaced()) return {};
  std::shared_lock lock(mu_);
  auto it = replaced_.find(std::pair(value.node, value.port));
  return it == replaced_.end() ? Edge() : it->second;
}

const Node* Graph::Find(std::string_view name) const {
  std::shared_lock lock(mu_);
  return FindLocked(name);
}

// REQUIRES: mu_ is held.
const Node* Graph::FindLocked(std::string_view name) const {
  const int32_t id = by_name_.Find(name, NameOf{nodes_});
  return id == NameIndex::kNone ? nullptr : nodes_[size_t(id)].get();
}

StatusOr<Edge> Graph::FindEdge(std::string_view text) const {
  std::string_view name = text;
  int64_t port = 0;
  if (size_t colon = text.rfind(':'); colon != text.npos) {
    name = text.substr(0, colon);
    std::string digits(text.substr(colon + 1));
    if (digits.empty() || digits.size() > 5 ||
        !std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); })) {
      return InvalidArgument("'", Shown(text), "' is not a tensor name; write 'node' or 'node:1'");
    }
    port = std::stol(digits);
  }
  const Node* n = Find(name);
  if (!n) return NotFound("the graph has no node '", Shown(name), "'");
  if (port >= n->n_out())
    return InvalidArgument("'", Shown(text), "': node '", Shown(name), "' has ", n->n_out(), n->n_out() == 1 ? " output" : " outputs");
  return Edge{n, int32_t(port)};
}

int32_t Graph::size() const {
  std::shared_lock lock(mu_);
  return int32_t(nodes_.size());
}

const Node* Graph::node(int32_t id) const {
  std::shared_lock lock(mu_);
  return nodes_[size_t(id)].get();
}

std::string Graph::UniqueName(std::string_view base) const {
  std::unique_lock lock(mu_);
  std::string name = UniqueNameLocked(base);
  reserved_.insert(name);
  return name;
}

std::string Graph::UniqueNameLocked(std::string_view base) const {
  std::string name(base);
  auto taken = [&] { return FindLocked(name) || reserved_.count(name); };
  if (!taken()) return name;
  for (int& i = next_suffix_[name];;) {
    name = StrCat(base, "_", ++i);
    if (!taken()) return name;
  }
}

}  // namespace thalweg
