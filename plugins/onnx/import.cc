// From the bytes of a file to a graph: the main graph's inputs, nodes and outputs.
#include <algorithm>
#include <limits>
#include <set>

#include <google/protobuf/io/coded_stream.h>

#include "model.h"
#include "translators/list.h"
#include "translators/table.h"
#include "wire.h"

namespace thalweg::onnx {
namespace {

constexpr int64_t kNewestOpset = 28;   // of the standard domain
constexpr int64_t kNewestMlOpset = 5;  // of ai.onnx.ml
constexpr int kMostNested = 64;        // function calls
constexpr int kMostBodies = 100;       // nested messages; as Protocol Buffers limits them

std::string Joined(const std::vector<std::string>& parts, const char* between) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : between) + part;
  return all;
}

std::string Domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

// Finds the ops of all nodes, of bodies and called functions too, that have no translator.
class UnknownOps {
 public:
  explicit UnknownOps(const Model& model) : model_(model) {}

  // depth: of function calls; deeper ones are refused when they are translated.
  void Scan(const google::protobuf::RepeatedPtrField<proto::NodeProto>& nodes, const std::map<std::string, int64_t>& opsets,
            int depth = 0) {
    if (depth > kMostNested) return;
    for (const proto::NodeProto& node : nodes) {
      for (const proto::AttributeProto& a : node.attribute()) {
        if (a.has_g()) Scan(a.g().node(), opsets, depth);
        for (const proto::GraphProto& g : a.graphs()) Scan(g.node(), opsets, depth);
      }
      const std::string domain = Domain(node.domain());
      const auto function = model_.functions.find({node.domain(), node.op_type()});
      if (function != model_.functions.end()) {
        if (!scanned_.insert(function->second).second) continue;
        std::map<std::string, int64_t> own = opsets;
        for (const proto::OperatorSetIdProto& o : function->second->opset_import()) own[Domain(o.domain())] = o.version();
        Scan(function->second->node(), own, depth + 1);
        continue;
      }
      const auto opset = opsets.find(domain);
      const int64_t version = opset == opsets.end() ? 1 : opset->second;
      bool known = false;
      if (FindTranslator(domain, node.op_type(), version, &known)) continue;
      unknown_.insert((domain.empty() ? "" : domain + ".") + node.op_type() + " (" +
                      (opset == opsets.end() && !domain.empty() ? "domain without an opset" : "opset " + std::to_string(version)) + ")");
    }
  }
  std::vector<std::string> all() const { return {unknown_.begin(), unknown_.end()}; }

 private:
  const Model& model_;
  std::set<const proto::FunctionProto*> scanned_;
  std::set<std::string> unknown_;
};

struct TensorType {
  uint32_t dtype = 0;
  ShapeAttr shape{{}, false};
  std::vector<std::string> symbols;
};

TensorType Describe(const proto::TypeProto::Tensor& type) {
  TensorType d;
  d.dtype = DtypeOf(type.elem_type());
  if (!type.has_shape()) return d;
  d.shape.known_rank = true;
  for (const auto& dim : type.shape().dim()) {
    d.shape.dims.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
    d.symbols.push_back(dim.dim_param());
  }
  if (d.shape.dims.size() > 64)
    throw Error{TW_INVALID_ARGUMENT, "has " + std::to_string(d.shape.dims.size()) + " axes; at most 64 are accepted"};
  return d;
}

// A sequence or optional comes as a list in a scalar variant.
Port InputOf(Builder& b, const proto::ValueInfoProto& in) {
  if (in.type().has_tensor_type()) {
    const TensorType d = Describe(in.type().tensor_type());
    return {in.name(), b.argument(in.name(), d.dtype, d.shape), 0, d.symbols};
  }
  const Listed listed = ListedOf(in.type());
  return {in.name(), Described(b.argument(in.name(), TW_VARIANT, {{}, true}), listed), 0, {}};
}

// A sequence or optional is returned as a list, with the form that the model declares: ONNX lets a value stand for an optional that has it.
Value OutputOf(Builder& b, const Value& v, const proto::TypeProto& declared) {
  const bool tensor = v.kind() == Value::Kind::kTensor && !v.listed();
  if (declared.has_tensor_type() || (tensor && !declared.has_optional_type())) {
    if (!tensor) throw Error{TW_INVALID_ARGUMENT, "is declared a tensor but is a sequence or an optional"};
    return v;
  }
  const bool optional = tensor ? false : ListedOf(v).optional;
  return declared.has_optional_type() && !optional ? AsList(b, b.optional({v})) : AsList(b, v);
}

void ReadOpsets(const proto::ModelProto& file, std::map<std::string, int64_t>* opsets) {
  for (const proto::OperatorSetIdProto& o : file.opset_import()) {
    const std::string domain = Domain(o.domain());
    const int64_t newest = domain.empty() ? kNewestOpset : domain == "ai.onnx.ml" ? kNewestMlOpset : std::numeric_limits<int64_t>::max();
    if (o.version() < 1 || o.version() > newest) {
      throw Error{TW_UNIMPLEMENTED, "the model needs opset " + std::to_string(o.version()) + " of " +
                                        (domain.empty() ? "ai.onnx" : domain) + "; opsets 1 to " + std::to_string(newest) +
                                        " are supported; export the model for one of these"};
    }
    (*opsets)[domain] = o.version();
  }
  opsets->emplace("", 1);
}

}  // namespace

std::shared_ptr<const proto::ModelProto> ParseModel(std::string_view bytes, bool share_weights) {
  std::string small;
  if (share_weights) {
    small = WithoutWeights(bytes);
    bytes = small;
  }
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    throw Error{TW_INVALID_ARGUMENT, "the file has " + std::to_string(bytes.size()) +
                                         " bytes; ONNX files have at most 2^31 - 1, larger models keep weights as external data"};
  }
  auto model = std::make_shared<proto::ModelProto>();
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  in.SetRecursionLimit(kMostBodies);
  if (!model->ParseFromCodedStream(&in) || !in.ConsumedEntireMessage()) {
    throw Error{TW_INVALID_ARGUMENT, "the file is no ONNX model, or is damaged: its Protocol Buffers message cannot be read"};
  }
  if (!model->has_graph()) throw Error{TW_INVALID_ARGUMENT, "the file is no ONNX model: it has no graph"};
  return model;
}

Ports Import(std::shared_ptr<const proto::ModelProto> file, OpenExternal external, Sink& sink) {
  Model model;
  model.file = file;
  model.external = std::move(external);
  for (const proto::FunctionProto& f : file->functions()) model.functions[{f.domain(), f.name()}] = &f;
  Builder b(model, sink, nullptr);
  ReadOpsets(*file, &b.opsets());
  UnknownOps unknown(model);
  unknown.Scan(file->graph().node(), b.opsets());
  if (!unknown.all().empty())
    throw Error{TW_UNIMPLEMENTED, "the model uses ops that the importer does not know: " + Joined(unknown.all(), ", ")};

  std::set<std::string> given;
  for (const proto::TensorProto& t : file->graph().initializer()) given.insert(t.name());
  for (const proto::SparseTensorProto& t : file->graph().sparse_initializer()) given.insert(t.values().name());
  Ports ports;
  for (const proto::ValueInfoProto& in : file->graph().input()) {
    if (given.count(in.name())) continue;  // its default value; older files list every initializer
    try {
      Port port = InputOf(b, in);
      port.edge = port.value.info().edge;
      b.set(in.name(), port.value);
      ports.inputs.push_back(std::move(port));
    } catch (const Error& e) {
      throw Error{e.code, "input '" + in.name() + "': " + e.text};
    }
  }
  b.Translate(file->graph());
  if (!model.errors.empty()) throw Error{model.code, Joined(model.errors, "; ")};
  for (const proto::ValueInfoProto& out : file->graph().output()) {
    try {
      Port port{out.name(), OutputOf(b, b.find(out.name()), out.type()), 0, {}};
      port.edge = b.edge(port.value);
      if (out.type().has_tensor_type()) port.symbols = Describe(out.type().tensor_type()).symbols;
      ports.outputs.push_back(std::move(port));
    } catch (const Error& e) {
      throw Error{e.code, "output '" + out.name() + "': " + e.text};
    }
  }
  return ports;
}

}  // namespace thalweg::onnx
