#include "net.h"

#include <cstring>
#include <numeric>

namespace thalweg::cli::onnx {
namespace {

Message ShapeMessage(const tw_shape& shape, const char* const* symbols) {
  Message m;
  for (int32_t i = 0; i < shape.rank; ++i) {
    Message dim;
    if (shape.dims[i] >= 0)
      dim.Number(1, uint64_t(shape.dims[i]));
    else if (symbols && symbols[i] && *symbols[i])
      dim.Bytes(2, symbols[i]);
    m.Part(1, dim);
  }
  return m;
}

Message ValueMessage(const Name& name, uint32_t dtype, const tw_shape& shape, const char* const* symbols) {
  if (ElementType(dtype) == 0) throw NoTwin{std::string("'") + name + "' is " + tw_dtype_name(dtype) + ", a type that ONNX does not have"};
  Message tensor, type, m;
  tensor.Number(1, uint64_t(ElementType(dtype)));
  if (shape.rank >= 0) tensor.Part(2, ShapeMessage(shape, symbols));
  return m.Bytes(1, name).Part(2, type.Part(1, tensor));
}

}  // namespace

Name Net::Unique(const Name& wanted) {
  Name name = wanted;
  for (int k = 1; !taken_.insert(name).second; ++k) name = wanted + "_" + std::to_string(k);
  return name;
}

std::vector<Name> Net::AddMany(const char* op, const std::vector<Name>& inputs, size_t outputs, const std::vector<Attr>& attrs) {
  std::vector<Name> names;
  Message node;
  for (const Name& input : inputs) node.Bytes(1, input);
  read_.insert(inputs.begin(), inputs.end());
  for (size_t i = 0; i < outputs; ++i) {
    names.push_back(Unique(prefix_));
    node.Bytes(2, names.back());
  }
  node.Bytes(3, names[0]).Bytes(4, op);
  for (const Attr& attr : attrs) node.Part(5, AttributeMessage(attr));
  graph_.Part(1, node);
  return names;
}

void Net::AddNamed(const char* op, const std::vector<Name>& inputs, const Name& output) {
  Message node;
  for (const Name& input : inputs) node.Bytes(1, input);
  read_.insert(inputs.begin(), inputs.end());
  graph_.Part(1, node.Bytes(2, output).Bytes(3, output).Bytes(4, op));
}

Name Net::Constant(const tw::Tensor& tensor, const Name& name) {
  const Name own = name.empty() ? Unique(prefix_) : name;
  const tw::Tensor host = tensor.to_host();
  if (ElementType(host.dtype()) == 0)
    throw NoTwin{std::string("a constant is ") + tw_dtype_name(host.dtype()) + ", a type that ONNX does not have"};
  Message m;
  for (const int64_t dim : host.dims()) m.Number(1, uint64_t(dim));
  m.Number(2, uint64_t(ElementType(host.dtype()))).Bytes(8, own);
  if (host.dtype() == TW_STRING) {
    for (uint64_t i = 0; i < host.count(); ++i) m.Bytes(6, host.string(i));
  } else {
    m.Bytes(9, {static_cast<const char*>(tw_tensor_data(host.c())), tw_tensor_bytes(host.c())});
  }
  constants_.emplace_back(own, std::move(m));
  return own;
}

Name Net::Ints(const Sizes& values) {
  Name& name = ints_[values];
  if (name.empty()) name = Constant(tw::Tensor({int64_t(values.size())}, values), Unique("ints"));
  return name;
}

Name Net::Scalar(uint32_t dtype, double value) {
  Name& name = scalars_[{dtype, value}];
  if (!name.empty()) return name;
  switch (dtype) {
    case TW_FLOAT: return name = Constant(tw::Tensor(float(value)), Unique("scalar"));
    case TW_DOUBLE: return name = Constant(tw::Tensor(value), Unique("scalar"));
    case TW_INT32: return name = Constant(tw::Tensor(int32_t(value)), Unique("scalar"));
    case TW_INT64: return name = Constant(tw::Tensor(int64_t(value)), Unique("scalar"));
    default: {
      const Name plain = Constant(tw::Tensor(float(value)), Unique("scalar"));
      return name = Cast(plain, dtype);
    }
  }
}

Name Net::Cast(const Name& value, uint32_t dtype) {
  if (ElementType(dtype) == 0) throw NoTwin{std::string("ONNX has no type ") + tw_dtype_name(dtype)};
  return Add("Cast", {value}, {{"to", ElementType(dtype)}});
}

void Net::Input(const Name& name, uint32_t dtype, const tw_shape& shape, const char* const* symbols) {
  graph_.Part(11, ValueMessage(name, dtype, shape, symbols));
  read_.insert(name);  // a constant of that name is its default
}

void Net::Output(const Name& name, uint32_t dtype, const tw_shape& shape, const char* const* symbols) {
  graph_.Part(12, ValueMessage(name, dtype, shape, symbols));
}

std::string Net::Model(const std::string& producer_version) const {
  constexpr uint64_t kIr = 8, kOpset = 18;
  Message graph = graph_, opset, model;
  graph.Bytes(2, "main");
  for (const auto& [name, constant] : constants_) {
    if (read_.count(name)) graph.Part(5, constant);
  }
  model.Number(1, kIr).Bytes(2, "thalweg").Bytes(3, producer_version).Part(7, graph);
  return model.Part(8, opset.Bytes(1, "").Number(2, kOpset)).bytes();
}

Sizes ToFirst(int32_t rank) {
  Sizes order(size_t(rank), 0);
  order[1] = rank - 1;
  for (int32_t axis = 2; axis < rank; ++axis) order[size_t(axis)] = axis - 1;
  return order;
}

Sizes ToLast(int32_t rank) {
  Sizes order(size_t(rank), 0);
  for (int32_t axis = 1; axis < rank - 1; ++axis) order[size_t(axis)] = axis + 1;
  order.back() = 1;
  return order;
}

tw_shape Op::shape(tw_output value) const {
  tw_shape found = {nullptr, -1, 0};
  tw::raise(tw_graph_describe(graph_, value, nullptr, &found));
  return found;
}

Name Op::name(tw_output value) {
  Held& held = held_.at(value);
  if (held.last.empty()) held.last = net.Transpose(held.first, ToLast(shape(value).rank));
  return held.last;
}

bool Op::prefers_first(uint32_t i) const { return held_.at(tw_operation_input(op_, i)).last.empty(); }

Name Op::first(uint32_t i) {
  const tw_output value = tw_operation_input(op_, i);
  Held& held = held_.at(value);
  if (held.first.empty()) held.first = net.Transpose(held.last, ToFirst(known_rank(i)));
  return held.first;
}

std::vector<Name> Op::all() {
  std::vector<Name> names;
  for (uint32_t i = 0; i < inputs(); ++i) names.push_back(in(i));
  return names;
}

uint32_t Op::dtype(uint32_t i) const {
  uint32_t found = 0;
  tw::raise(tw_graph_describe(graph_, tw_operation_input(op_, i), &found, nullptr));
  return found;
}

uint32_t Op::out_dtype(uint32_t i) const {
  uint32_t found = 0;
  tw::raise(tw_graph_describe(graph_, tw_operation_output(op_, i), &found, nullptr));
  return found;
}

int32_t Op::known_rank(uint32_t i) const {
  const int32_t known = rank(i);
  if (known < 0) Unsupported("the rank of input " + std::to_string(i) + " is unknown");
  return known;
}

Sizes Op::dims(uint32_t i) const {
  const tw_shape found = shape(tw_operation_input(op_, i));
  Sizes sizes(size_t(known_rank(i)));
  for (size_t k = 0; k < sizes.size(); ++k) sizes[k] = found.dims[k] < 0 ? -1 : found.dims[k];
  return sizes;
}

Sizes Op::out_dims(uint32_t i) const {
  const tw_shape found = shape(tw_operation_output(op_, i));
  Sizes sizes;
  for (int32_t k = 0; k < found.rank; ++k) sizes.push_back(found.dims[k] < 0 ? -1 : found.dims[k]);
  return sizes;
}

std::optional<Sizes> Op::ints(uint32_t i) const {
  const tw_operation* from = nullptr;
  tw::raise(tw_graph_producer(graph_, tw_operation_input(op_, i), &from, nullptr));
  while (std::strcmp(tw_operation_type(from), "Identity") == 0)
    tw::raise(tw_graph_producer(graph_, tw_operation_input(from, 0), &from, nullptr));
  if (std::strcmp(tw_operation_type(from), "Const") != 0) return std::nullopt;
  const void* found = nullptr;
  tw::raise(tw_operation_attr(from, "value", nullptr, nullptr, nullptr, &found));
  const tw_tensor* t = *static_cast<tw_tensor* const*>(found);
  const uint64_t n = tw_tensor_count(t);
  if (tw_tensor_dtype(t) == TW_INT64) {
    const auto* data = static_cast<const int64_t*>(tw_tensor_data(t));
    return Sizes(data, data + n);
  }
  if (tw_tensor_dtype(t) != TW_INT32) return std::nullopt;
  const auto* data = static_cast<const int32_t*>(tw_tensor_data(t));
  return Sizes(data, data + n);
}

Sizes Op::known_ints(uint32_t i, const char* what) const {
  const std::optional<Sizes> found = ints(i);
  if (!found) Unsupported(std::string(what) + " is computed; ONNX needs a constant");
  return *found;
}

Name Op::longs(uint32_t i) { return dtype(i) == TW_INT64 ? in(i) : net.Cast(in(i), TW_INT64); }

Name Op::vector(uint32_t i) {
  if (const std::optional<Sizes> known = ints(i)) return net.Ints(*known);
  return rank(i) == 1 ? longs(i) : net.Add("Reshape", {longs(i), net.Ints({-1})});
}

std::string Op::s(const char* attr) const {
  const auto* text = value<tw_string>(attr);
  return {text->data, text->size};
}

Sizes Op::list(const char* attr) const {
  uint32_t count = 0;
  const void* values = nullptr;
  tw::raise(tw_operation_attr(op_, attr, nullptr, nullptr, &count, &values));
  const auto* data = static_cast<const int64_t*>(values);
  return {data, data + count};
}

bool Op::has(const char* attr) const {
  for (uint32_t k = 0; k < tw_operation_attr_count(op_); ++k) {
    if (std::strcmp(tw_operation_attr_name(op_, k), attr) == 0) return true;
  }
  return false;
}

tw::Tensor Op::tensor(const char* attr) const {
  tw_tensor* found = *value<tw_tensor*>(attr);
  tw_tensor_retain(found);
  return tw::Tensor::adopt(found);
}

}  // namespace thalweg::cli::onnx
