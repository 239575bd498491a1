// The graph that the importer fills, seen through one small interface, so that translators know neither the plugin ABI nor the C API.
// Threads: one thread at a time.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tensor.h"

namespace thalweg::importer {

using Edge = uint64_t;  // a value of the graph; 0: none

// Attribute values that are no plain numbers.
struct Type {
  uint32_t dtype;
};
struct ShapeAttr {
  Dims dims;
  bool known_rank = true;
};
inline bool Same(const ShapeAttr& a, const ShapeAttr& b) { return a.known_rank == b.known_rank && a.dims == b.dims; }
// Returns the part of both shapes that is known and equal.
inline ShapeAttr Common(const ShapeAttr& a, const ShapeAttr& b) {
  if (!a.known_rank || !b.known_rank || a.dims.size() != b.dims.size()) return {{}, false};
  ShapeAttr both = a;
  for (size_t i = 0; i < a.dims.size(); ++i) {
    if (a.dims[i] != b.dims[i]) both.dims[i] = -1;
  }
  return both;
}
struct Func {
  std::string name;
};

// Returns a name that a node may have, made of at most 200 characters: letters, digits and `_.-/`, the
// first one a letter, digit or dot. Other characters become `_`. It may be empty.
inline std::string CleanName(std::string_view name) {
  std::string clean;
  for (const char c : name) {
    const bool fine =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' || c == '/';
    clean += fine ? c : '_';
  }
  while (!clean.empty() && (clean[0] == '/' || clean[0] == '_' || clean[0] == '-')) clean.erase(0, 1);
  return clean.substr(0, 200);
}

using AttrValue = std::variant<int64_t, double, bool, std::string, Type, ShapeAttr, Tensor, Func, std::vector<int64_t>, std::vector<double>,
                               std::vector<Type>, std::vector<ShapeAttr>, std::vector<std::string>>;

// {"transpose_b", true}, {"strides", std::vector<int64_t>{1, 1, 2, 2}}, {"T", Type{TW_FLOAT}}, {"data_format", "NCHW"}.
struct Attr {
  Attr(std::string n, AttrValue v) : name(std::move(n)), value(std::move(v)) {}
  Attr(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  Attr(std::string n, I v) : name(std::move(n)), value(static_cast<int64_t>(v)) {}
  std::string name;
  AttrValue value;
};
using Attrs = std::vector<Attr>;

class Sink {
 public:
  virtual ~Sink() = default;
  // Says from which node of the model the next nodes come, for messages: "Conv 'layer1/conv'".
  virtual void Place(const std::string& text) { (void)text; }
  // Adds a node of one of our ops and returns its output 0. name: wanted, made unique; "": any. Types and counts that follow from the
  // inputs may be left out. Throws Error with the host's message.
  virtual Edge Emit(const std::string& op, const std::string& name, const std::vector<Edge>& inputs, const Attrs& attrs) = 0;
  virtual Edge Output(Edge node, uint32_t i) = 0;
  virtual Edge Constant(const Tensor& value, const std::string& name) = 0;
  // A value that the caller gives: a placeholder. dims: -1 for unknown sizes.
  virtual Edge Argument(const std::string& name, uint32_t dtype, const ShapeAttr& shape) = 0;
  virtual void Describe(Edge edge, uint32_t* dtype, ShapeAttr* shape) = 0;
  // An empty body of a function, and its end: makes the function of placeholders and results of the body. Returns its name.
  virtual std::unique_ptr<Sink> Body() = 0;
  virtual std::string Define(const std::string& name, Sink& body, const std::vector<Edge>& args, const std::vector<Edge>& results) = 0;
};

}  // namespace thalweg::importer
