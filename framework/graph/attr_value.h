// AttrValue: one resolved attribute of a node, a single value or a list. CAttrs: the attributes of
// a node in C form, for callbacks. Value types.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "framework/base/local_memory.h"
#include "framework/base/status.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"
#include "thalweg/plugin/abi.h"

namespace thalweg {

class AttrValue {
 public:
  AttrValue() = default;  // kind 0: no value
  static AttrValue Int(int64_t v) { return {TW_ATTR_INT, false, v}; }
  static AttrValue Float(double v) { return {TW_ATTR_FLOAT, false, AsStored(v)}; }
  static AttrValue Bool(bool v) { return {TW_ATTR_BOOL, false, uint8_t(v)}; }
  static AttrValue String(std::string v) { return {TW_ATTR_STRING, false, std::move(v)}; }
  static AttrValue Type(uint32_t v) { return {TW_ATTR_TYPE, false, v}; }
  static AttrValue OfShape(Shape v) { return {TW_ATTR_SHAPE, false, std::move(v)}; }
  static AttrValue OfTensor(Tensor v) { return {TW_ATTR_TENSOR, false, std::move(v)}; }
  static AttrValue Func(std::string name) { return {TW_ATTR_FUNC, false, std::move(name)}; }
  static AttrValue Ints(std::vector<int64_t> v) { return {TW_ATTR_INT, true, std::move(v)}; }
  static AttrValue Floats(std::vector<double> v) {
    for (double& d : v) d = AsStored(d);
    return {TW_ATTR_FLOAT, true, std::move(v)};
  }
  static AttrValue Bools(std::vector<uint8_t> v) { return {TW_ATTR_BOOL, true, std::move(v)}; }
  static AttrValue Strings(std::vector<std::string> v) { return {TW_ATTR_STRING, true, std::move(v)}; }
  static AttrValue Types(std::vector<uint32_t> v) { return {TW_ATTR_TYPE, true, std::move(v)}; }
  static AttrValue Shapes(std::vector<Shape> v) { return {TW_ATTR_SHAPE, true, std::move(v)}; }
  static AttrValue Tensors(std::vector<Tensor> v) { return {TW_ATTR_TENSOR, true, std::move(v)}; }
  static AttrValue Funcs(std::vector<std::string> v) { return {TW_ATTR_FUNC, true, std::move(v)}; }
  // Returns an empty list of the kind, as GraphDefs contain them.
  static AttrValue EmptyList(uint32_t kind);
  // Converts from the C form; copies. INVALID_ARGUMENT for an unknown kind, or a single value whose
  // count is not 1.
  static StatusOr<AttrValue> FromC(const tw_attr& a);

  uint32_t kind() const { return kind_; }
  bool is_list() const { return list_; }
  uint32_t count() const;
  bool empty() const { return kind_ == 0; }
  // Return the single value or the list. REQUIRES: the kind fits.
  std::span<const int64_t> ints() const { return Get<int64_t>(); }
  std::span<const double> floats() const { return Get<double>(); }
  std::span<const uint8_t> bools() const { return Get<uint8_t>(); }
  std::span<const std::string> strings() const { return Get<std::string>(); }  // also for func
  std::span<const uint32_t> types() const { return Get<uint32_t>(); }
  std::span<const Shape> shapes() const { return Get<Shape>(); }
  std::span<const Tensor> tensors() const { return Get<Tensor>(); }
  // Compares values; floats and tensors bit for bit.
  bool operator==(const AttrValue& o) const;
  // Formats the value for messages: 3, "SAME", float, [1, 2].
  std::string text() const;

 private:
  // Used instead of std::monostate. With that, libstdc++ assumes that the variant always holds a
  // value; a copy that runs out of memory would then destroy a value that was never constructed
  // (seen in GCC 12).
  struct None {
    None() = default;
    None(const None&) noexcept {}
    None& operator=(const None&) noexcept { return *this; }
    bool operator==(const None&) const { return true; }
  };
  // Single values are stored inline: most attributes are such and need no memory of their own.
  using Values =
      std::variant<None, int64_t, double, uint8_t, std::string, uint32_t, Shape, Tensor, std::vector<int64_t>, std::vector<double>,
                   std::vector<uint8_t>, std::vector<std::string>, std::vector<uint32_t>, std::vector<Shape>, std::vector<Tensor>>;
  template <class T>
  AttrValue(uint32_t kind, bool list, T v) : kind_(kind), list_(list), v_(std::in_place_type<T>, std::move(v)) {}
  template <class T>
  std::span<const T> Get() const {
    if (const T* one = std::get_if<T>(&v_)) return {one, 1};
    return std::get<std::vector<T>>(v_);
  }
  // Rounds to float, as stored graphs do, so that a graph computes the same before and after
  // storing. A value beyond float's range is kept: such a graph runs, but cannot be stored.
  static double AsStored(double v) { return std::isfinite(float(v)) ? double(float(v)) : v; }
  template <class T, class F>
  static StatusOr<AttrValue> Read(const tw_attr& a, F&& value);
  uint32_t kind_ = 0;
  bool list_ = false;
  Values v_;
};

// The C form of a node's attributes. It borrows names and values, so both must outlive it. Not
// copyable, because it points into itself.
class CAttrs {
 public:
  CAttrs() = default;
  CAttrs(const CAttrs&) = delete;
  CAttrs& operator=(const CAttrs&) = delete;
  void Reserve(size_t n) { attrs_.reserve(n); }
  void Add(std::string_view name, const AttrValue& v);
  const tw_attr* data() const { return attrs_.data(); }
  uint32_t size() const { return uint32_t(attrs_.size()); }

 private:
  template <class C, class T, class F>
  const C* Array(std::span<const T> values, F&& to_c);
  // Enough for most nodes, so that the conversion, which planning does often, needs no heap memory.
  LocalMemory<512> memory_;
  std::pmr::vector<tw_attr> attrs_{memory_.get()};
};

}  // namespace thalweg
