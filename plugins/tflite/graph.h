// What translators use: one function for each operator of TensorFlow Lite, which adds nodes of ours. translators/files.inc lists the files;
// each has an array of Entry. Threads: one thread at a time.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "../common/importer/sink.h"
#include "file.h"

namespace thalweg::tflite {

using importer::Attrs;
using importer::Edge;
using importer::Func;
using importer::ShapeAttr;
using importer::Sink;
using Dtype = importer::Type;  // an attribute that is an element type: {"DstT", Dtype{TW_FLOAT}}

class Graph;
struct Import;  // import.h: the file, the errors found so far, and counts

// A value of one graph: an edge, or a constant that is emitted at its first use. Cheap to copy. A default-constructed Value is absent.
class Value {
 public:
  Value() = default;
  Value(Edge edge, uint32_t dtype, ShapeAttr shape) : edge_(edge), dtype_(dtype), shape_(std::move(shape)) {}
  explicit Value(Tensor constant);
  explicit operator bool() const { return edge_ || constant_; }
  uint32_t dtype() const { return dtype_; }
  int rank() const { return shape_.known_rank ? static_cast<int>(shape_.dims.size()) : -1; }  // -1: unknown
  const ShapeAttr& shape() const { return shape_; }
  int64_t dim(int axis) const;                                // -1: unknown; a negative axis counts from the end
  bool static_shape() const;                                  // rank and every size are known
  const Tensor* constant() const { return constant_.get(); }  // NULL for other values
  Edge edge() const { return edge_; }                         // 0: a constant

 private:
  Edge edge_ = 0;
  uint32_t dtype_ = 0;
  ShapeAttr shape_{{}, false};
  std::shared_ptr<const Tensor> constant_;
};

// One operator while it is translated.
class Node {
 public:
  Node(Graph& g, const Operator& op, const OperatorCode& code);
  const Operator& op;
  const OperatorCode& code;

  size_t inputs() const { return op.inputs.size(); }
  bool has(size_t i) const { return i < op.inputs.size() && op.inputs[i] >= 0; }
  // Real numbers of a quantised tensor, else the values as they are. `in` fails if the input is absent.
  Value in(size_t i) const;
  Value maybe(size_t i) const { return has(i) ? in(i) : Value(); }
  std::vector<Value> all() const;
  // The same of a bias, whose quantised form has 32 or 64 bits.
  Value bias(size_t i) const;
  // The numbers as they are stored.
  Value stored(size_t i) const;
  const TensorInfo& info(size_t i) const;  // of input i
  size_t outputs() const { return op.outputs.size(); }
  const TensorInfo& out_info(size_t i = 0) const;
  uint32_t out_dtype(size_t i = 0) const;  // fails for a type that we do not have
  void out(size_t i, Value v);
  void out(Value v) { out(0, std::move(v)); }

  // Options, by their numbers in the table of the operator's options.
  int64_t i(unsigned field, int32_t otherwise = 0) const { return op.options.number<int32_t>(field, otherwise); }
  int64_t byte(unsigned field, int8_t otherwise = 0) const { return op.options.number<int8_t>(field, otherwise); }  // an enum
  bool flag(unsigned field, bool otherwise = false) const { return op.options.flag(field, otherwise); }
  double f(unsigned field, float otherwise = 0) const { return op.options.real(field, otherwise); }

  // Ends the translation of this operator: "CONV_2D 'name of its output': text".
  [[noreturn]] void fail(const std::string& text, uint32_t code = TW_INVALID_ARGUMENT) const;
  [[noreturn]] void unsupported(const std::string& text) const { fail(text, TW_UNIMPLEMENTED); }
  std::string name() const;

 private:
  Graph& g_;
};

// Fills one graph, the main one or the body of a function, with one subgraph of the file.
class Graph {
 public:
  Graph(Import& import, Sink& sink, const Subgraph& subgraph) : import_(import), sink_(sink), subgraph_(subgraph) {}
  Graph(const Graph&) = delete;

  // Adds a node of our op `type` and returns its first output; `ops` returns the first n.
  Value op(std::string_view type, const std::vector<Value>& in, const Attrs& attrs = {});
  std::vector<Value> ops(std::string_view type, const std::vector<Value>& in, const Attrs& attrs, size_t n);
  Value constant(Tensor t) { return Value(std::move(t)); }
  Value scalar(uint32_t dtype, double value) { return Value(Tensor::Scalar(dtype, value)); }
  Value like(const Value& v, double value) { return scalar(v.dtype(), value); }                                     // a scalar of v's type
  Value ints(const std::vector<int64_t>& v, uint32_t dtype = TW_INT32) { return Value(Tensor::Vector(dtype, v)); }  // a vector

  // Common steps; each adds nothing if it would change nothing.
  Value cast(const Value& v, uint32_t dtype);
  Value reshape(const Value& v, const Dims& dims);  // -1 at most once
  Value transpose(const Value& v, const std::vector<int64_t>& perm);
  Value clip(const Value& v, double least, double most);
  Value shape(const Value& v) { return op("Shape", {v}, {{"out_type", Dtype{TW_INT32}}}); }
  // What the operator's options call a fused activation.
  Value activated(const Node& n, const Value& v, int64_t activation);

  // Tensors of the subgraph. A quantised one has two forms, of which each is made from the other when it is needed.
  const TensorInfo& info(int64_t tensor) const { return subgraph_.tensors[static_cast<size_t>(tensor)]; }
  Value real(int64_t tensor);
  Value stored(int64_t tensor);
  void set_stored(int64_t tensor, Value v);
  // v: real numbers, which are rounded to those that the tensor can hold.
  void set_real(int64_t tensor, Value v);
  bool failed(int64_t tensor) const { return failed_.count(tensor) != 0; }
  bool made(int64_t tensor) const { return stored_.count(tensor) || real_.count(tensor); }

  // Adds an argument for each input of the subgraph. shapes: of the values that the caller passes; none: as the file declares them.
  std::vector<Value> arguments(const std::vector<ShapeAttr>* shapes);
  // Translates all operators. Failures go to the import, which reports all of them.
  void translate();
  std::vector<Value> results();  // the outputs as they are stored
  Edge edge(const Value& v);     // emits a constant
  std::vector<Edge> edges(const std::vector<Value>& values);

  Import& import() { return import_; }
  Sink& sink() { return sink_; }
  const Subgraph& subgraph() const { return subgraph_; }

 private:
  void Translate(const Operator& op);
  Value Constant(int64_t tensor);

  Import& import_;
  Sink& sink_;
  const Subgraph& subgraph_;
  std::unordered_map<int64_t, Value> stored_, real_;
  std::unordered_set<int64_t> failed_;  // outputs of operators that failed; operators that need them are left out without an error
  std::unordered_map<const void*, std::vector<std::pair<Tensor, Edge>>> emitted_;
  std::string name_;  // wanted for the nodes of the current operator
};

// Whether elements stand for real numbers by a scale.
bool IsQuantized(const TensorInfo& info);
// A constant's real numbers.
Tensor Dequantized(const Tensor& stored, const TensorInfo& info);
// A constant with its zeros, of one that is stored without them.
Tensor Dense(Import& import, const TensorInfo& info);

// ---- The table of translators ----

using Translate = void (*)(Graph& g, Node& n);

struct Entry {
  int32_t builtin;  // its number in the format
  const char* name;
  Translate run;
};

struct Family {
  const Entry* begin;
  const Entry* end;
};

// NULL if there is none.
const Entry* FindTranslator(int32_t builtin);
// "CONV_2D", "custom operator 'x'" or "operator 123".
std::string NameOf(const OperatorCode& code);

// For each line TRANSLATORS(name) of translators/files.inc, the file translators/<name>.cc defines `Family name_translators()`.
#define TRANSLATORS(name) Family name##_translators();
#include "translators/files.inc"
#undef TRANSLATORS

}  // namespace thalweg::tflite
