#include "framework/graph/function_def.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/function_signature.h"
#include "framework/graph/graph_def.h"
#include "framework/graph/graph_def_fields.h"
#include "framework/graph/node_links.h"
#include "framework/proto/wire.h"

namespace thalweg {
namespace {

using namespace graph_def;

constexpr char kShapes[] = "_output_shapes";

std::string MapEntry(std::string_view key, std::string_view value) {
  std::string out;
  PutBytesField(kKey, key, &out);
  PutBytesField(kValue, value, &out);
  return out;
}

// ---- Out ----

class Exporter {
 public:
  explicit Exporter(const Function& f) : f_(f) {}

  StatusOr<std::string> Run() {
    for (size_t i = 0; i < f_.args().size(); ++i) args_.emplace(f_.args()[i].node, ArgName(f_.args()[i].node->name()));
    RETURN_IF_ERROR(AddNodes());
    RETURN_IF_ERROR(AddSignature());
    std::string out;
    PutBytesField(kSignature, signature_, &out);
    out += nodes_;
    for (size_t o = 0; o < f_.results().size(); ++o) PutBytesField(kRet, MapEntry(ResultName(o), TextOf(f_.results()[o])), &out);
    for (const Node* t : f_.targets()) PutBytesField(kControlRet, MapEntry(t->name(), t->name()), &out);
    for (size_t i = 0; i < f_.args().size(); ++i) {
      ASSIGN_OR_RETURN(const std::string shape, ShapeOf(*f_.args()[i].node));
      if (shape.empty()) continue;
      std::string attrs, entry;
      PutBytesField(kArgAttrMap, MapEntry(kShapes, shape), &attrs);
      PutVarintField(kKey, i, &entry);
      PutBytesField(kValue, attrs, &entry);
      PutBytesField(kArgAttr, entry, &out);
    }
    return out;
  }

 private:
  static std::string ResultName(size_t o) { return StrCat("result_", o); }

  // Returns a name of lower-case letters, digits and underscores that begins with a letter and
  // differs from the names of nodes and other arguments.
  std::string ArgName(std::string_view wanted) {
    std::string base;
    for (char c : wanted) base += std::isalnum(static_cast<unsigned char>(c)) ? char(std::tolower(static_cast<unsigned char>(c))) : '_';
    if (base.empty() || !std::isalpha(static_cast<unsigned char>(base[0]))) base = "arg_" + base;
    auto taken = [&](const std::string& name) {
      const Node* node = f_.body().Find(name);
      return names_.count(name) || (node && node->name() != wanted);
    };
    std::string name = base;
    for (int i = 1; taken(name); ++i) name = StrCat(base, "_", i);
    return *names_.insert(name).first;
  }

  std::string TextOf(const Edge& e) const {
    if (auto arg = args_.find(e.node); arg != args_.end()) return arg->second;
    const auto& at = e.node->out_at();
    const auto o = size_t(std::upper_bound(at.begin(), at.end(), uint32_t(e.port)) - at.begin() - 1);
    return StrCat(e.node->name(), ":", e.node->op().outputs[o].name, ":", uint32_t(e.port) - at[o]);
  }

  Status AddNodes() {
    const NodeLinks links(f_.body());
    for (int32_t id = 0, n = f_.body().size(); id < n; ++id) {
      const Node& node = *f_.body().node(id);
      if (args_.count(&node)) continue;
      stateful_ = stateful_ || node.op().stateful;
      ASSIGN_OR_RETURN(const std::string message, NodeMessage(node, links, [this](const Edge& e) { return TextOf(e); }, false));
      PutBytesField(kNodeDef, message, &nodes_);
    }
    return Status();
  }

  static StatusOr<std::string> ShapeOf(const Node& arg) {
    if (!arg.shape(0).has_rank()) return std::string();
    return SerializeAttr(AttrValue::Shapes({arg.shape(0)}));
  }

  // Serialises the dtype and shape behind a handle as a DtypeAndShape.
  static StatusOr<std::string> HandleMessage(const HandleInfo& handle) {
    ASSIGN_OR_RETURN(const std::string attr, SerializeAttr(AttrValue::OfShape(handle.shape)));
    std::string out;
    PutVarintField(kHandleType, handle.dtype, &out);
    WireReader reader(attr);
    for (WireField f; reader.Next(&f);) {
      if (f.number == kShape) PutBytesField(kHandleShape, f.bytes, &out);
    }
    return out;
  }

  Status AddArg(uint32_t field, std::string_view name, const Edge& e) {
    std::string arg;
    PutBytesField(kArgName, name, &arg);
    PutVarintField(kArgType, e.node->out_type(e.port), &arg);
    const HandleInfo& handle = e.node->handle(e.port);
    if (e.node->out_type(e.port) == TW_RESOURCE && handle.dtype != 0) {
      ASSIGN_OR_RETURN(const std::string message, HandleMessage(handle));
      PutBytesField(kHandleData, message, &arg);
    }
    PutBytesField(field, arg, &signature_);
    return Status();
  }

  Status AddSignature() {
    PutBytesField(kSignatureName, f_.name(), &signature_);
    for (const Edge& e : f_.args()) RETURN_IF_ERROR(AddArg(kInputArg, args_.at(e.node), e));
    for (size_t o = 0; o < f_.results().size(); ++o) RETURN_IF_ERROR(AddArg(kOutputArg, ResultName(o), f_.results()[o]));
    if (stateful_) PutVarintField(kIsStateful, 1, &signature_);
    for (const Node* t : f_.targets()) PutBytesField(kControlOutput, t->name(), &signature_);
    return Status();
  }

  const Function& f_;
  std::unordered_map<const Node*, std::string> args_;
  std::set<std::string> names_;
  std::string signature_, nodes_;
  bool stateful_ = false;
};

// ---- In ----

class Importer {
 public:
  Importer(std::string_view bytes, std::shared_ptr<Graph> body) : bytes_(bytes), body_(std::move(body)) {}

  StatusOr<std::shared_ptr<const Function>> Run(std::string_view name, const AttrMessages& attrs) {
    ASSIGN_OR_RETURN(signature_, FunctionSignature::Read(bytes_));
    spec_.name = name.empty() ? signature_.name : name;
    Status s = Import(attrs);
    if (!s.ok()) return Prefix(s, StrCat("function '", Shown(spec_.name), "':"));
    spec_.body = std::move(body_);
    return Function::Make(std::move(spec_));
  }

 private:
  static Status Damaged(std::string_view what, const WireReader& reader) {
    return InvalidArgument(what, " is damaged or cut short at its byte ", reader.offset());
  }

  Status Import(const AttrMessages& attrs) {
    ASSIGN_OR_RETURN(attrs_, signature_.Attributes(attrs));
    RETURN_IF_ERROR(Read());
    RETURN_IF_ERROR(AddNodes());
    return FindEnds();
  }

  Status Read() {
    WireReader reader(bytes_);
    Status s;
    for (WireField f; s.ok() && reader.Next(&f);) {
      if (f.type != WireField::kBytes) continue;
      switch (f.number) {
        case kNodeDef: s = ReadNode(f.bytes); break;
        case kRet: s = ReadPair(f.bytes, &rets_); break;
        case kControlRet: s = ReadPair(f.bytes, &control_rets_); break;
        case kArgAttr: s = ReadArgAttr(f.bytes); break;
        default: break;
      }
    }
    RETURN_IF_ERROR(s);
    return reader.ok() ? Status() : Damaged("the FunctionDef", reader);
  }

  // Reads a node and replaces placeholders for the function's attributes by their values.
  Status ReadNode(std::string_view bytes) {
    if (signature_.attrs.empty()) {
      PutBytesField(kNode, bytes, &nodes_);
      return Status();
    }
    std::string node;
    WireReader reader(bytes);
    for (WireField f; reader.Next(&f);) {
      if (f.number != kAttr || f.type != WireField::kBytes) {
        node += f.raw;
        continue;
      }
      std::string_view key, value;
      WireReader entry(f.bytes);
      for (WireField e; entry.Next(&e);) {
        if (e.number == kKey && e.type == WireField::kBytes) key = e.bytes;
        if (e.number == kValue && e.type == WireField::kBytes) value = e.bytes;
      }
      if (!entry.ok()) return Damaged("an attribute of a node", entry);
      ASSIGN_OR_RETURN(const std::string substituted, Substituted(value, attrs_));
      PutBytesField(kAttr, MapEntry(key, substituted), &node);
    }
    PutBytesField(kNode, node, &nodes_);
    return reader.ok() ? Status() : Damaged("a node", reader);
  }

  static Status ReadPair(std::string_view bytes, std::map<std::string_view, std::string_view>* to) {
    std::string_view key, value;
    WireReader reader(bytes);
    for (WireField f; reader.Next(&f);) {
      if (f.number == kKey && f.type == WireField::kBytes) key = f.bytes;
      if (f.number == kValue && f.type == WireField::kBytes) value = f.bytes;
    }
    (*to)[key] = value;
    return reader.ok() ? Status() : Damaged("the list of results", reader);
  }

  // Reads the attributes of an argument; only the shape is used.
  Status ReadArgAttr(std::string_view bytes) {
    uint64_t i = 0;
    std::map<std::string_view, std::string_view> attrs;
    WireReader reader(bytes);
    for (WireField f; reader.Next(&f);) {
      if (f.number == kKey && f.type == WireField::kVarint) i = f.value;
      if (f.number != kValue || f.type != WireField::kBytes) continue;
      WireReader entries(f.bytes);
      for (WireField e; entries.Next(&e);) {
        if (e.number == kArgAttrMap && e.type == WireField::kBytes) RETURN_IF_ERROR(ReadPair(e.bytes, &attrs));
      }
      if (!entries.ok()) return Damaged("the attributes of an argument", entries);
    }
    if (auto shape = attrs.find(kShapes); shape != attrs.end()) shapes_[i] = shape->second;
    return reader.ok() ? Status() : Damaged("the attributes of an argument", reader);
  }

  StatusOr<Shape> ShapeOf(uint64_t i) {
    auto stored = shapes_.find(i);
    if (stored == shapes_.end()) return Shape();
    AttrSpec spec;
    spec.kind = TW_ATTR_SHAPE;
    spec.list = true;
    SplatBudget budget;
    bool whole = false;
    ASSIGN_OR_RETURN(const AttrValue value, ParseAttr(stored->second, spec, &budget, &whole));
    if (value.kind() != TW_ATTR_SHAPE || !value.is_list() || value.shapes().size() != 1) {
      return InvalidArgument("attribute '", kShapes, "' of argument ", i, " is not one shape");
    }
    return value.shapes()[0];
  }

  // Adds the arguments, then the nodes. An argument that does not stand for exactly one value gets
  // a name per value.
  Status AddNodes() {
    ASSIGN_OR_RETURN(const OpSchema* placeholder, body_->host().FindRole("placeholder"));
    std::string graph;
    ImportOptions options;
    options.function_body = true;
    options.call_outputs = &call_outputs_;
    for (size_t i = 0; i < signature_.args.size(); ++i) {
      const StoredArg& arg = signature_.args[i];
      ASSIGN_OR_RETURN(const std::vector<uint32_t> types, TypesOf(arg, attrs_));
      std::vector<std::string>& names = arg_names_.emplace_back();
      for (size_t k = 0; k < types.size(); ++k) {
        names.push_back(arg.many() ? StrCat(arg.name, "_", k, "_of_", types.size()) : std::string(arg.name));
        ASSIGN_OR_RETURN(const std::string node, ArgumentMessage(*placeholder, names.back(), types[k], i));
        PutBytesField(kNode, node, &graph);
        if (arg.handle.known()) options.handles[names.back()] = arg.handle;
      }
      if (arg.many()) options.lists[std::string(arg.name)] = names;
    }
    graph += nodes_;
    return ImportGraphDef(graph.data(), graph.size(), options, body_.get());
  }

  StatusOr<std::string> ArgumentMessage(const OpSchema& placeholder, std::string_view name, uint32_t type, size_t i) {
    std::string node;
    PutBytesField(kName, name, &node);
    PutBytesField(kOp, placeholder.name, &node);
    ASSIGN_OR_RETURN(const Shape shape, ShapeOf(i));
    ASSIGN_OR_RETURN(const std::string dtype, SerializeAttr(AttrValue::Type(type)));
    ASSIGN_OR_RETURN(const std::string dims, SerializeAttr(AttrValue::OfShape(shape)));
    PutBytesField(kAttr, MapEntry("dtype", dtype), &node);
    PutBytesField(kAttr, MapEntry("shape", dims), &node);
    return node;
  }

  Status FindEnds() {
    for (const auto& names : arg_names_) {
      for (const std::string& name : names) spec_.args.push_back({body_->Find(name), 0});
    }
    for (const StoredArg& r : signature_.results) {
      auto ret = rets_.find(r.name);
      if (ret == rets_.end()) return InvalidArgument("nothing says what its result '", Shown(r.name), "' is");
      ASSIGN_OR_RETURN(const std::vector<uint32_t> types, TypesOf(r, attrs_));
      ASSIGN_OR_RETURN(const std::vector<Edge> values, ValuesOf(ret->second));
      bool same = values.size() == types.size();
      for (size_t k = 0; same && k < types.size(); ++k) same = values[k].node->out_type(values[k].port) == types[k];
      if (!same) return InvalidArgument("its result '", Shown(r.name), "' is of another type than the signature says");
      spec_.results.insert(spec_.results.end(), values.begin(), values.end());
    }
    for (const auto& [output, name] : control_rets_) {
      const Node* node = body_->Find(name);
      if (!node) return InvalidArgument("its control output '", Shown(output), "' is '", Shown(name), "', but it has no such node");
      spec_.targets.push_back(node);
    }
    // Nodes with effects run whether or not another node waits for them.
    for (int32_t id = 0; id < body_->size(); ++id) {
      const Node* n = body_->node(id);
      if (n->op().stateful && n->n_out() == 0 && std::find(spec_.targets.begin(), spec_.targets.end(), n) == spec_.targets.end()) {
        spec_.targets.push_back(n);
      }
    }
    return Status();
  }

  // Finds the values of "x", "node:out:0", or "node:out" for all values of an output argument.
  StatusOr<std::vector<Edge>> ValuesOf(std::string_view text) const {
    const auto none = [&] { return InvalidArgument("a result is '", Shown(text), "', which is no value of its body"); };
    std::vector<Edge> values;
    for (size_t i = 0; i < signature_.args.size(); ++i) {
      if (signature_.args[i].name != text || !signature_.args[i].many()) continue;
      for (const std::string& name : arg_names_[i]) values.push_back({body_->Find(name), 0});
      return values;
    }
    std::string_view name, argument;
    int32_t port = 0;
    if (!SplitBodyInput(text, &name, &argument, &port)) return none();
    const Node* node = body_->Find(name);
    if (!node) return none();
    if (argument.empty()) return std::vector<Edge>{{node, 0}};
    auto call = call_outputs_.find(node->name());
    const auto [begin, end] = OutputsOf(*node, argument, call == call_outputs_.end() ? nullptr : &call->second);
    if (port != kAllPorts && begin + port >= end) return none();
    for (int32_t o = begin; o < end; ++o) {
      if (port == kAllPorts || o == begin + port) values.push_back({node, o});
    }
    return begin < 0 || values.empty() ? StatusOr<std::vector<Edge>>(none()) : values;
  }

  const std::string_view bytes_;
  std::shared_ptr<Graph> body_;
  FunctionSpec spec_;
  FunctionSignature signature_;
  AttrMessages attrs_;
  std::string nodes_;
  std::vector<std::vector<std::string>> arg_names_;  // names of the placeholders, per argument
  std::map<std::string, CallOutputs, std::less<>> call_outputs_;
  std::map<std::string_view, std::string_view> rets_, control_rets_;
  std::map<uint64_t, std::string_view> shapes_;
};

}  // namespace

StatusOr<std::string> ExportFunctionDef(const Function& f) {
  auto bytes = Exporter(f).Run();
  return bytes.ok() ? bytes : Prefix(bytes.status(), StrCat("function '", Shown(f.name()), "':"));
}

StatusOr<std::string> FunctionName(std::string_view function_def) {
  WireReader reader(function_def);
  for (WireField f; reader.Next(&f);) {
    if (f.number != kSignature || f.type != WireField::kBytes) continue;
    WireReader signature(f.bytes);
    for (WireField s; signature.Next(&s);) {
      if (s.number == kSignatureName && s.type == WireField::kBytes) return std::string(s.bytes);
    }
  }
  return InvalidArgument("a FunctionDef has no name");
}

StatusOr<std::shared_ptr<const Function>> ImportFunctionDef(std::string_view function_def, std::shared_ptr<Graph> body,
                                                            std::string_view name, const AttrMessages& attrs) {
  return Importer(function_def, std::move(body)).Run(name, attrs);
}

}  // namespace thalweg
