// AttrValue: one resolved attribute of a node, a single value or a list, and its C form for callbacks. A value type.
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"
#include "thalweg/plugin/abi.h"

namespace thalweg {

class AttrValue {
 public:
  AttrValue() = default;  // kind 0: no value
  static AttrValue Int(int64_t v) { return {TW_ATTR_INT, false, std::vector<int64_t>{v}}; }
  static AttrValue Float(double v) { return {TW_ATTR_FLOAT, false, std::vector<double>{v}}; }
  static AttrValue Bool(bool v) { return {TW_ATTR_BOOL, false, std::vector<uint8_t>{v}}; }
  static AttrValue String(std::string v) { return {TW_ATTR_STRING, false, std::vector<std::string>{std::move(v)}}; }
  static AttrValue Type(uint32_t v) { return {TW_ATTR_TYPE, false, std::vector<uint32_t>{v}}; }
  static AttrValue OfShape(Shape v) { return {TW_ATTR_SHAPE, false, std::vector<Shape>{std::move(v)}}; }
  static AttrValue OfTensor(Tensor v) { return {TW_ATTR_TENSOR, false, std::vector<Tensor>{std::move(v)}}; }
  static AttrValue Func(std::string name) { return {TW_ATTR_FUNC, false, std::vector<std::string>{std::move(name)}}; }
  static AttrValue Ints(std::vector<int64_t> v) { return {TW_ATTR_INT, true, std::move(v)}; }
  static AttrValue Floats(std::vector<double> v) { return {TW_ATTR_FLOAT, true, std::move(v)}; }
  static AttrValue Bools(std::vector<uint8_t> v) { return {TW_ATTR_BOOL, true, std::move(v)}; }
  static AttrValue Strings(std::vector<std::string> v) { return {TW_ATTR_STRING, true, std::move(v)}; }
  static AttrValue Types(std::vector<uint32_t> v) { return {TW_ATTR_TYPE, true, std::move(v)}; }
  static AttrValue Shapes(std::vector<Shape> v) { return {TW_ATTR_SHAPE, true, std::move(v)}; }
  static AttrValue Tensors(std::vector<Tensor> v) { return {TW_ATTR_TENSOR, true, std::move(v)}; }
  static AttrValue Funcs(std::vector<std::string> v) { return {TW_ATTR_FUNC, true, std::move(v)}; }
  // An empty list of any kind, as GraphDefs write them.
  static AttrValue EmptyList(uint32_t kind);
  // From the C form; copies. Errors: unknown kind, a single value with count other than 1.
  static StatusOr<AttrValue> FromC(const tw_attr& a);

  uint32_t kind() const { return kind_; }
  bool is_list() const { return list_; }
  uint32_t count() const;
  bool empty() const { return kind_ == 0; }
  // The single value or the list; the kind must fit.
  const std::vector<int64_t>& ints() const { return std::get<std::vector<int64_t>>(v_); }
  const std::vector<double>& floats() const { return std::get<std::vector<double>>(v_); }
  const std::vector<uint8_t>& bools() const { return std::get<std::vector<uint8_t>>(v_); }
  const std::vector<std::string>& strings() const { return std::get<std::vector<std::string>>(v_); }  // also func
  const std::vector<uint32_t>& types() const { return std::get<std::vector<uint32_t>>(v_); }
  const std::vector<Shape>& shapes() const { return std::get<std::vector<Shape>>(v_); }
  const std::vector<Tensor>& tensors() const { return std::get<std::vector<Tensor>>(v_); }
  // Value equality; tensors bit for bit.
  bool operator==(const AttrValue& o) const;
  // For messages: 3, "SAME", float, [1, 2].
  std::string text() const;

 private:
  // With it, unlike with std::monostate, libstdc++ does not take the variant for one that always holds something: a copy that finds no
  // memory would then be destroyed as what it is not (seen in GCC 12).
  struct None {
    None() = default;
    None(const None&) noexcept {}
    None& operator=(const None&) noexcept { return *this; }
    bool operator==(const None&) const { return true; }
  };
  using Values = std::variant<None, std::vector<int64_t>, std::vector<double>, std::vector<uint8_t>, std::vector<std::string>,
                              std::vector<uint32_t>, std::vector<Shape>, std::vector<Tensor>>;
  AttrValue(uint32_t kind, bool list, Values v) : kind_(kind), list_(list), v_(std::move(v)) {}
  uint32_t kind_ = 0;
  bool list_ = false;
  Values v_;
};

// The C form of a node's attributes: borrows names and values, so both must outlive it. Not copyable: it points into itself.
class CAttrs {
 public:
  CAttrs() = default;
  CAttrs(const CAttrs&) = delete;
  CAttrs& operator=(const CAttrs&) = delete;
  void Add(std::string_view name, const AttrValue& v);
  const tw_attr* data() const { return attrs_.data(); }
  uint32_t size() const { return uint32_t(attrs_.size()); }

 private:
  std::vector<tw_attr> attrs_;
  // What C sees of strings, shapes and tensors; the outer vectors may move, the inner arrays stay.
  std::vector<std::vector<tw_string>> strings_;
  std::vector<std::vector<tw_shape>> shapes_;
  std::vector<std::vector<tw_tensor*>> tensors_;
};

}  // namespace thalweg
