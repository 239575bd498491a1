#include "builder.h"

#include <algorithm>

#include "fold.h"
#include "model.h"
#include "translators/table.h"

namespace thalweg::onnx {
namespace {

constexpr int kMostNested = 64;     // bodies and function calls
constexpr size_t kMostErrors = 20;  // that are listed

constexpr int64_t kMostNodes = 1 << 18;

// Counts the bodies and function calls around a node.
struct Deeper {
  explicit Deeper(Model& m) : model(m) {
    if (++model.depth <= kMostNested) return;
    --model.depth;
    throw Error{TW_INVALID_ARGUMENT, "bodies and functions are nested more than " + std::to_string(kMostNested) + " deep"};
  }
  ~Deeper() { --model.depth; }
  Model& model;
};

}  // namespace

// ---- Values ----

int64_t Value::dim(int axis) const {
  const int r = rank();
  if (r < 0) return -1;
  if (axis < 0) axis += r;
  return axis >= 0 && axis < r ? dims()[static_cast<size_t>(axis)] : -1;
}

bool Value::static_shape() const {
  return rank() >= 0 && std::all_of(dims().begin(), dims().end(), [](int64_t d) { return d >= 0; });
}

int64_t Value::count() const {
  if (!static_shape()) return -1;
  try {
    return CountOf(dims());
  } catch (const Error&) {
    return -1;
  }
}

// ---- Nodes ----

Node::Node(Builder& b, const proto::NodeProto& p, int64_t o) : proto(p), opset(o), b_(b) {
  for (const std::string& name : p.input()) in_.push_back(b.find(name));
}

const std::string& Node::type() const { return proto.op_type(); }

const Value& Node::in(size_t i) const {
  if (!has(i)) fail("input " + std::to_string(i) + " is absent");
  return in_[i];
}

size_t Node::outputs() const { return static_cast<size_t>(proto.output_size()); }
bool Node::wants(size_t i) const { return i < outputs() && !proto.output(static_cast<int>(i)).empty(); }

void Node::out(size_t i, Value v) {
  if (wants(i)) b_.set(proto.output(static_cast<int>(i)), std::move(v));
}

const proto::AttributeProto* Node::attr(std::string_view name) const {
  for (const proto::AttributeProto& a : proto.attribute()) {
    if (a.name() != name) continue;
    if (!a.has_ref_attr_name() || a.ref_attr_name().empty()) return &a;
    if (!b_.function_attrs) fail("attribute '" + a.name() + "' refers to an attribute of a function, but the node is in none");
    const auto found = b_.function_attrs->find(a.ref_attr_name());
    return found == b_.function_attrs->end() ? nullptr : found->second;
  }
  return nullptr;
}

namespace {

[[noreturn]] void Absent(const Node& n, std::string_view name) { n.fail("attribute '" + std::string(name) + "' is absent"); }

const proto::AttributeProto& Need(const Node& n, std::string_view name) {
  const proto::AttributeProto* a = n.attr(name);
  if (!a) Absent(n, name);
  return *a;
}

}  // namespace

int64_t Node::i(std::string_view name) const { return Need(*this, name).i(); }
int64_t Node::i(std::string_view name, int64_t otherwise) const {
  const proto::AttributeProto* a = attr(name);
  return a ? a->i() : otherwise;
}
double Node::f(std::string_view name) const { return Need(*this, name).f(); }
double Node::f(std::string_view name, double otherwise) const {
  const proto::AttributeProto* a = attr(name);
  return a ? a->f() : otherwise;
}
std::string Node::s(std::string_view name) const { return Need(*this, name).s(); }
std::string Node::s(std::string_view name, std::string_view otherwise) const {
  const proto::AttributeProto* a = attr(name);
  return a ? a->s() : std::string(otherwise);
}
std::vector<int64_t> Node::ints(std::string_view name) const { return ints(name, {}); }
std::vector<int64_t> Node::ints(std::string_view name, std::vector<int64_t> otherwise) const {
  const proto::AttributeProto* a = attr(name);
  return a ? std::vector<int64_t>(a->ints().begin(), a->ints().end()) : otherwise;
}
std::vector<double> Node::floats(std::string_view name) const {
  const proto::AttributeProto* a = attr(name);
  return a ? std::vector<double>(a->floats().begin(), a->floats().end()) : std::vector<double>();
}
std::vector<std::string> Node::strings(std::string_view name) const {
  const proto::AttributeProto* a = attr(name);
  return a ? std::vector<std::string>(a->strings().begin(), a->strings().end()) : std::vector<std::string>();
}
Tensor Node::tensor(std::string_view name) const {
  const proto::AttributeProto& a = Need(*this, name);
  if (a.has_sparse_tensor()) return TensorOf(a.sparse_tensor(), b_.model().file, b_.model().external);
  return TensorOf(a.t(), b_.model().file, b_.model().external);
}
const proto::GraphProto& Node::graph(std::string_view name) const {
  const proto::AttributeProto& a = Need(*this, name);
  if (!a.has_g()) fail("attribute '" + std::string(name) + "' is no graph");
  return a.g();
}

std::vector<int64_t> Node::const_ints(size_t i, const char* what) const {
  const Value& v = in(i);
  if (!v.constant()) unsupported(std::string(what) + " (input " + std::to_string(i) + ") must be constant");
  return v.constant()->integers();
}

std::optional<std::vector<int64_t>> Node::maybe_ints(size_t i) const {
  if (!has(i) || !in_[i].constant()) return std::nullopt;
  return in_[i].constant()->integers();
}

void Node::fail(const std::string& text, uint32_t code) const { throw Error{code, text}; }

// ---- The builder ----

Builder::Builder(Model& model, Sink& sink, Builder* parent) : model_(model), sink_(sink), parent_(parent) {
  if (!parent) return;
  opsets_ = parent->opsets_;
  function_attrs = parent->function_attrs;
  node_name_ = parent->node_name_;
}

Value Builder::op(std::string_view type, const std::vector<Value>& in, const Attrs& attrs) { return ops(type, in, attrs, 1)[0]; }

std::vector<Value> Builder::ops(std::string_view type, const std::vector<Value>& in, const Attrs& attrs, size_t n) {
  for (const Value& v : in) {
    if (!v) throw Error{TW_INTERNAL, std::string(type) + " was given an absent value"};
    if (v.kind() != Value::Kind::kTensor) throw Error{TW_INVALID_ARGUMENT, "a tensor is needed, not a sequence or optional"};
  }
  std::optional<Folded> folded = n == 1 ? Fold(type, in, attrs) : std::nullopt;
  if (folded && folded->complete()) return {constant(folded->tensor())};
  std::vector<Edge> edges;
  for (const Value& v : in) edges.push_back(edge(v));
  const std::string name = node_name_.empty() ? std::string(type) : node_name_ + "/" + std::string(type);
  const Edge node = sink_.Emit(std::string(type), name, edges, attrs);
  std::vector<Value> out;
  for (size_t i = 0; i < n; ++i) {
    auto info = std::make_shared<Value::Info>();
    info->owner = this;
    info->edge = i == 0 ? node : sink_.Output(node, static_cast<uint32_t>(i));
    sink_.Describe(info->edge, &info->dtype, &info->shape);
    if (folded) {
      info->known = std::make_shared<const std::vector<Element>>(std::move(folded->elements));
      info->shape = {folded->dims, true};
    }
    out.emplace_back(std::move(info));
  }
  return out;
}

Value Builder::constant(Tensor t) {
  auto info = std::make_shared<Value::Info>();
  info->dtype = t.dtype();
  info->shape = {t.dims(), true};
  if (t.count() <= kMostFolded &&
      (t.dtype() == TW_BOOL || t.dtype() == TW_INT32 || t.dtype() == TW_INT64 || t.dtype() == TW_FLOAT || t.dtype() == TW_DOUBLE)) {
    auto known = std::make_shared<std::vector<Element>>();
    const bool real = t.dtype() == TW_FLOAT || t.dtype() == TW_DOUBLE;
    for (int64_t i = 0; i < t.count(); ++i) known->push_back({true, real ? 0 : t.integer(i), real ? t.real(i) : 0});
    info->known = std::move(known);
  }
  info->constant = std::make_shared<const Tensor>(std::move(t));
  return Value(std::move(info));
}

Value Builder::sequence(std::vector<Value> items, uint32_t dtype) {
  auto info = std::make_shared<Value::Info>();
  info->kind = Value::Kind::kSequence;
  info->dtype = dtype;
  info->items = std::move(items);
  return Value(std::move(info));
}

Value Builder::optional(std::vector<Value> item) {
  auto info = std::make_shared<Value::Info>();
  info->kind = Value::Kind::kOptional;
  info->items = std::move(item);
  return Value(std::move(info));
}

Value Builder::wrap(Edge e) {
  auto info = std::make_shared<Value::Info>();
  info->owner = this;
  info->edge = e;
  sink_.Describe(e, &info->dtype, &info->shape);
  return Value(std::move(info));
}

Value Builder::argument(const std::string& name, uint32_t dtype, const ShapeAttr& shape) {
  return wrap(sink_.Argument(importer::CleanName(name), dtype, shape));
}

Value Builder::capture(const Value& outer) {
  // The items of a sequence are captured one by one, when they are used.
  if (!outer || outer.kind() != Value::Kind::kTensor || outer.info().owner == this || outer.constant()) return outer;
  for (const auto& [around, own] : captures_) {
    if (around.info().owner == outer.info().owner && around.info().edge == outer.info().edge) return own;
  }
  if (!parent_) throw Error{TW_INTERNAL, "a value of another graph is used"};
  Value own = argument("captured", outer.dtype(), outer.shape());
  if (outer.known() || outer.listed()) {
    auto info = std::make_shared<Value::Info>(own.info());
    info->known = outer.info().known;
    info->listed = outer.info().listed;
    own = Value(std::move(info));
  }
  captures_.emplace_back(outer, own);
  return own;
}

Edge Builder::edge(const Value& v) {
  if (v.constant()) {
    auto& same = emitted_[v.constant()->identity()];
    for (const auto& [tensor, made] : same) {
      if (tensor.dtype() == v.constant()->dtype() && tensor.dims() == v.constant()->dims()) return made;
    }
    const Edge made = sink_.Constant(*v.constant(), node_name_.empty() ? "constant" : node_name_ + "/constant");
    same.emplace_back(*v.constant(), made);
    return made;
  }
  return v.info().owner == this ? v.info().edge : capture(v).info().edge;
}

// ---- Names ----

Value Builder::find(const std::string& name) {
  if (name.empty()) return Value();
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  if (parent_) return parent_->find(name);
  throw Error{TW_INVALID_ARGUMENT, "value '" + name + "' is made by no node before; nodes must be sorted, without cycles"};
}

void Builder::set(const std::string& name, Value v) { values_.insert_or_assign(name, std::move(v)); }

// ---- Translation ----

void Builder::Initializers(const proto::GraphProto& graph) {
  for (const proto::TensorProto& t : graph.initializer()) set(t.name(), constant(TensorOf(t, model_.file, model_.external)));
  for (const proto::SparseTensorProto& t : graph.sparse_initializer()) {
    set(t.values().name(), constant(TensorOf(t, model_.file, model_.external)));
  }
}

void Builder::Translate(const proto::GraphProto& graph) {
  const Deeper deeper(model_);
  Initializers(graph);
  for (const proto::NodeProto& node : graph.node()) TranslateNode(node);
}

void Builder::TranslateNode(const proto::NodeProto& node) {
  // A few functions that call each other twice could stand for any number of nodes.
  if (++model_.nodes > kMostNodes) {
    throw Error{TW_RESOURCE_EXHAUSTED,
                "the model has more than " + std::to_string(kMostNodes) + " nodes, counted once for each call of a function"};
  }
  const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
  const auto imported = opsets_.find(domain);
  const int64_t opset = imported == opsets_.end() ? 1 : imported->second;
  const std::string before = node_name_;
  const std::string shown = node.name().empty() ? (node.output_size() ? node.output(0) : node.op_type()) : node.name();
  const std::string own = importer::CleanName(shown);
  if (!own.empty()) node_name_ = before.empty() ? own : before + "/" + own;
  try {
    bool waits = false;  // on a node that failed
    for (const std::string& name : node.input()) waits |= !name.empty() && failed(name);
    if (waits) throw Error{TW_OK, ""};
    bool known;
    const auto function = model_.functions.find({node.domain(), node.op_type()});
    if (function != model_.functions.end()) {
      Call(*function->second, node);
    } else if (const Entry* entry = FindTranslator(domain, node.op_type(), opset, &known)) {
      Node n(*this, node, opset);
      sink_.Place(node.op_type() + " '" + shown + "'");
      entry->run(*this, n);
    } else {
      throw Error{TW_UNIMPLEMENTED, known ? "this opset of the op is not supported" : "the op is unknown"};
    }
    for (const std::string& name : node.output()) {
      if (!name.empty() && !values_.count(name)) throw Error{TW_UNIMPLEMENTED, "output '" + name + "' is not supported"};
    }
  } catch (const Error& e) {
    for (const std::string& name : node.output()) failed_.insert(name);
    if (e.code != TW_OK) {
      if (!model_.code) model_.code = e.code;
      if (model_.errors.size() < kMostErrors) {
        model_.errors.push_back("node '" + shown + "' (" + (domain.empty() ? "" : domain + ".") + node.op_type() + ", opset " +
                                std::to_string(opset) + "): " + e.text);
      }
    }
  }
  node_name_ = before;
}

bool Builder::failed(const std::string& name) const {
  return failed_.count(name) || (!values_.count(name) && parent_ && parent_->failed(name));
}

void Builder::Call(const proto::FunctionProto& function, const proto::NodeProto& node) {
  const Deeper deeper(model_);
  if (node.input_size() > function.input_size()) {
    throw Error{TW_INVALID_ARGUMENT, "the function takes " + std::to_string(function.input_size()) + " inputs, but the node gives " +
                                         std::to_string(node.input_size())};
  }
  Node n(*this, node, 0);
  std::map<std::string, const proto::AttributeProto*> attrs;
  for (const proto::AttributeProto& a : function.attribute_proto()) attrs[a.name()] = &a;
  for (const proto::AttributeProto& a : node.attribute()) {
    if (const proto::AttributeProto* resolved = n.attr(a.name())) attrs[a.name()] = resolved;
  }
  std::unordered_map<std::string, Value> inside;
  for (int i = 0; i < function.input_size(); ++i) inside[function.input(i)] = n.maybe(static_cast<size_t>(i));
  const auto* attrs_before = function_attrs;
  const std::map<std::string, int64_t> opsets_before = opsets_;
  function_attrs = &attrs;
  for (const proto::OperatorSetIdProto& o : function.opset_import()) opsets_[o.domain() == "ai.onnx" ? "" : o.domain()] = o.version();
  values_.swap(inside);
  std::set<std::string> failed_before;
  failed_.swap(failed_before);
  for (const proto::NodeProto& inner : function.node()) TranslateNode(inner);
  values_.swap(inside);
  failed_.swap(failed_before);
  function_attrs = attrs_before;
  opsets_ = opsets_before;
  for (int i = 0; i < function.output_size() && i < node.output_size(); ++i) {
    if (failed_before.count(function.output(i))) throw Error{TW_OK, ""};
    const auto made = inside.find(function.output(i));
    if (made == inside.end()) throw Error{TW_INVALID_ARGUMENT, "the function does not make its output '" + function.output(i) + "'"};
    if (!node.output(i).empty()) set(node.output(i), made->second);
  }
}

}  // namespace thalweg::onnx
