#include "framework/model/model_builder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/function.h"
#include "framework/graph/left_out.h"
#include "framework/registry/registry.h"
#include "framework/registry/seal.h"
#include "framework/runtime/runtime.h"
#include "framework/tensor/lent.h"

namespace thalweg {
namespace {

constexpr uint64_t kLongestText = 1 << 16;  // names and texts of an importer

std::string_view Text(const char* text, uint64_t len) { return {text ? text : "", text ? std::min(len, kLongestText) : 0}; }

// Makes a legal name of a node from any text.
std::string LegalName(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 200)) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
    if (word || (!name.empty() && (c == '/' || c == '-'))) {
      name += c;
    } else if (!name.empty() || c != '/') {
      name += '_';
    }
  }
  const bool first = !name.empty() && (name[0] != '_' && name[0] != '-');
  return first || name.empty() ? name : "n" + name;
}

StatusOr<Shape> DeclaredShape(const tw_shape& shape) {
  if (shape.rank > kMaxRank) return InvalidArgument("rank ", shape.rank, " is more than ", kMaxRank);
  if (shape.rank > 0 && !shape.dims) return InvalidArgument("dims are NULL at rank ", shape.rank);
  std::vector<int64_t> dims(shape.dims, shape.dims + std::max(shape.rank, 0));
  for (int64_t& dim : dims) dim = std::max<int64_t>(dim, -1);
  return Shape(dims.data(), shape.rank);
}

// Copies strings, or plain elements.
StatusOr<Tensor> CopyElements(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes) {
  if (rank > uint32_t(kMaxRank)) return InvalidArgument("rank ", rank, " is more than ", kMaxRank);
  ASSIGN_OR_RETURN(const int64_t needed, CountBytes(dims, int32_t(rank), dtype));
  if (uint64_t(needed) != bytes) {
    return InvalidArgument("a constant of ", DTypeName(dtype), " and shape ", ShapeText(dims, int32_t(rank)), " needs ", needed,
                           " bytes, not ", bytes);
  }
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, dims, int32_t(rank)));
  if (dtype == TW_STRING) {
    const auto* strings = static_cast<const tw_string*>(data);
    for (uint64_t i = 0; i < t.count(); ++i) RETURN_IF_ERROR(t.SetString(i, {strings[i].data, strings[i].size}));
    return t;
  }
  if (!FindDType(dtype) || !FindDType(dtype)->plain) return InvalidArgument("a constant cannot be of type ", DTypeName(dtype));
  if (bytes > 0) std::memcpy(t.data(), data, bytes);
  return t;
}

}  // namespace

// ---- ModelGraph ----

std::string ModelGraph::TakeName(std::string_view op) {
  std::string base = LegalName(std::exchange(name_, std::string()));
  return graph_->UniqueName(base.empty() ? std::string(op) : base);
}

tw_edge ModelGraph::Add(NodeSpec spec) {
  spec.place = *place_;
  spec.imported = true;
  auto node = graph_->AddNode(std::move(spec));
  if (!node.ok()) return Fail(place_->empty() ? node.status() : Prefix(node.status(), StrCat(*place_, ":"))), 0;
  return Encode({*node, 0});
}

StatusOr<Edge> ModelGraph::Decode(tw_edge e, bool may_lack) const {
  const uint64_t id = ((e >> 16) & 0xffffffff) - 1;
  const auto port = int32_t(e & 0xffff);
  if (e == 0) return InvalidArgument("an edge is 0 (did an earlier call fail?)");
  if (e >> 48 != number_) return InvalidArgument("an edge belongs to another graph; pass it to the function as an argument");
  if (id >= uint64_t(graph_->size())) return InvalidArgument("an edge does not exist");
  const Node* node = graph_->node(int32_t(id));
  if (port >= node->n_out() && !(may_lack && port == 0)) return InvalidArgument("'", Shown(node->name()), "' has no output ", port);
  return Edge{node, port};
}

StatusOr<std::vector<Edge>> ModelGraph::DecodeAll(const tw_edge* edges, uint32_t n, std::string_view what) const {
  if (n > 0 && !edges) return InvalidArgument("the list of ", what, "s is NULL");
  std::vector<Edge> all(n);
  for (uint32_t i = 0; i < n; ++i) {
    auto e = Decode(edges[i]);
    if (!e.ok()) return Prefix(e.status(), StrCat(what, " ", i, ":"));
    all[i] = *e;
  }
  return all;
}

StatusOr<std::vector<const Node*>> ModelGraph::DecodeNodes(const tw_edge* edges, uint32_t n, std::string_view what) const {
  if (n > 0 && !edges) return InvalidArgument("the list of ", what, "s is NULL");
  std::vector<const Node*> all(n);
  for (uint32_t i = 0; i < n; ++i) {
    auto e = Decode(edges[i], true);
    if (!e.ok()) return Prefix(e.status(), StrCat(what, " ", i, ":"));
    all[i] = e->node;
  }
  return all;
}

tw_edge ModelGraph::Add(const tw_new_node& n) {
  const std::string_view op(n.op, n.op_len);
  NodeSpec spec;
  spec.op = op;
  spec.device = std::string(n.device, n.device_len);
  for (uint32_t i = 0; i < n.n_in; ++i) {
    auto e = Decode(n.in[i]);
    if (!e.ok()) return Fail(Prefix(e.status(), StrCat(*place_, place_->empty() ? "" : ": ", op, ": input ", i, ":"))), 0;
    spec.inputs.push_back(*e);
  }
  for (uint32_t i = 0; i < n.n_attrs; ++i) {
    auto v = AttrValue::FromC(n.attrs[i]);
    if (!v.ok()) return Fail(Prefix(v.status(), StrCat(op, ":"))), 0;
    spec.attrs[std::string(n.attrs[i].name, n.attrs[i].name_len)] = *std::move(v);
  }
  auto controls = DecodeNodes(n.after, n.n_after, "node to run after");
  if (!controls.ok()) return Fail(Prefix(controls.status(), StrCat(op, ":"))), 0;
  spec.controls = *std::move(controls);
  if (n.name_len) name_ = std::string(n.name, n.name_len);
  spec.name = TakeName(op);
  return Add(std::move(spec));
}

tw_edge ModelGraph::Output(tw_edge node, uint32_t i) {
  auto e = Decode(node, true);
  if (!e.ok()) return Fail(e.status()), 0;
  if (i >= uint32_t(e->node->n_out()) || i > 0xffff) return Fail(InvalidArgument("'", Shown(e->node->name()), "' has no output ", i)), 0;
  return Encode({e->node, int32_t(i)});
}

tw_edge ModelGraph::Constant(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes) {
  auto t = CopyElements(dtype, dims, rank, data, bytes);
  if (!t.ok()) return Fail(t.status()), 0;
  return AddConstant(*t);
}

tw_edge ModelGraph::AddConstant(const Tensor& value) {
  auto op = graph_->host().FindRole("const");
  if (!op.ok()) return Fail(op.status()), 0;
  NodeSpec spec;
  spec.op = (*op)->name;
  spec.attrs["dtype"] = AttrValue::Type(value.dtype());
  spec.attrs["value"] = AttrValue::OfTensor(value);
  spec.name = TakeName(spec.op);
  return Add(std::move(spec));
}

tw_edge ModelGraph::AddInput(std::string_view name, uint32_t dtype, const tw_shape* shape) {
  auto op = graph_->host().FindRole("placeholder");
  if (!op.ok()) return Fail(op.status()), 0;
  NodeSpec spec;
  spec.op = (*op)->name;
  spec.attrs["dtype"] = AttrValue::Type(dtype);
  if (shape) {
    auto known = DeclaredShape(*shape);
    if (!known.ok()) return Fail(Prefix(known.status(), StrCat("input '", Shown(name), "':"))), 0;
    spec.attrs["shape"] = AttrValue::OfShape(*known);
  }
  if (name_.empty()) name_ = name;
  spec.name = TakeName(spec.op);
  return Add(std::move(spec));
}

Status ModelGraph::Describe(tw_edge e, uint32_t* out_dtype, tw_shape* out_shape) {
  ASSIGN_OR_RETURN(const Edge edge, Decode(e));
  *out_dtype = BaseType(edge.node->out_type(edge.port));
  *out_shape = edge.node->shape(edge.port).c();  // lives as long as the graph
  return Status();
}

// ---- The record of entries ----

struct ModelBuilder::Entries {
  static ModelBuilder& Of(tw_model_builder* to) { return *static_cast<ModelBuilder*>(to->self); }
  // Runs the body unless the graph has failed, and turns its failure into one of the graph.
  template <class F>
  static tw_edge Sticky(tw_builder* b, F&& body) noexcept {
    if (!b->status.ok()) return 0;
    try {
      return body(static_cast<ModelGraph*>(b));
    } catch (...) {
      b->Fail(Thrown());
      return 0;
    }
  }
  static void Name(tw_model_builder*, tw_builder* b, const char* name, uint64_t len) {
    Sticky(b, [&](ModelGraph* g) { return g->SetName(Text(name, len)), tw_edge{0}; });
  }
  static void Place(tw_model_builder* to, const char* text, uint64_t len) {
    ModelBuilder& m = Of(to);
    Sticky(to->graph, [&](ModelGraph*) { return m.place_ = Shown(Text(text, len), 500), tw_edge{0}; });
  }
  static tw_edge Input(tw_model_builder*, tw_builder* b, const char* name, uint64_t len, uint32_t dtype, const tw_shape* shape) {
    return Sticky(b, [&](ModelGraph* g) { return g->AddInput(Text(name, len), dtype, shape); });
  }
  static tw_edge Constant(tw_model_builder*, tw_builder* b, tw_tensor* value) {
    return Sticky(b, [&](ModelGraph* g) -> tw_edge {
      if (!value) return g->Fail(InvalidArgument("there is no tensor for a constant")), 0;
      return g->AddConstant(Tensor::Share(value));
    });
  }
  static tw_status* Borrow(tw_model_builder* to, const tw_import_memory* memory, tw_tensor** out_tensor) {
    return Guard([&] { return Of(to).Borrow(memory, out_tensor); });
  }
  static const tw_view* Value(tw_model_builder*, tw_builder* b, tw_edge e) {
    auto edge = static_cast<ModelGraph*>(b)->Decode(e);
    if (!edge.ok() || !edge->node->value(edge->port)) return nullptr;
    return &edge->node->value(edge->port).view();
  }
  static uint32_t HasOp(tw_model_builder* to, const char* op, uint64_t len) {
    return Of(to).model_.graph->host().FindOp(Text(op, len)) != nullptr;
  }
  static tw_status* BeginFunction(tw_model_builder* to, tw_builder** out_body) {
    return Guard([&]() -> Status {
      ModelBuilder& m = Of(to);
      constexpr size_t kMostGraphs = 0xffff;
      if (m.graphs_.size() >= kMostGraphs) return ResourceExhausted("a model may have ", kMostGraphs, " functions");
      auto made = std::make_unique<ModelGraph>(Graph::Body(*m.model_.graph), uint32_t(m.graphs_.size() + 1), &m.place_);
      *out_body = m.graphs_.emplace_back(std::move(made)).get();
      return Status();
    });
  }
  static tw_status* EndFunction(tw_model_builder* to, tw_builder* body, const tw_import_function* f, tw_string* out_name) {
    return Guard([&] { return Of(to).EndFunction(body, f, out_name); });
  }
  static tw_status* GraphDef(tw_model_builder* to, const void* data, uint64_t bytes) {
    return Guard([&] { return Of(to).AddGraphDef(data, bytes); });
  }
  static tw_status* Find(tw_model_builder* to, const char* name, uint64_t len, tw_edge* out_edge) {
    return Guard([&] { return Of(to).FindEdge(Text(name, len), out_edge); });
  }
  static uint32_t Wants(tw_model_builder* to, const char* signature, uint64_t len) { return Of(to).Wants(Text(signature, len)); }
  static tw_status* Signature(tw_model_builder* to, const tw_import_signature* s) {
    return Guard([&] { return Of(to).AddSignature(s); });
  }
  static tw_status* Step(tw_model_builder* to, const tw_import_step* s) {
    return Guard([&] { return Of(to).AddStep(s); });
  }
  static tw_status* Asset(tw_model_builder* to, const char* name, uint64_t len, tw_sink* out_path) {
    return Guard([&] { return Of(to).AddAsset(Text(name, len), out_path); });
  }
  static tw_status* Property(tw_model_builder* to, const char* key, uint64_t key_len, const char* text, uint64_t len) {
    return Guard([&] { return Of(to).AddProperty(Text(key, key_len), Text(text, len)); });
  }
  static void Problem(tw_model_builder* to, uint32_t code, const char* text, uint64_t len) {
    Sticky(to->graph, [&](ModelGraph*) { return Of(to).AddProblem(code, Text(text, len)), tw_edge{0}; });
  }
};

// ---- ModelBuilder ----

ModelBuilder::ModelBuilder(std::shared_ptr<Runtime> runtime, std::shared_ptr<const ImporterRole> importer, const ModelSource* source,
                           const LoadOptions* options)
    : importer_(std::move(importer)), source_(source), options_(options) {
  model_.importer = importer_;
  model_.graph = std::make_shared<Graph>(std::move(runtime));
  model_.folder = source->folder();
  graphs_.push_back(std::make_unique<ModelGraph>(model_.graph, 1, &place_));
  using E = Entries;
  c_ = {TW_SIZED(tw_model_builder),
        graphs_[0].get(),
        this,
        E::Name,
        E::Place,
        E::Input,
        E::Constant,
        E::Borrow,
        E::Value,
        E::HasOp,
        E::BeginFunction,
        E::EndFunction,
        E::GraphDef,
        E::Find,
        E::Wants,
        E::Signature,
        E::Step,
        E::Asset,
        E::Property,
        E::Problem};
}

StatusOr<ModelGraph*> ModelBuilder::BodyOf(tw_builder* b) {
  for (size_t i = 1; i < graphs_.size(); ++i) {
    if (graphs_[i].get() != b) continue;
    if (!ended_.insert(graphs_[i].get()).second) return FailedPrecondition("the body is a function already");
    return graphs_[i].get();
  }
  return InvalidArgument("the builder is not the body of a function");
}

Status ModelBuilder::EndFunction(tw_builder* b, const tw_import_function* f, tw_string* out_name) {
  tw_import_function given;
  RETURN_IF_ERROR(Seal(f, "tw_import_function", &given));
  ASSIGN_OR_RETURN(ModelGraph * body, BodyOf(b));
  const std::string wanted(Text(given.name, given.name_len));
  const auto at = [&](const Status& s) { return Prefix(s, StrCat("function '", Shown(wanted), "':")); };
  if (!body->status.ok()) return at(body->status);
  FunctionSpec spec;
  auto args = body->DecodeAll(given.args, given.n_args, "argument");
  if (!args.ok()) return at(args.status());
  auto results = body->DecodeAll(given.results, given.n_results, "result");
  if (!results.ok()) return at(results.status());
  auto effects = body->DecodeNodes(given.effects, given.n_effects, "effect");
  if (!effects.ok()) return at(effects.status());
  const auto library = model_.graph->functions();
  std::string base = LegalName(wanted);
  spec.name = library->UniqueName(base.empty() ? "function" : base);
  spec.body = body->graph();
  spec.args = *std::move(args);
  spec.results = *std::move(results);
  spec.targets = *std::move(effects);
  auto made = Function::Make(std::move(spec));
  if (!made.ok()) return made.status();
  RETURN_IF_ERROR(library->Add(*made));
  const std::string& name = *names_.emplace_back(std::make_unique<std::string>((*made)->name()));
  *out_name = {name.data(), name.size()};
  return Status();
}

Status ModelBuilder::AddGraphDef(const void* data, uint64_t bytes) {
  if (bytes > 0 && !data) return InvalidArgument("a GraphDef is NULL");
  ImportOptions import;
  import.max_bytes = options_->max_bytes;
  import.max_nodes = options_->max_operations;
  import.max_splat_bytes = options_->max_unfolded_bytes;
  return ImportGraphDef(data, bytes, import, model_.graph.get());
}

Status ModelBuilder::FindEdge(std::string_view name, tw_edge* out_edge) {
  const ModelGraph& main = *graphs_[0];
  if (const Node* node = model_.graph->Find(name)) {
    *out_edge = main.Encode({node, 0});
    return Status();
  }
  auto edge = model_.graph->FindEdge(name);
  if (edge.ok()) {
    if (edge->port > 0xffff) return InvalidArgument("'", Shown(name), "' has a number that no output has");
    *out_edge = main.Encode(*edge);
    return Status();
  }
  RETURN_IF_ERROR(CheckNotLeftOut(*model_.graph, name.substr(0, name.rfind(':'))));
  return edge.status();
}

bool ModelBuilder::Wants(std::string_view signature) const {
  const auto& named = options_->signatures;
  return named.empty() || std::find(named.begin(), named.end(), signature) != named.end();
}

Status ModelBuilder::Borrow(const tw_import_memory* memory, tw_tensor** out_tensor) {
  tw_import_memory m;
  RETURN_IF_ERROR(Seal(memory, "tw_import_memory", &m));
  // The plugin's code must stay until the memory is released.
  struct Pinned {
    std::shared_ptr<const ImporterRole> importer;
    void (*release)(void*);
    void* user;
  };
  Lent lent(
      [](void* p) {
        std::unique_ptr<Pinned> pinned(static_cast<Pinned*>(p));
        if (pinned->release) pinned->release(pinned->user);
      },
      new Pinned{importer_, m.release, m.user});
  if (m.rank > uint32_t(kMaxRank)) return InvalidArgument("rank ", m.rank, " is more than ", kMaxRank);
  const DTypeInfo* type = FindDType(m.dtype);
  if (!type || !type->plain) return InvalidArgument("memory cannot hold elements of type ", DTypeName(m.dtype));
  ASSIGN_OR_RETURN(const int64_t needed, CountBytes(m.dims, int32_t(m.rank), m.dtype));
  if (uint64_t(needed) != m.bytes) {
    return InvalidArgument("a tensor of ", type->name, " and shape ", ShapeText(m.dims, int32_t(m.rank)), " needs ", needed, " bytes, not ",
                           m.bytes);
  }
  if (m.bytes > 0 && !m.data) return InvalidArgument("the memory of a tensor is NULL");
  if (m.bytes == 0 || reinterpret_cast<uintptr_t>(m.data) % AlignmentOf(m.dtype) != 0) {
    ASSIGN_OR_RETURN(Tensor copy, CopyElements(m.dtype, m.dims, m.rank, m.data, m.bytes));
    *out_tensor = copy.release();
    return Status();
  }
  ASSIGN_OR_RETURN(Tensor t,
                   LendTensor(m.dtype, m.dims, int32_t(m.rank), const_cast<void*>(m.data), m.bytes, /*read_only=*/true, std::move(lent)));
  *out_tensor = t.release();
  return Status();
}

StatusOr<ModelValue> ModelBuilder::ValueOf(const tw_import_value* v, bool input, std::string_view what) const {
  tw_import_value given;
  RETURN_IF_ERROR(Seal(v, "tw_import_value", &given));
  ModelValue value;
  value.name = Text(given.name, given.name_len);
  const std::string at = StrCat(what, " '", Shown(value.name), "'");
  if (value.name.empty() || value.name.find('\0') != value.name.npos)
    return InvalidArgument(what, " has no name, or one with a NUL character");
  auto edge = graphs_[0]->Decode(given.edge);
  if (!edge.ok()) return Prefix(edge.status(), StrCat(at, ":"));
  value.edge = *edge;
  value.dtype = BaseType(edge->node->out_type(edge->port));
  value.shape = edge->node->shape(edge->port);
  if (given.shape) {
    auto declared = DeclaredShape(*given.shape);
    if (!declared.ok()) return Prefix(declared.status(), StrCat(at, ":"));
    auto both = MergeShapes(*declared, value.shape);
    if (!both.ok()) return Prefix(both.status(), StrCat(at, ": the declared shape is not that of the graph:"));
    value.shape = *std::move(both);
  }
  if (given.symbols && given.n_symbols > 0) {
    if (int32_t(given.n_symbols) != value.shape.rank()) {
      return InvalidArgument(at, ": ", given.n_symbols, " symbols for shape ", value.shape.text());
    }
    for (uint32_t i = 0; i < given.n_symbols; ++i) {
      const bool open = value.shape.dim(int32_t(i)) < 0;
      value.symbols.emplace_back(open ? Text(given.symbols[i].data, given.symbols[i].size) : std::string_view());
    }
  }
  if (given.default_value) {
    if (!input) return InvalidArgument(at, ": an output has no default");
    value.default_value = Tensor::Share(given.default_value);
    if (value.default_value.dtype() != value.dtype) {
      return InvalidArgument(at, ": its default is ", DTypeName(value.default_value.dtype()), ", not ", DTypeName(value.dtype));
    }
  }
  return value;
}

Status ModelBuilder::AddSignature(const tw_import_signature* s) {
  tw_import_signature given;
  RETURN_IF_ERROR(Seal(s, "tw_import_signature", &given));
  ModelSignature made;
  made.name = Text(given.name, given.name_len);
  made.doc = Text(given.doc, given.doc_len);
  const std::string what = StrCat("signature '", Shown(made.name), "'");
  if (made.name.empty()) return InvalidArgument("a signature has no name");
  if (std::find(known_.begin(), known_.end(), made.name) != known_.end()) return AlreadyExists("the model has a ", what, " already");
  known_.push_back(made.name);
  if (!Wants(made.name)) return Status();
  if ((given.n_inputs > 0 && !given.inputs) || (given.n_outputs > 0 && !given.outputs)) return InvalidArgument(what, ": a list is NULL");
  for (uint32_t i = 0; i < given.n_inputs; ++i) {
    ASSIGN_OR_RETURN(ModelValue v, ValueOf(given.inputs[i], true, StrCat(what, ": input")));
    for (const ModelValue& other : made.inputs) {
      if (other.name == v.name) return InvalidArgument(what, ": two inputs are named '", Shown(v.name), "'");
      if (other.edge == v.edge) return InvalidArgument(what, ": inputs '", Shown(v.name), "' and '", Shown(other.name), "' are one value");
    }
    made.inputs.push_back(std::move(v));
  }
  for (uint32_t i = 0; i < given.n_outputs; ++i) {
    ASSIGN_OR_RETURN(ModelValue v, ValueOf(given.outputs[i], false, StrCat(what, ": output")));
    for (const ModelValue& other : made.outputs) {
      if (other.name == v.name) return InvalidArgument(what, ": two outputs are named '", Shown(v.name), "'");
    }
    made.outputs.push_back(std::move(v));
  }
  ASSIGN_OR_RETURN(made.effects, graphs_[0]->DecodeNodes(given.effects, given.n_effects, StrCat(what, ": effect")));
  if (given.is_default == 1) model_.default_signature = model_.signatures.size();
  model_.signatures.push_back(std::move(made));
  return Status();
}

Status ModelBuilder::AddStep(const tw_import_step* s) {
  tw_import_step given;
  RETURN_IF_ERROR(Seal(s, "tw_import_step", &given));
  ModelStep made;
  ASSIGN_OR_RETURN(made.feeds, graphs_[0]->DecodeAll(given.feeds, given.n_feeds, "feed"));
  if (given.n_feeds > 0 && !given.feed_values) return InvalidArgument("feed_values is NULL");
  for (uint32_t i = 0; i < given.n_feeds; ++i) {
    if (!given.feed_values[i]) return InvalidArgument("feed ", i, " of a step is NULL");
    made.values.push_back(Tensor::Share(given.feed_values[i]));
  }
  ASSIGN_OR_RETURN(made.effects, graphs_[0]->DecodeNodes(given.effects, given.n_effects, "effect"));
  model_.steps.push_back(std::move(made));
  return Status();
}

Status ModelBuilder::AddAsset(std::string_view name, tw_sink* out_path) {
  if (name.empty() || IsAbsolute(name)) return InvalidArgument("'", Shown(name), "' is no name of an asset beneath the model's folder");
  RETURN_IF_ERROR(source_->files()->Open(std::string(name)).status());
  model_.reads_files = true;
  const std::string path = StrCat(source_->folder(), source_->folder().ends_with('/') ? "" : "/", name);
  return FromC(out_path->put(out_path, path.data(), path.size()));
}

Status ModelBuilder::AddProperty(std::string_view key, std::string_view text) {
  if (key.empty()) return InvalidArgument("a property has no name");
  for (auto& [name, value] : model_.properties) {
    if (name == key) return value = text, Status();
  }
  constexpr size_t kMostProperties = 1000;
  if (model_.properties.size() >= kMostProperties) return ResourceExhausted("a model may have ", kMostProperties, " properties");
  model_.properties.emplace_back(key, text);
  return Status();
}

void ModelBuilder::AddProblem(uint32_t code, std::string_view text) {
  constexpr size_t kMostProblems = 100;
  std::string shown = Shown(text, 1000);
  if (problem_code_ == 0) problem_code_ = code == 0 || code > TW_UNAUTHENTICATED ? uint32_t{TW_UNKNOWN} : code;
  if (problem_texts_.count(shown)) return;
  if (problems_.size() >= kMostProblems) {
    ++more_problems_;
    return;
  }
  problem_texts_.insert(shown);
  problems_.push_back(std::move(shown));
}

Status ModelBuilder::AllProblems() const {
  if (problem_code_ == 0) return Status();
  std::string text;
  for (const std::string& problem : problems_) text += StrCat(text.empty() ? "" : "; ", problem);
  if (more_problems_ > 0) text += StrCat("; and ", more_problems_, " more");
  return Error(absl::StatusCode(problem_code_), text);
}

StatusOr<LoadedModel> ModelBuilder::Finish(Status loaded) {
  RETURN_IF_ERROR(AllProblems());
  for (const auto& g : graphs_) RETURN_IF_ERROR(g->status);
  RETURN_IF_ERROR(loaded);
  for (const std::string& name : options_->signatures) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    std::string all;
    for (const std::string& known : known_) all += StrCat(all.empty() ? "'" : ", '", Shown(known), "'");
    return NotFound("the model has no signature '", Shown(name), "'; it has ", all.empty() ? "none" : all);
  }
  if (model_.signatures.empty()) return InvalidArgument("it has no signature");
  return std::move(model_);
}

}  // namespace thalweg
