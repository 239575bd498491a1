// What translators use: one function for each StableHLO op, which adds nodes of ours for one operation. translators/files.inc lists the
// files; each has an array of Entry. Threads: one thread at a time.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../common/importer/sink.h"
#include "module.h"

namespace thalweg::stablehlo {

using importer::Attrs;
using importer::Edge;
using importer::Func;
using importer::ShapeAttr;
using importer::Sink;
using Dtype = importer::Type;  // an attribute that is an element type: {"DstT", Dtype{TW_FLOAT}}

class Translation;

// A value: a tensor of the graph, or a constant that is emitted at its first use. Cheap to copy. A default-constructed Value is absent.
// A token is a Value too, without an edge.
class Value {
 public:
  Value() = default;
  explicit operator bool() const { return info_ != nullptr; }
  bool token() const { return info_->token; }
  uint32_t dtype() const { return info_->dtype; }  // TW_FLOAT, ...
  // What is known of the shape: by the module's types and by our shape rules.
  int rank() const { return info_->shape.known_rank ? static_cast<int>(info_->shape.dims.size()) : -1; }  // -1: unknown
  const Dims& dims() const { return info_->shape.dims; }  // -1: an unknown size; REQUIRES: rank() >= 0
  const ShapeAttr& shape() const { return info_->shape; }
  int64_t dim(int axis) const;  // -1: unknown; a negative axis counts from the end
  bool static_shape() const;    // rank and every size are known
  int64_t count() const;        // elements; -1: unknown
  // The elements, if they are known now. A splat has them only if it is small.
  const Tensor* constant() const { return info_->constant.get(); }
  // The one element of a constant whose elements are all the same, as a scalar; NULL for other values.
  const Tensor* splat() const { return info_->splat.get(); }
  // Elements of an integer or bool constant; fails with Error if the value is not constant (known() is false).
  std::vector<int64_t> integers() const;
  bool known() const { return info_->constant || info_->splat; }

  struct Info {
    bool token = false;
    Translation* owner = nullptr;  // the graph that `edge` belongs to
    Edge edge = 0;                 // 0: a constant that is not emitted
    uint32_t dtype = 0;
    ShapeAttr shape{{}, false};
    std::shared_ptr<const Tensor> constant, splat;
  };
  explicit Value(std::shared_ptr<const Info> info) : info_(std::move(info)) {}
  const Info& info() const { return *info_; }

 private:
  std::shared_ptr<const Info> info_;
};

// One operation while it is translated.
class Op {
 public:
  Op(Translation& t, const Operation& operation, const Function& function);
  const Operation& operation;
  const Function& function;  // whose values the operation's ids are
  std::string_view name() const { return operation.name; }

  size_t inputs() const { return operation.operands.size(); }
  const Value& in(size_t i) const;      // fails if there is no operand i
  const Type& in_type(size_t i) const;  // as the module declares it
  std::vector<Value> all() const;       // all operands
  std::vector<Value> some(size_t begin, size_t count) const;
  size_t outputs() const { return operation.results.size(); }
  const Type& out_type(size_t i = 0) const;
  // The declared sizes of result i, and our element type for it.
  ShapeAttr out_shape(size_t i = 0) const;
  uint32_t out_dtype(size_t i = 0) const { return DtypeOf(out_type(i).element); }
  // Sets result i. Fails if v's element type is not the declared one or a known size differs from a declared one.
  void out(size_t i, Value v);
  void out(Value v) { out(0, std::move(v)); }

  // Attributes. The forms with a default return it if the attribute is absent; the others fail. A form fails on an attribute of another
  // kind.
  const Attribute* attr(std::string_view name) const;  // NULL: absent
  bool has(std::string_view name) const { return attr(name) != nullptr; }
  int64_t i(std::string_view name) const;  // an integer, a bool, or a tensor of one element
  int64_t i(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const;
  double f(std::string_view name) const;
  std::string s(std::string_view name) const;  // a string, a symbol, or the name of an enum's case
  std::string s(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> ints(std::string_view name) const;  // integers of a tensor (all dims flat), an array, or one integer
  std::vector<int64_t> ints(std::string_view name, std::vector<int64_t> otherwise) const;  // absent: otherwise
  std::vector<std::string> strings(std::string_view name) const;                           // of an array; absent: empty
  const Type& type(std::string_view name) const;
  Value tensor(std::string_view name) const;  // an attribute that is a tensor, as a constant

  const Block& body(size_t i = 0) const;  // fails if there is no region i, or if it is empty
  size_t bodies() const { return operation.regions.size(); }

  // Ends the translation of this operation: "stablehlo.add at byte 1234 (loc "x"): text".
  [[noreturn]] void fail(const std::string& text, uint32_t code = TW_INVALID_ARGUMENT) const;
  [[noreturn]] void unsupported(const std::string& text) const { fail(text, TW_UNIMPLEMENTED); }

 private:
  Translation& t_;
  std::vector<Value> in_;
};

struct Import;  // import.h: the module, the errors found so far, and counts

// Fills one graph: the main graph or the body of a function of ours. Values of graphs around are captured: they become arguments.
class Translation {
 public:
  // sink: receives the nodes. parent: the graph around, NULL for the main graph.
  Translation(Import& import, Sink& sink, Translation* parent);
  Translation(const Translation&) = delete;

  // ---- Nodes ----
  // Adds a node of our op `type` and returns its first output; `ops` returns the first n.
  Value op(std::string_view type, const std::vector<Value>& in, const Attrs& attrs = {});
  std::vector<Value> ops(std::string_view type, const std::vector<Value>& in, const Attrs& attrs, size_t n);

  Value constant(Tensor t);
  Value fill(const Tensor& scalar, const Dims& dims);  // a constant whose elements are all `scalar`
  Value scalar(uint32_t dtype, double value) { return constant(Tensor::Scalar(dtype, value)); }
  Value ints(const std::vector<int64_t>& v, uint32_t dtype = TW_INT64) { return constant(Tensor::Vector(dtype, v)); }  // a vector
  Value like(const Value& v, double value) { return scalar(v.dtype(), value); }  // a scalar of v's type
  Value token();
  // The same value with what `shape` knows besides; it adds no node.
  Value shaped(const Value& v, const ShapeAttr& shape);

  // Common steps; each adds nothing if it would change nothing.
  Value cast(const Value& v, uint32_t dtype);
  Value reshape(const Value& v, const Dims& dims);   // -1 at most once
  Value reshape(const Value& v, const Value& dims);  // dims: a vector of integers
  // To the declared sizes of a result. `dims`: a vector that gives them, used if more than one is unknown; it may be absent.
  Value reshape_to(const Value& v, const ShapeAttr& shape, const Value& dims);
  Value transpose(const Value& v, const std::vector<int64_t>& perm);
  Value expand(const Value& v, const std::vector<int64_t>& axes);   // adds axes of size 1; sorted axes of the result
  Value squeeze(const Value& v, const std::vector<int64_t>& axes);  // removes axes of size 1
  Value shape(const Value& v);                                      // int64 vector; constant if all sizes are known
  Value size(const Value& v, int axis);                             // int64 scalar; constant if the size is known
  Value concat(const std::vector<Value>& v, int64_t axis);
  Value broadcast(const Value& v, const Value& dims);  // dims: a vector of integers
  Value flat(const std::vector<Value>& scalars);       // a vector of scalars of one type

  // ---- Bodies ----
  // Translates the operations of a block into this graph and returns what its terminator returns. args: the values of its arguments.
  // `op` is the operation that has the block. May be called several times for one block.
  std::vector<Value> inlined(const Op& op, const Block& block, const std::vector<Value>& args);
  // The same with declared types of its own: those of `types`, a function with the same ids. For bodies whose scalars stand for many
  // elements.
  std::vector<Value> inlined_as(const Function& types, const Op& op, const Block& block, const std::vector<Value>& args);
  // Translates a function of the module into this graph.
  std::vector<Value> call(const Op& op, std::string_view function, const std::vector<Value>& args);
  // A part of a loop or condition: adds nodes to `body`, which is a graph of its own, given the variables.
  using Part = std::function<std::vector<Value>(Translation& body, const std::vector<Value>& variables)>;
  // Runs `step` as long as `go`, which returns one bool scalar, is true; returns the last variables. The variables keep their shapes as
  // far as all iterations agree on them. Tokens may be among them.
  std::vector<Value> run_while(const std::vector<Value>& first, const Part& go, const Part& step);
  // Runs one of two parts, which get no variables. Both must return values of the same types.
  std::vector<Value> run_if(const Value& condition, const Part& then, const Part& otherwise);
  // Runs part `index`, an int32 scalar; the last one for an index outside.
  std::vector<Value> run_case(const Value& index, const std::vector<Part>& parts);

  // Makes every run fail with `data` if `condition`, a bool scalar, is false. Only in the main graph; fails in others.
  void check(const Value& condition, const std::vector<Value>& data);

  // ---- What translation.cc uses ----
  Import& import() { return import_; }
  Edge edge(const Value& v);  // emits a constant, captures a value of a graph around
  Value argument(const std::string& name, uint32_t dtype, const ShapeAttr& shape);
  Value wrap(Edge e);
  Value capture(const Value& outer);
  const std::vector<std::pair<Value, Value>>& captures() const { return captures_; }
  Value find(Id id);
  void set(Id id, Value v);
  void translate(const Operation& operation);

 private:
  struct Graph;
  Graph Begin();
  std::vector<Value> Captured(const std::vector<Graph*>& graphs);
  static std::vector<Edge> EdgesOf(Translation& t, const std::vector<Value>& values);

  Import& import_;
  Sink& sink_;
  Translation* parent_;
  const Function* types_ = nullptr;     // declared types, if they are not those of function_
  const Function* function_ = nullptr;  // whose values `values_` are
  std::unordered_map<Id, Value> values_;
  std::unordered_map<const void*, std::vector<std::pair<Tensor, Edge>>> emitted_;
  std::unordered_map<const void*, std::pair<Value, Edge>> filled_;
  std::unordered_set<Id> failed_;  // results of operations that failed; operations that need them are left out without an error
  std::vector<std::pair<Value, Value>> captures_;
};

// ---- The table of translators ----

using Translate = void (*)(Translation& t, Op& op);

struct Entry {
  const char* op;  // "stablehlo.add"
  Translate run;
};

struct Family {
  const Entry* begin;
  const Entry* end;
};

// The translator of an op; NULL if there is none.
Translate FindTranslator(std::string_view op);

// For each line TRANSLATORS(name) of translators/files.inc, the file translators/<name>.cc defines `Family name_translators()`.
#define TRANSLATORS(name) Family name##_translators();
#include "translators/files.inc"
#undef TRANSLATORS

}  // namespace thalweg::stablehlo
