#include "framework/graph/attr_value.h"

#include <algorithm>
#include <cstring>

#include "framework/base/dtype.h"

namespace thalweg {
namespace {

// Compares bit for bit: 0 and -0 differ, and a NaN equals itself. The folding of equal nodes relies
// on both.
bool SameBits(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

bool SameTensor(const Tensor& a, const Tensor& b) {
  if (a.get() == b.get()) return true;
  if (!a || !b || a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (BaseType(a.dtype()) == TW_STRING) {
    for (uint64_t i = 0; i < a.count(); ++i) {
      if (a.str(i) != b.str(i)) return false;
    }
    return true;
  }
  // Resource and variant references are equal if they refer to the same object, which is a bitwise
  // comparison too.
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

std::string Quoted(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Returns the values of a C attribute, or an error if it has a count but no data.
template <class T>
StatusOr<const T*> DataOf(const tw_attr& a) {
  if (a.count && !a.data)
    return InvalidArgument("attribute '", std::string_view(a.name, a.name_len), "' has ", a.count, " values but no data");
  return static_cast<const T*>(a.data);
}

}  // namespace

AttrValue AttrValue::EmptyList(uint32_t kind) {
  switch (kind) {
    case TW_ATTR_INT: return Ints({});
    case TW_ATTR_FLOAT: return Floats({});
    case TW_ATTR_BOOL: return Bools({});
    case TW_ATTR_STRING: return Strings({});
    case TW_ATTR_TYPE: return Types({});
    case TW_ATTR_SHAPE: return Shapes({});
    case TW_ATTR_TENSOR: return Tensors({});
    case TW_ATTR_FUNC: return Funcs({});
    default: return AttrValue();
  }
}

// value(i): returns entry i of the C attribute.
template <class T, class F>
StatusOr<AttrValue> AttrValue::Read(const tw_attr& a, F&& value) {
  if (!a.is_list) {
    ASSIGN_OR_RETURN(T one, value(0));
    return AttrValue(a.kind, false, std::move(one));
  }
  std::vector<T> all;
  all.reserve(a.count);
  for (uint32_t i = 0; i < a.count; ++i) {
    ASSIGN_OR_RETURN(T one, value(i));
    all.push_back(std::move(one));
  }
  return AttrValue(a.kind, true, std::move(all));
}

StatusOr<AttrValue> AttrValue::FromC(const tw_attr& a) {
  std::string_view name(a.name, a.name_len);
  if (a.is_list > 1) return InvalidArgument("attribute '", name, "': is_list is ", a.is_list, "; it must be 0 or 1");
  if (!a.is_list && a.count != 1) return InvalidArgument("attribute '", name, "' is a single value but its count is ", a.count);
  switch (a.kind) {
    case TW_ATTR_INT: {
      ASSIGN_OR_RETURN(const int64_t* p, DataOf<int64_t>(a));
      return Read<int64_t>(a, [p](uint32_t i) -> StatusOr<int64_t> { return p[i]; });
    }
    case TW_ATTR_FLOAT: {
      ASSIGN_OR_RETURN(const double* p, DataOf<double>(a));
      return Read<double>(a, [p](uint32_t i) -> StatusOr<double> { return AsStored(p[i]); });
    }
    case TW_ATTR_BOOL: {
      ASSIGN_OR_RETURN(const uint8_t* p, DataOf<uint8_t>(a));
      return Read<uint8_t>(a, [p](uint32_t i) -> StatusOr<uint8_t> { return uint8_t(p[i] != 0); });
    }
    case TW_ATTR_TYPE: {
      ASSIGN_OR_RETURN(const uint32_t* p, DataOf<uint32_t>(a));
      return Read<uint32_t>(a, [p](uint32_t i) -> StatusOr<uint32_t> { return p[i]; });
    }
    case TW_ATTR_STRING:
    case TW_ATTR_FUNC: {
      ASSIGN_OR_RETURN(const tw_string* p, DataOf<tw_string>(a));
      return Read<std::string>(a, [&](uint32_t i) -> StatusOr<std::string> {
        if (p[i].size && !p[i].data) return InvalidArgument("attribute '", name, "': text ", i, " has ", p[i].size, " bytes but no data");
        return std::string(p[i].data ? p[i].data : "", p[i].size);
      });
    }
    case TW_ATTR_SHAPE: {
      ASSIGN_OR_RETURN(const tw_shape* p, DataOf<tw_shape>(a));
      return Read<Shape>(a, [&](uint32_t i) -> StatusOr<Shape> {
        if (p[i].rank > kMaxRank) return InvalidArgument("attribute '", name, "': rank ", p[i].rank, " is more than ", kMaxRank);
        if (p[i].rank > 0 && !p[i].dims) return InvalidArgument("attribute '", name, "': a shape of rank ", p[i].rank, " has no dims");
        return Shape(p[i]);
      });
    }
    case TW_ATTR_TENSOR: {
      ASSIGN_OR_RETURN(tw_tensor* const* p, DataOf<tw_tensor*>(a));
      return Read<Tensor>(a, [&](uint32_t i) -> StatusOr<Tensor> {
        if (!p[i]) return InvalidArgument("attribute '", name, "': tensor ", i, " is NULL");
        return Tensor::Share(p[i]);
      });
    }
    default: return InvalidArgument("attribute '", name, "': kind ", a.kind, " is unknown");
  }
}

uint32_t AttrValue::count() const {
  switch (kind_) {
    case TW_ATTR_INT: return uint32_t(ints().size());
    case TW_ATTR_FLOAT: return uint32_t(floats().size());
    case TW_ATTR_BOOL: return uint32_t(bools().size());
    case TW_ATTR_STRING:
    case TW_ATTR_FUNC: return uint32_t(strings().size());
    case TW_ATTR_TYPE: return uint32_t(types().size());
    case TW_ATTR_SHAPE: return uint32_t(shapes().size());
    case TW_ATTR_TENSOR: return uint32_t(tensors().size());
    default: return 0;
  }
}

bool AttrValue::operator==(const AttrValue& o) const {
  if (kind_ != o.kind_ || list_ != o.list_) return false;
  switch (kind_) {
    case TW_ATTR_INT: return std::ranges::equal(ints(), o.ints());
    case TW_ATTR_FLOAT: return SameBits(floats(), o.floats());
    case TW_ATTR_BOOL: return std::ranges::equal(bools(), o.bools());
    case TW_ATTR_STRING:
    case TW_ATTR_FUNC: return std::ranges::equal(strings(), o.strings());
    case TW_ATTR_TYPE: return std::ranges::equal(types(), o.types());
    case TW_ATTR_SHAPE: return std::ranges::equal(shapes(), o.shapes());
    case TW_ATTR_TENSOR: return std::ranges::equal(tensors(), o.tensors(), SameTensor);
    default: return true;
  }
}

std::string AttrValue::text() const {
  if (empty()) return "no value";
  auto one = [this](uint32_t i) -> std::string {
    switch (kind_) {
      case TW_ATTR_INT: return StrCat(ints()[i]);
      case TW_ATTR_FLOAT: return StrCat(floats()[i]);
      case TW_ATTR_BOOL: return bools()[i] ? "true" : "false";
      case TW_ATTR_STRING: return Quoted(strings()[i]);
      case TW_ATTR_FUNC: return strings()[i];
      case TW_ATTR_TYPE: return FindDType(types()[i]) ? std::string(DTypeName(types()[i])) : StrCat("type ", types()[i]);
      case TW_ATTR_SHAPE: return shapes()[i].text();
      default: return tensors()[i] ? StrCat("a ", DTypeName(tensors()[i].dtype()), " tensor ", tensors()[i].shape().text()) : "no tensor";
    }
  };
  if (!list_) return one(0);
  constexpr uint32_t kShown = 16;  // enough to recognise a list in a message
  std::string s = "[";
  for (uint32_t i = 0; i < count() && i < kShown; ++i) s += StrCat(i ? ", " : "", one(i));
  return s + (count() > kShown ? StrCat(", and ", count() - kShown, " more]") : "]");
}

// Converts values to an array of their C type.
template <class C, class T, class F>
const C* CAttrs::Array(std::span<const T> values, F&& to_c) {
  if (values.empty()) return nullptr;
  C* array = static_cast<C*>(memory_.get()->allocate(values.size() * sizeof(C), alignof(C)));
  for (size_t i = 0; i < values.size(); ++i) array[i] = to_c(values[i]);
  return array;
}

void CAttrs::Add(std::string_view name, const AttrValue& v) {
  const void* data = nullptr;
  switch (v.kind()) {
    case TW_ATTR_INT: data = v.ints().data(); break;
    case TW_ATTR_FLOAT: data = v.floats().data(); break;
    case TW_ATTR_BOOL: data = v.bools().data(); break;
    case TW_ATTR_TYPE: data = v.types().data(); break;
    case TW_ATTR_STRING:
    case TW_ATTR_FUNC: data = Array<tw_string>(v.strings(), [](const std::string& s) { return tw_string{s.data(), s.size()}; }); break;
    case TW_ATTR_SHAPE: data = Array<tw_shape>(v.shapes(), [](const Shape& s) { return s.c(); }); break;
    case TW_ATTR_TENSOR: data = Array<tw_tensor*>(v.tensors(), [](const Tensor& t) { return t.get(); }); break;
    default: break;
  }
  attrs_.push_back({name.data(), name.size(), data, v.kind(), v.count(), v.is_list() ? 1u : 0u, 0});
}

}  // namespace thalweg
