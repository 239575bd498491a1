#include "graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "import.h"

namespace thalweg::tflite {
namespace {

constexpr int64_t kMostNodes = 1 << 20;  // a plan has no more
constexpr int64_t kMostOperators = 1 << 20;
constexpr size_t kMostErrors = 20;  // that are listed

// The least and the largest stored number.
std::pair<double, double> Range(uint32_t dtype) {
  switch (dtype) {
    case TW_INT8: return {-128, 127};
    case TW_UINT8: return {0, 255};
    case TW_INT16: return {-32768, 32767};
    case TW_UINT16: return {0, 65535};
    case TW_INT4: return {-8, 7};
    case TW_INT32: return {-2147483648.0, 2147483647.0};
    default: return {std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};
  }
}

// A scalar, or a vector that broadcasts along the tensor's axis of scales.
Value PerAxis(Import& import, const TensorInfo& info, const std::vector<double>& values) {
  if (values.size() == 1) return Value(Tensor::Scalar(TW_FLOAT, values[0]));
  const int64_t rank = static_cast<int64_t>(info.dims.size()), axis = info.quantization.axis;
  if (axis < 0 || axis >= rank)
    throw Error{TW_INVALID_ARGUMENT,
                "its scales are along axis " + std::to_string(axis) + ", but it has " + std::to_string(rank) + " axes"};
  Dims dims(static_cast<size_t>(rank - axis), 1);
  dims[0] = static_cast<int64_t>(values.size());
  CountBytes(import, values.size() * sizeof(float));
  return Value(Tensor::Vector(TW_FLOAT, values).Reshaped(dims));
}

std::vector<double> Zeros(const Quantization& q) { return {q.zeros.begin(), q.zeros.end()}; }
bool AllZero(const Quantization& q) {
  return std::all_of(q.zeros.begin(), q.zeros.end(), [](int64_t z) { return z == 0; });
}

}  // namespace

// ---- Values ----

Value::Value(Tensor constant)
    : dtype_(constant.dtype()), shape_{constant.dims(), true}, constant_(std::make_shared<const Tensor>(std::move(constant))) {}

int64_t Value::dim(int axis) const {
  const int r = rank();
  if (axis < 0) axis += r;
  return r >= 0 && axis >= 0 && axis < r ? shape_.dims[static_cast<size_t>(axis)] : -1;
}

bool Value::static_shape() const {
  return shape_.known_rank && std::all_of(shape_.dims.begin(), shape_.dims.end(), [](int64_t d) { return d >= 0; });
}

// ---- Operators ----

Node::Node(Graph& g, const Operator& o, const OperatorCode& c) : op(o), code(c), g_(g) {}

std::string Node::name() const {
  std::string text = NameOf(code);
  if (!op.outputs.empty()) text += " '" + Printable(out_info().name) + "'";
  return text;
}

void Node::fail(const std::string& text, uint32_t status) const { throw Error{status, name() + ": " + text}; }

const TensorInfo& Node::info(size_t i) const {
  if (!has(i)) fail("input " + std::to_string(i) + " is absent; it has " + std::to_string(inputs()));
  return g_.info(op.inputs[i]);
}

Value Node::in(size_t i) const {
  const TensorInfo& of = info(i);
  return IsQuantized(of) ? g_.real(op.inputs[i]) : g_.stored(op.inputs[i]);
}

Value Node::stored(size_t i) const {
  info(i);
  return g_.stored(op.inputs[i]);
}

Value Node::bias(size_t i) const {
  const TensorInfo& of = info(i);
  if ((of.dtype != TW_INT32 && of.dtype != TW_INT64) || of.quantization.scales.empty()) return in(i);
  return g_.real(op.inputs[i]);
}

std::vector<Value> Node::all() const {
  std::vector<Value> values;
  for (size_t i = 0; i < inputs(); ++i) values.push_back(in(i));
  return values;
}

const TensorInfo& Node::out_info(size_t i) const {
  if (i >= op.outputs.size()) fail("it has " + std::to_string(op.outputs.size()) + " outputs; output " + std::to_string(i) + " is missing");
  return g_.info(op.outputs[i]);
}

uint32_t Node::out_dtype(size_t i) const {
  const TensorInfo& of = out_info(i);
  if (!of.dtype) unsupported("its output has " + TypeName(of.type) + ", which is no element type here");
  return of.dtype;
}

void Node::out(size_t i, Value v) {
  const TensorInfo& of = out_info(i);
  if (IsQuantized(of) && v.dtype() == TW_FLOAT) return g_.set_real(op.outputs[i], std::move(v));
  if (v.dtype() != out_dtype(i)) {
    fail("output " + std::to_string(i) + " is declared " + importer::DtypeName(of.dtype) + ", but its inputs give " +
         importer::DtypeName(v.dtype()));
  }
  g_.set_stored(op.outputs[i], std::move(v));
}

// ---- Nodes ----

std::vector<Value> Graph::ops(std::string_view type, const std::vector<Value>& in, const Attrs& attrs, size_t n) {
  const std::vector<Edge> inputs = edges(in);
  if (++import_.nodes > kMostNodes)
    throw Error{TW_RESOURCE_EXHAUSTED, "the model's graph has more than " + std::to_string(kMostNodes) + " nodes"};
  const Edge first = sink_.Emit(std::string(type), name_, inputs, attrs);
  std::vector<Value> results;
  for (size_t i = 0; i < n; ++i) {
    const Edge e = i ? sink_.Output(first, static_cast<uint32_t>(i)) : first;
    uint32_t dtype = 0;
    ShapeAttr shape{{}, false};
    sink_.Describe(e, &dtype, &shape);
    results.emplace_back(e, dtype, std::move(shape));
  }
  return results;
}

Value Graph::op(std::string_view type, const std::vector<Value>& in, const Attrs& attrs) { return ops(type, in, attrs, 1)[0]; }

Edge Graph::edge(const Value& v) {
  if (!v) throw Error{TW_INTERNAL, "a value is absent"};
  if (!v.constant()) return v.edge();
  auto& same = emitted_[v.constant()->identity()];
  for (const auto& [tensor, made] : same) {
    if (tensor.dtype() == v.dtype() && tensor.dims() == v.constant()->dims()) return made;
  }
  const Edge made = sink_.Constant(*v.constant(), name_.empty() ? "constant" : name_ + "/constant");
  same.emplace_back(*v.constant(), made);
  return made;
}

std::vector<Edge> Graph::edges(const std::vector<Value>& values) {
  std::vector<Edge> all;
  for (const Value& v : values) all.push_back(edge(v));
  return all;
}

Value Graph::cast(const Value& v, uint32_t dtype) { return v.dtype() == dtype ? v : op("Cast", {v}, {{"DstT", Dtype{dtype}}}); }

Value Graph::reshape(const Value& v, const Dims& dims) {
  if (v.static_shape() && v.shape().dims == dims) return v;
  const bool whole = std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= 0; });
  if (v.constant() && whole) return Value(v.constant()->Reshaped(dims));
  return op("Reshape", {v, ints(dims)});
}

Value Graph::transpose(const Value& v, const std::vector<int64_t>& perm) { return op("Transpose", {v, ints(perm)}); }

Value Graph::clip(const Value& v, double least, double most) { return op("ClipByValue", {v, like(v, least), like(v, most)}); }

Value Graph::activated(const Node& n, const Value& v, int64_t activation) {
  switch (activation) {
    case 0: return v;
    case 1: return op("Relu", {v});
    case 2: return clip(v, -1, 1);
    case 3: return op("Relu6", {v});
    case 4: return op("Tanh", {v});
    default: n.unsupported("fused activation " + std::to_string(activation) + " is not supported; 0 to 4 are");
  }
}

// ---- Tensors ----

bool IsQuantized(const TensorInfo& info) {
  return !info.quantization.scales.empty() &&
         (info.dtype == TW_INT8 || info.dtype == TW_UINT8 || info.dtype == TW_INT16 || info.dtype == TW_INT4);
}

Tensor Dequantized(const Tensor& stored, const TensorInfo& info) {
  const Quantization& q = info.quantization;
  Tensor real(TW_FLOAT, stored.dims());
  if (!stored.count()) return real;  // the sizes behind a zero have no bound
  auto* to = static_cast<float*>(real.mutable_data());
  int64_t inner = stored.count();
  if (q.scales.size() > 1) {
    const auto axis = static_cast<size_t>(q.axis);
    if (q.axis < 0 || axis >= stored.dims().size() || stored.dims()[axis] != static_cast<int64_t>(q.scales.size())) {
      throw Error{TW_INVALID_ARGUMENT, "the constant '" + Printable(info.name) + "' of shape " + importer::Text(stored.dims()) + " has " +
                                           std::to_string(q.scales.size()) + " scales along axis " + std::to_string(q.axis)};
    }
    inner = 1;
    for (size_t i = axis + 1; i < stored.dims().size(); ++i) inner *= stored.dims()[i];
  }
  for (int64_t i = 0; i < stored.count(); ++i) {
    const auto k = static_cast<size_t>(i / inner) % q.scales.size();
    to[i] = static_cast<float>(q.scales[k] * (stored.real(i) - static_cast<double>(q.zeros[k])));
  }
  return real;
}

// Strings are stored as their number, the places of their beginnings and of the end, and their bytes.
Tensor Strings(const TensorInfo& info, std::string_view bytes) {
  const importer::FlatBuffer b(bytes, "a constant of strings", 0);
  const auto n = static_cast<uint64_t>(importer::CountOf(info.dims));
  if (b.number<uint32_t>(0) != n) b.Fail(0, "it does not hold " + std::to_string(n) + " strings");
  std::vector<std::string> values;
  for (uint64_t i = 0; i < n; ++i) {
    const auto begin = b.number<uint32_t>(4 + 4 * i), end = b.number<uint32_t>(8 + 4 * i);
    if (end < begin || end > bytes.size()) b.Fail(4 + 4 * i, "a string lies behind the end");
    values.emplace_back(bytes.substr(begin, end - begin));
  }
  return Tensor::String(info.dims, std::move(values));
}

// Two elements in a byte, the first one in the lower half.
Tensor Nibbles(const TensorInfo& info, std::string_view bytes) {
  Tensor t(TW_INT4, info.dims);
  auto* to = static_cast<int8_t*>(t.mutable_data());
  for (int64_t i = 0; i < t.count(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[static_cast<size_t>(i / 2)]);
    const int nibble = (i % 2 ? byte >> 4 : byte) & 15;
    to[i] = static_cast<int8_t>(nibble < 8 ? nibble : nibble - 16);
  }
  return t;
}

Value Graph::Constant(int64_t tensor) {
  const TensorInfo& of = info(tensor);
  const std::string named = "the constant '" + Printable(of.name) + "'";
  const std::string_view bytes = import_.file.buffers.empty() ? std::string_view() : import_.file.buffers[of.buffer];
  if (!of.dtype) throw Error{TW_UNIMPLEMENTED, named + " has " + TypeName(of.type) + ", which is no element type here"};
  const bool whole = std::all_of(of.dims.begin(), of.dims.end(), [](int64_t d) { return d >= 0; });
  if (!whole) throw Error{TW_INVALID_ARGUMENT, named + " has shape " + importer::Text(of.dims)};
  if (of.sparsity) return Value(Dense(import_, of));
  if (of.dtype == TW_STRING) {
    CountBytes(import_, bytes.size() + static_cast<uint64_t>(importer::CountOf(of.dims)) * sizeof(std::string));
    return Value(Strings(of, bytes));
  }
  const auto count = static_cast<uint64_t>(importer::CountOf(of.dims));
  const uint64_t element = importer::ElementBytes(of.dtype), needed = of.dtype == TW_INT4 ? (count + 1) / 2 : count * element;
  if (!element) throw Error{TW_UNIMPLEMENTED, named + " is " + importer::DtypeName(of.dtype) + ", of which there are no constants"};
  if (bytes.size() != needed) {
    throw Error{TW_INVALID_ARGUMENT, named + " has " + std::to_string(bytes.size()) + " bytes; its shape " + importer::Text(of.dims) +
                                         " of " + importer::DtypeName(of.dtype) + " needs " + std::to_string(needed)};
  }
  if (of.dtype == TW_INT4) {
    CountBytes(import_, count);
    return Value(Nibbles(of, bytes));
  }
  return Value(Tensor(of.dtype, of.dims, bytes.data(), import_.file.keep));
}

Value Graph::stored(int64_t tensor) {
  const auto found = stored_.find(tensor);
  if (found != stored_.end()) return found->second;
  const TensorInfo& of = info(tensor);
  const auto real = real_.find(tensor);
  Value made;
  if (real != real_.end()) {
    const auto [least, most] = Range(of.dtype);
    Value v = op("Round", {op("RealDiv", {real->second, PerAxis(import_, of, of.quantization.scales)})});
    if (!AllZero(of.quantization)) v = op("AddV2", {v, PerAxis(import_, of, Zeros(of.quantization))});
    made = cast(clip(v, least, most), of.dtype);
  } else {
    const bool empty = import_.file.buffers.empty() || import_.file.buffers[of.buffer].empty();
    const bool none = std::find(of.dims.begin(), of.dims.end(), 0) != of.dims.end();
    if (of.variable && empty) {
      // Every call starts with zeros.
      const bool whole = std::all_of(of.dims.begin(), of.dims.end(), [](int64_t d) { return d >= 0; });
      if (!whole || !importer::ElementBytes(of.dtype))
        throw Error{TW_UNIMPLEMENTED, "the state '" + Printable(of.name) + "' has shape " + importer::Text(of.dims)};
      made = op("Fill", {ints(of.dims), scalar(of.dtype, 0)});
    } else if (empty && !none) {
      throw Error{TW_INVALID_ARGUMENT, "tensor '" + Printable(of.name) + "' is used before an operator makes it"};
    } else {
      made = Constant(tensor);
    }
  }
  stored_.insert_or_assign(tensor, made);
  return made;
}

Value Graph::real(int64_t tensor) {
  const auto found = real_.find(tensor);
  if (found != real_.end()) return found->second;
  const TensorInfo& of = info(tensor);
  const Value v = stored(tensor);
  Value made;
  if (v.constant()) {
    CountBytes(import_, static_cast<uint64_t>(v.constant()->count()) * 4);
    made = Value(Dequantized(*v.constant(), of));
  } else {
    made = cast(v, TW_FLOAT);
    if (!AllZero(of.quantization)) made = op("Sub", {made, PerAxis(import_, of, Zeros(of.quantization))});
    made = op("Mul", {made, PerAxis(import_, of, of.quantization.scales)});
  }
  real_.insert_or_assign(tensor, made);
  return made;
}

void Graph::set_stored(int64_t tensor, Value v) {
  real_.erase(tensor);
  stored_.insert_or_assign(tensor, std::move(v));
}

void Graph::set_real(int64_t tensor, Value v) {
  const TensorInfo& of = info(tensor);
  const Quantization& q = of.quantization;
  const auto [least, most] = Range(of.dtype);
  const Value scale = PerAxis(import_, of, q.scales);
  Value steps = op("Round", {op("RealDiv", {v, scale})});
  if (q.zeros.size() == 1 || AllZero(q)) {
    const auto zero = static_cast<double>(q.zeros[0]);
    steps = clip(steps, least - zero, most - zero);
  } else {
    const Value zeros = PerAxis(import_, of, Zeros(q));
    steps = op("Sub", {clip(op("AddV2", {steps, zeros}), least, most), zeros});
  }
  stored_.erase(tensor);
  real_.insert_or_assign(tensor, op("Mul", {steps, scale}));
}

// ---- Subgraphs ----

std::vector<Value> Graph::arguments(const std::vector<ShapeAttr>* shapes) {
  std::vector<Value> all;
  for (size_t i = 0; i < subgraph_.inputs.size(); ++i) {
    const TensorInfo& of = info(subgraph_.inputs[i]);
    const std::string name = Printable(of.name);
    if (!of.dtype) throw Error{TW_UNIMPLEMENTED, "input '" + name + "' has " + TypeName(of.type) + ", which is no element type here"};
    const ShapeAttr shape = shapes ? (*shapes)[i] : ShapeAttr{of.dims, true};
    if (++import_.nodes > kMostNodes) throw Error{TW_RESOURCE_EXHAUSTED, "the model has too many inputs"};
    const Edge e = sink_.Argument(importer::CleanName(name), of.dtype, shape);
    all.emplace_back(e, of.dtype, shape);
    set_stored(subgraph_.inputs[i], all.back());
  }
  return all;
}

void Graph::Translate(const Operator& op) {
  Node n(*this, op, import_.file.codes[op.code]);
  name_ = op.outputs.empty() ? "" : importer::CleanName(n.out_info().name.substr(0, 200));
  sink_.Place(n.name());
  const Entry* entry = FindTranslator(n.code.builtin);
  if (!entry) n.unsupported("the operator is unknown");
  try {
    entry->run(*this, n);
  } catch (const Error& e) {
    const std::string place = n.name() + ": ";
    if (e.code == TW_OK || e.text.rfind(place, 0) == 0) throw;
    throw Error{e.code, place + e.text};
  }
  for (const int64_t t : op.outputs) {
    if (!made(t) && !failed(t)) n.fail("the importer gives no value to its output '" + Printable(info(t).name) + "'", TW_INTERNAL);
  }
}

void Graph::translate() {
  for (const Operator& op : subgraph_.operators) {
    if (++import_.operators > kMostOperators) {
      throw Error{TW_RESOURCE_EXHAUSTED,
                  "the model has more than " + std::to_string(kMostOperators) + " operators, counted once for each use of a subgraph"};
    }
    const bool skip = std::any_of(op.inputs.begin(), op.inputs.end(), [&](int64_t t) { return t >= 0 && failed(t); });
    if (!skip) {
      try {
        Translate(op);
        continue;
      } catch (const Error& e) {
        if (e.code == TW_OK || e.code == TW_RESOURCE_EXHAUSTED) throw;
        if (!import_.code) import_.code = e.code;
        if (import_.errors.size() < kMostErrors) import_.errors.push_back(e.text);
      }
    }
    failed_.insert(op.outputs.begin(), op.outputs.end());
  }
}

std::vector<Value> Graph::results() {
  std::vector<Value> all;
  for (const int64_t t : subgraph_.outputs) {
    if (failed(t)) throw Error{TW_OK, ""};
    all.push_back(stored(t));
    CountBytes(import_, 2 * (sizeof(Value) + all.back().shape().dims.size() * sizeof(int64_t)));
  }
  return all;
}

}  // namespace thalweg::tflite
