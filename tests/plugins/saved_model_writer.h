// Writes small SavedModels for tests, from messages. Threads: one.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "framework/proto/saved_model.pb.h"
#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::test {

using Attr = std::pair<std::string, proto::AttrValue>;

inline Attr Type(const std::string& name, proto::DataType type) {
  proto::AttrValue v;
  v.set_type(type);
  return {name, v};
}
inline Attr Types(const std::string& name, const std::vector<proto::DataType>& types) {
  proto::AttrValue v;
  v.mutable_list();
  for (const proto::DataType t : types) v.mutable_list()->add_type(t);
  return {name, v};
}
inline Attr ShapeOf(const std::string& name, const std::vector<int64_t>& dims) {
  proto::AttrValue v;
  v.mutable_shape();
  for (const int64_t dim : dims) v.mutable_shape()->add_dim()->set_size(dim);
  return {name, v};
}
inline Attr Text(const std::string& name, const std::string& text) {
  proto::AttrValue v;
  v.set_s(text);
  return {name, v};
}
inline Attr Int(const std::string& name, int64_t i) {
  proto::AttrValue v;
  v.set_i(i);
  return {name, v};
}
inline Attr Func(const std::string& name, const std::string& function) {
  proto::AttrValue v;
  v.mutable_func()->set_name(function);
  return {name, v};
}
// A constant's value; dims {} is a scalar.
inline Attr Strings(const std::vector<std::string>& values, bool scalar = false) {
  proto::AttrValue v;
  v.mutable_tensor()->set_dtype(proto::DT_STRING);
  v.mutable_tensor()->mutable_tensor_shape();
  if (!scalar) v.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(int64_t(values.size()));
  for (const std::string& s : values) v.mutable_tensor()->add_string_val(s);
  return {"value", v};
}
inline Attr Float(float value) {
  proto::AttrValue v;
  v.mutable_tensor()->set_dtype(proto::DT_FLOAT);
  v.mutable_tensor()->mutable_tensor_shape();
  v.mutable_tensor()->add_float_val(value);
  return {"value", v};
}
inline Attr Int64(int64_t value) {
  proto::AttrValue v;
  v.mutable_tensor()->set_dtype(proto::DT_INT64);
  v.mutable_tensor()->mutable_tensor_shape();
  v.mutable_tensor()->add_int64_val(value);
  return {"value", v};
}

// Adds a node to a GraphDef, or with node_def to a FunctionDef.
template <class Nodes>
void AddNode(Nodes* nodes, const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
             const std::vector<Attr>& attrs = {}) {
  proto::NodeDef& n = *nodes->Add();
  n.set_name(name);
  n.set_op(op);
  for (const std::string& input : inputs) n.add_input(input);
  for (const auto& [key, value] : attrs) (*n.mutable_attr())[key] = value;
}

inline void AddArg(proto::OpDef* signature, const std::string& name, proto::DataType type) {
  auto& arg = *signature->add_input_arg();
  arg.set_name(name);
  arg.set_type(type);
}

inline void AddValue(google::protobuf::Map<std::string, proto::TensorInfo>* values, const std::string& name, const std::string& tensor,
                     proto::DataType type, const std::vector<int64_t>& dims) {
  proto::TensorInfo& info = (*values)[name];
  info.set_name(tensor);
  info.set_dtype(type);
  info.mutable_tensor_shape();
  for (const int64_t dim : dims) info.mutable_tensor_shape()->add_dim()->set_size(dim);
}

inline void WriteBytes(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace thalweg::test
