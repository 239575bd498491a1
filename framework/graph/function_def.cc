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
#include "framework/graph/graph_def.h"
#include "framework/graph/graph_def_fields.h"
#include "framework/io/wire.h"
#include "framework/registry/registry.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

using namespace graph_def;

enum FunctionField : uint32_t { kSignature = 1, kNodeDef = 3, kRet = 4, kFunctionAttr = 5, kControlRet = 6, kArgAttr = 7 };
enum SignatureField : uint32_t { kOpName = 1, kInputArg = 2, kOutputArg = 3, kOpAttr = 4, kIsStateful = 17, kControlOutput = 20 };
enum ArgField : uint32_t { kArgName = 1, kArgType = 3, kTypeAttr = 4, kNumberAttr = 5, kTypeListAttr = 6 };
constexpr uint32_t kArgAttrMap = 1;  // of ArgAttrs
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
    AddSignature();
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

  // Lower case letters, digits and underscores after a letter, unlike any node's name and other argument's.
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
    for (int32_t id = 0, n = f_.body().size(); id < n; ++id) {
      const Node& node = *f_.body().node(id);
      if (args_.count(&node)) continue;
      stateful_ = stateful_ || node.op().stateful;
      ASSIGN_OR_RETURN(const std::string message, NodeMessage(node, [this](const Edge& e) { return TextOf(e); }));
      PutBytesField(kNodeDef, message, &nodes_);
    }
    return Status();
  }

  static StatusOr<std::string> ShapeOf(const Node& arg) {
    if (!arg.shape(0).has_rank()) return std::string();
    return SerializeAttr(AttrValue::Shapes({arg.shape(0)}));
  }

  void AddSignature() {
    auto add = [this](uint32_t field, std::string_view name, uint32_t type) {
      std::string arg;
      PutBytesField(kArgName, name, &arg);
      PutVarintField(kArgType, type, &arg);
      PutBytesField(field, arg, &signature_);
    };
    PutBytesField(kOpName, f_.name(), &signature_);
    for (const Edge& e : f_.args()) add(kInputArg, args_.at(e.node), e.node->out_type(0));
    for (size_t o = 0; o < f_.results().size(); ++o) add(kOutputArg, ResultName(o), f_.result_type(o));
    if (stateful_) PutVarintField(kIsStateful, 1, &signature_);
    for (const Node* t : f_.targets()) PutBytesField(kControlOutput, t->name(), &signature_);
  }

  const Function& f_;
  std::unordered_map<const Node*, std::string> args_;
  std::set<std::string> names_;
  std::string signature_, nodes_;
  bool stateful_ = false;
};

// ---- In ----

struct StoredArg {
  std::string_view name;
  uint32_t type = 0;
  bool many = false;  // it has a type or a number by attribute
};

class Importer {
 public:
  Importer(std::string_view bytes, std::shared_ptr<Graph> body) : bytes_(bytes), body_(std::move(body)) {}

  StatusOr<std::shared_ptr<const Function>> Run() {
    Status s = Read();
    if (s.ok()) s = AddNodes();
    if (s.ok()) s = FindEnds();
    if (!s.ok()) return Prefix(s, StrCat("function '", Shown(spec_.name), "':"));
    spec_.body = std::move(body_);
    return Function::Make(std::move(spec_));
  }

 private:
  static Status Damaged(std::string_view what, const WireReader& reader) {
    return InvalidArgument(what, " is damaged or cut short at its byte ", reader.offset());
  }

  Status Read() {
    WireReader reader(bytes_);
    Status s;
    for (WireField f; s.ok() && reader.Next(&f);) {
      if (f.type != WireField::kBytes) continue;
      switch (f.number) {
        case kSignature: s = ReadSignature(f.bytes); break;
        case kNodeDef: PutBytesField(kNode, f.bytes, &nodes_); break;
        case kRet: s = ReadPair(f.bytes, &rets_); break;
        case kControlRet: s = ReadPair(f.bytes, &control_rets_); break;
        case kArgAttr: s = ReadArgAttr(f.bytes); break;
        default: break;
      }
    }
    RETURN_IF_ERROR(s);
    if (!reader.ok()) return Damaged("the FunctionDef", reader);
    for (const auto& list : {args_, results_}) {
      for (const StoredArg& a : list) {
        if (a.many) return Unimplemented("'", Shown(a.name), "' has a type or number that each call says; write one function for each");
      }
    }
    return Status();
  }

  Status ReadSignature(std::string_view bytes) {
    WireReader reader(bytes);
    for (WireField f; reader.Next(&f);) {
      if (f.type != WireField::kBytes) continue;
      if (f.number == kOpName) spec_.name = f.bytes;
      if (f.number == kInputArg) RETURN_IF_ERROR(ReadArg(f.bytes, &args_));
      if (f.number == kOutputArg) RETURN_IF_ERROR(ReadArg(f.bytes, &results_));
    }
    return reader.ok() ? Status() : Damaged("the signature", reader);
  }

  static Status ReadArg(std::string_view bytes, std::vector<StoredArg>* to) {
    StoredArg arg;
    WireReader reader(bytes);
    for (WireField f; reader.Next(&f);) {
      if (f.number == kArgName && f.type == WireField::kBytes) arg.name = f.bytes;
      if (f.number == kArgType && f.type == WireField::kVarint) arg.type = uint32_t(f.value);
      if (f.number == kTypeAttr || f.number == kNumberAttr || f.number == kTypeListAttr) arg.many = arg.many || !f.bytes.empty();
    }
    to->push_back(arg);
    return reader.ok() ? Status() : Damaged(StrCat("argument ", to->size() - 1), reader);
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

  // Of all that is said of an argument the shape counts.
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

  Status AddNodes() {
    ASSIGN_OR_RETURN(const OpSchema* placeholder, body_->runtime().registry().FindRole("placeholder"));
    std::string graph;
    for (size_t i = 0; i < args_.size(); ++i) {
      std::string node;
      PutBytesField(kName, args_[i].name, &node);
      PutBytesField(kOp, placeholder->name, &node);
      ASSIGN_OR_RETURN(const Shape shape, ShapeOf(i));
      ASSIGN_OR_RETURN(const std::string dtype, SerializeAttr(AttrValue::Type(args_[i].type)));
      ASSIGN_OR_RETURN(const std::string dims, SerializeAttr(AttrValue::OfShape(shape)));
      PutBytesField(kAttr, MapEntry("dtype", dtype), &node);
      PutBytesField(kAttr, MapEntry("shape", dims), &node);
      PutBytesField(kNode, node, &graph);
    }
    graph += nodes_;
    ImportOptions options;
    options.function_body = true;
    return ImportGraphDef(graph.data(), graph.size(), options, body_.get());
  }

  Status FindEnds() {
    for (const StoredArg& a : args_) spec_.args.push_back({body_->Find(a.name), 0});
    for (const StoredArg& r : results_) {
      auto ret = rets_.find(r.name);
      if (ret == rets_.end()) return InvalidArgument("nothing says what its result '", Shown(r.name), "' is");
      ASSIGN_OR_RETURN(spec_.results.emplace_back(), ValueOf(ret->second));
      if (spec_.results.back().node->out_type(spec_.results.back().port) != r.type) {
        return InvalidArgument("its result '", Shown(r.name), "' is of another type than the signature says");
      }
    }
    for (const auto& [output, name] : control_rets_) {
      const Node* node = body_->Find(name);
      if (!node) return InvalidArgument("its control output '", Shown(output), "' is '", Shown(name), "', but it has no such node");
      spec_.targets.push_back(node);
    }
    // What has effects runs whether or not something waits for it.
    for (int32_t id = 0; id < body_->size(); ++id) {
      const Node* n = body_->node(id);
      if (n->op().stateful && n->n_out() == 0 && std::find(spec_.targets.begin(), spec_.targets.end(), n) == spec_.targets.end()) {
        spec_.targets.push_back(n);
      }
    }
    return Status();
  }

  // "x", "node:out:0".
  StatusOr<Edge> ValueOf(std::string_view text) const {
    const size_t first = text.find(':'), last = text.rfind(':');
    const Node* node = body_->Find(text.substr(0, first));
    int32_t port = 0;
    if (node && first != text.npos) {
      int32_t i = 0;
      const std::string_view digits = text.substr(last + 1);
      const bool plain =
          !digits.empty() && digits.size() < 7 && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
      for (char c : digits) i = plain ? i * 10 + (c - '0') : 0;
      port = plain && first != last ? PortOf(*node, text.substr(first + 1, last - first - 1), i) : -2;
    }
    if (!node || port < 0 || port >= node->n_out())
      return InvalidArgument("a result is '", Shown(text), "', which is no value of its body");
    return Edge{node, port};
  }

  const std::string_view bytes_;
  std::shared_ptr<Graph> body_;
  FunctionSpec spec_;
  std::vector<StoredArg> args_, results_;
  std::string nodes_;
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
      if (s.number == kOpName && s.type == WireField::kBytes) return std::string(s.bytes);
    }
  }
  return InvalidArgument("a FunctionDef has no name");
}

StatusOr<std::shared_ptr<const Function>> ImportFunctionDef(std::string_view function_def, std::shared_ptr<Graph> body) {
  return Importer(function_def, std::move(body)).Run();
}

}  // namespace thalweg
