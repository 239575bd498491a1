// Builds our graph from one ONNX graph: the values by their ONNX names, our ops on them, and what is known of them without running
// (type, shape, the elements of small integer values). Each body of If, Loop and Scan has a Builder of its own with `parent` set.
// Translators (translators/table.h) use nothing else. Threads: one thread at a time.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../common/importer/sink.h"

namespace thalweg::onnx {

using importer::Attr;
using importer::Attrs;
using importer::AttrValue;
using importer::CountOf;
using importer::Dims;
using importer::DtypeName;
using importer::Edge;
using importer::ElementBytes;
using importer::Error;
using importer::Func;
using importer::IsFloating;
using importer::IsInteger;
using importer::ShapeAttr;
using importer::Sink;
using importer::Tensor;
using importer::Text;
using importer::Type;

namespace proto {
class AttributeProto;
class FunctionProto;
class GraphProto;
class NodeProto;
class TensorProto;
class TypeProto;
}  // namespace proto

class Builder;
struct Model;  // model.h: the file, its opsets, functions and errors

// An element that may be known during import. Reals are in f, integers and bool in i.
struct Element {
  bool known = false;
  int64_t i = 0;
  double f = 0;
};

// What a list that is made at run time holds: a TensorList in a scalar variant. A sequence is such a list; an optional is one without an
// element or with one.
struct Listed {
  bool optional = false;
  uint32_t dtype = 0;  // of the elements; TW_VARIANT: lists, which `inner` describes
  std::shared_ptr<const Listed> inner;
};

// A value: a tensor of the graph, a constant (emitted at its first use), a sequence whose items are known one by one, or an optional.
// Cheap to copy. A default-constructed Value is absent (an optional input that is not given).
class Value {
 public:
  enum class Kind { kTensor, kSequence, kOptional };
  Value() = default;
  explicit operator bool() const { return info_ != nullptr; }
  Kind kind() const { return info_->kind; }

  // ---- Tensors ----
  uint32_t dtype() const { return info_->dtype; }  // TW_FLOAT, ...; TW_VARIANT for a list that is made at run time
  int rank() const { return info_->shape.known_rank ? static_cast<int>(info_->shape.dims.size()) : -1; }  // -1: unknown
  const Dims& dims() const { return info_->shape.dims; }  // -1: unknown; REQUIRES: rank() >= 0
  const ShapeAttr& shape() const { return info_->shape; }
  int64_t dim(int axis) const;                                      // -1: unknown; a negative axis counts from the end
  bool static_shape() const;                                        // rank and every size are known
  int64_t count() const;                                            // elements; -1: unknown
  const Tensor* constant() const { return info_->constant.get(); }  // the elements, if they are known now
  // Elements of a small integer, bool or real value as far as they are known (a shape with some symbolic sizes); NULL if none is.
  const std::vector<Element>* known() const { return info_->known.get(); }

  // ---- Sequences and optionals ----
  const std::vector<Value>& items() const { return info_->items; }  // of a sequence; of an optional: one, or none if it is empty

  // Of a tensor that is a list made at run time: what the list holds; also of an optional that is empty. NULL: no list.
  const Listed* listed() const { return info_->listed.get(); }

  struct Info {
    Kind kind = Kind::kTensor;
    Builder* owner = nullptr;  // the graph that `edge` belongs to
    Edge edge = 0;             // 0: a constant that is not emitted
    uint32_t dtype = 0;
    ShapeAttr shape{{}, false};
    std::shared_ptr<const Tensor> constant;
    std::shared_ptr<const std::vector<Element>> known;
    std::vector<Value> items;
    std::shared_ptr<const Listed> listed;
  };
  explicit Value(std::shared_ptr<const Info> info) : info_(std::move(info)) {}
  const Info& info() const { return *info_; }

 private:
  std::shared_ptr<const Info> info_;
};

// One ONNX node while it is translated.
class Node {
 public:
  Node(Builder& b, const proto::NodeProto& proto, int64_t opset);
  const proto::NodeProto& proto;
  const int64_t opset;  // of the node's domain
  const std::string& type() const;

  size_t inputs() const { return in_.size(); }
  bool has(size_t i) const { return i < in_.size() && in_[i]; }
  const Value& in(size_t i) const;  // fails if the input is absent
  Value maybe(size_t i) const { return i < in_.size() ? in_[i] : Value(); }
  const std::vector<Value>& all() const { return in_; }

  size_t outputs() const;       // as the node lists them
  bool wants(size_t i) const;   // output i has a name
  void out(size_t i, Value v);  // sets output i; not wanted: ignored
  void out(Value v) { out(0, std::move(v)); }

  // Attributes. The forms with a default return it if the attribute is absent; the others fail.
  bool has_attr(std::string_view name) const { return attr(name) != nullptr; }
  int64_t i(std::string_view name) const;
  int64_t i(std::string_view name, int64_t otherwise) const;
  double f(std::string_view name) const;
  double f(std::string_view name, double otherwise) const;
  std::string s(std::string_view name) const;
  std::string s(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> ints(std::string_view name) const;  // absent: empty
  std::vector<int64_t> ints(std::string_view name, std::vector<int64_t> otherwise) const;
  std::vector<double> floats(std::string_view name) const;        // absent: empty
  std::vector<std::string> strings(std::string_view name) const;  // absent: empty
  Tensor tensor(std::string_view name) const;
  const proto::GraphProto& graph(std::string_view name) const;
  const proto::AttributeProto* attr(std::string_view name) const;  // NULL: absent

  // Elements of input i, which must be constant: as ONNX allows an input, but our op needs an attribute or a static axis.
  std::vector<int64_t> const_ints(size_t i, const char* what) const;
  std::optional<std::vector<int64_t>> maybe_ints(size_t i) const;  // absent or not constant: none

  // Ends the translation of this node: "node 'x' (Op, opset 13): text".
  [[noreturn]] void fail(const std::string& text, uint32_t code = TW_INVALID_ARGUMENT) const;
  [[noreturn]] void unsupported(const std::string& text) const { fail(text, TW_UNIMPLEMENTED); }

 private:
  friend class Builder;
  Builder& b_;
  std::vector<Value> in_;
};

class Builder {
 public:
  // sink: receives the nodes. parent: the graph around, NULL for the main graph.
  Builder(Model& model, Sink& sink, Builder* parent);
  Builder(const Builder&) = delete;

  // ---- For translators ----
  // Adds a node of our op `type` and returns its first output; `ops` returns the first n. Nodes whose value follows from small
  // constants are not added: the result is then a constant. A failure names the ONNX node.
  Value op(std::string_view type, const std::vector<Value>& in, const Attrs& attrs = {});
  std::vector<Value> ops(std::string_view type, const std::vector<Value>& in, const Attrs& attrs, size_t n);

  Value constant(Tensor t);
  Value scalar(uint32_t dtype, double value) { return constant(Tensor::Scalar(dtype, value)); }
  Value ints(const std::vector<int64_t>& v, uint32_t dtype = TW_INT64) { return constant(Tensor::Vector(dtype, v)); }  // a vector
  Value like(const Value& v, double value) { return scalar(v.dtype(), value); }  // a scalar of v's type
  Value sequence(std::vector<Value> items, uint32_t dtype);
  Value optional(std::vector<Value> item);

  // Common steps; each adds nothing if it would change nothing.
  Value cast(const Value& v, uint32_t dtype);
  Value reshape(const Value& v, const Dims& dims);   // -1 at most once
  Value reshape(const Value& v, const Value& dims);  // dims: an int64 vector
  Value transpose(const Value& v, const std::vector<int64_t>& perm);
  Value unsqueeze(const Value& v, std::vector<int64_t> axes);  // axes of the result, may be negative
  Value squeeze(const Value& v, std::vector<int64_t> axes);
  Value shape(const Value& v);           // int64 vector; elements known as far as dims are
  Value size(const Value& v, int axis);  // int64 scalar
  Value concat(const std::vector<Value>& v, int64_t axis);
  // Elements [begin, end) of a vector or of axis 0.
  Value slice0(const Value& v, int64_t begin, int64_t end);
  Value broadcast(const Value& v, const Value& dims);

  // The value of an ONNX name, also of graphs around; absent for "".
  Value find(const std::string& name);
  void set(const std::string& name, Value v);

  // ---- Control flow: a body of its own (translators of If, Loop, Scan, SequenceMap) ----
  Model& model() { return model_; }
  Sink& sink() { return sink_; }
  Builder* parent() { return parent_; }
  Edge edge(const Value& v);  // emits a constant, captures a value of a graph around
  // Makes a value of an argument or of an edge of this graph.
  Value argument(const std::string& name, uint32_t dtype, const ShapeAttr& shape);
  Value wrap(Edge e);
  // Values of graphs around that this body uses, each with the argument that stands for it.
  const std::vector<std::pair<Value, Value>>& captures() const { return captures_; }
  Value capture(const Value& outer);
  // Translates all nodes of a graph or function body. Failures of nodes go to the model, which reports all of them.
  void Translate(const proto::GraphProto& graph);
  void TranslateNode(const proto::NodeProto& node);
  std::map<std::string, int64_t>& opsets() { return opsets_; }
  // Inside a function that is being inlined: its attributes, by name. NULL: none.
  const std::map<std::string, const proto::AttributeProto*>* function_attrs = nullptr;
  const std::string& node_name() const { return node_name_; }
  // Whether the node that makes the value failed.
  bool failed(const std::string& name) const;

  // Keeps the names of values while a graph is translated in place.
  class Names {
   public:
    explicit Names(Builder& b) : b_(b), values_(b.values_) {}
    ~Names() { b_.values_ = values_; }
    Names(const Names&) = delete;

   private:
    Builder& b_;
    const std::unordered_map<std::string, Value> values_;
  };

 private:
  void Initializers(const proto::GraphProto& graph);
  void Call(const proto::FunctionProto& function, const proto::NodeProto& node);

  Model& model_;
  Sink& sink_;
  Builder* parent_;
  std::map<std::string, int64_t> opsets_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_map<const void*, std::vector<std::pair<Tensor, Edge>>> emitted_;  // constants, by the place of their elements
  std::vector<std::pair<Value, Value>> captures_;
  std::set<std::string> failed_;  // outputs of nodes that failed; nodes that need them are skipped without an error of their own
  std::string node_name_;         // of the node that is translated, for names of ours
};

}  // namespace thalweg::onnx
