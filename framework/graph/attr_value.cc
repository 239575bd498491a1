#include "framework/graph/attr_value.h"

#include <cstring>

#include "framework/base/dtype.h"

namespace thalweg {
namespace {

// Bit for bit: 0 and -0 are two attributes, a NaN equals itself. Folding equal nodes into one relies on both.
bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
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
  // References of resources and variants are equal when they lead to the same thing: also bit for bit.
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

// The values of a C attribute, or an error if there are none where some are promised.
template <class T>
StatusOr<const T*> DataOf(const tw_attr& a) {
  if (a.count && !a.data)
    return InvalidArgument("attribute '", std::string_view(a.name, a.name_len), "' has ", a.count, " values but no data");
  return static_cast<const T*>(a.data);
}

template <class T>
StatusOr<std::vector<T>> CopyOf(const tw_attr& a) {
  ASSIGN_OR_RETURN(const T* p, DataOf<T>(a));
  return std::vector<T>(p, p + a.count);
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

StatusOr<AttrValue> AttrValue::FromC(const tw_attr& a) {
  std::string_view name(a.name, a.name_len);
  if (a.is_list > 1) return InvalidArgument("attribute '", name, "': is_list is ", a.is_list, "; it must be 0 or 1");
  if (!a.is_list && a.count != 1) return InvalidArgument("attribute '", name, "' is a single value but its count is ", a.count);
  bool list = a.is_list != 0;
  switch (a.kind) {
    case TW_ATTR_INT: {
      ASSIGN_OR_RETURN(auto v, CopyOf<int64_t>(a));
      return AttrValue(a.kind, list, std::move(v));
    }
    case TW_ATTR_FLOAT: {
      ASSIGN_OR_RETURN(auto v, CopyOf<double>(a));
      return AttrValue(a.kind, list, std::move(v));
    }
    case TW_ATTR_BOOL: {
      ASSIGN_OR_RETURN(auto v, CopyOf<uint8_t>(a));
      for (uint8_t& b : v) b = b != 0;
      return AttrValue(a.kind, list, std::move(v));
    }
    case TW_ATTR_TYPE: {
      ASSIGN_OR_RETURN(auto v, CopyOf<uint32_t>(a));
      return AttrValue(a.kind, list, std::move(v));
    }
    case TW_ATTR_STRING:
    case TW_ATTR_FUNC: {
      ASSIGN_OR_RETURN(const tw_string* p, DataOf<tw_string>(a));
      std::vector<std::string> v;
      v.reserve(a.count);
      for (uint32_t i = 0; i < a.count; ++i) {
        if (p[i].size && !p[i].data) return InvalidArgument("attribute '", name, "': text ", i, " has ", p[i].size, " bytes but no data");
        v.emplace_back(p[i].data ? p[i].data : "", p[i].size);
      }
      return AttrValue(a.kind, list, std::move(v));
    }
    case TW_ATTR_SHAPE: {
      ASSIGN_OR_RETURN(const tw_shape* p, DataOf<tw_shape>(a));
      std::vector<Shape> v;
      v.reserve(a.count);
      for (uint32_t i = 0; i < a.count; ++i) {
        if (p[i].rank > kMaxRank) return InvalidArgument("attribute '", name, "': rank ", p[i].rank, " is more than ", kMaxRank);
        if (p[i].rank > 0 && !p[i].dims) return InvalidArgument("attribute '", name, "': a shape of rank ", p[i].rank, " has no dims");
        v.emplace_back(p[i]);
      }
      return AttrValue(a.kind, list, std::move(v));
    }
    case TW_ATTR_TENSOR: {
      ASSIGN_OR_RETURN(tw_tensor* const* p, DataOf<tw_tensor*>(a));
      std::vector<Tensor> v;
      v.reserve(a.count);
      for (uint32_t i = 0; i < a.count; ++i) {
        if (!p[i]) return InvalidArgument("attribute '", name, "': tensor ", i, " is NULL");
        v.push_back(Tensor::Share(p[i]));
      }
      return AttrValue(a.kind, list, std::move(v));
    }
    default: return InvalidArgument("attribute '", name, "': kind ", a.kind, " is unknown");
  }
}

uint32_t AttrValue::count() const {
  return std::visit(
      [](const auto& v) -> uint32_t {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, None>) {
          return 0;
        } else {
          return uint32_t(v.size());
        }
      },
      v_);
}

bool AttrValue::operator==(const AttrValue& o) const {
  if (kind_ != o.kind_ || list_ != o.list_ || v_.index() != o.v_.index()) return false;
  if (kind_ == TW_ATTR_FLOAT) return SameBits(floats(), o.floats());
  if (kind_ == TW_ATTR_SHAPE) return shapes() == o.shapes();
  if (kind_ == TW_ATTR_TYPE) return types() == o.types();
  if (kind_ == TW_ATTR_INT) return ints() == o.ints();
  if (kind_ == TW_ATTR_BOOL) return bools() == o.bools();
  if (kind_ == TW_ATTR_STRING || kind_ == TW_ATTR_FUNC) return strings() == o.strings();
  if (kind_ != TW_ATTR_TENSOR) return true;
  if (count() != o.count()) return false;
  for (uint32_t i = 0; i < count(); ++i) {
    if (!SameTensor(tensors()[i], o.tensors()[i])) return false;
  }
  return true;
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

void CAttrs::Add(std::string_view name, const AttrValue& v) {
  const void* data = nullptr;
  switch (v.kind()) {
    case TW_ATTR_INT: data = v.ints().data(); break;
    case TW_ATTR_FLOAT: data = v.floats().data(); break;
    case TW_ATTR_BOOL: data = v.bools().data(); break;
    case TW_ATTR_TYPE: data = v.types().data(); break;
    case TW_ATTR_STRING:
    case TW_ATTR_FUNC: {
      auto& c = strings_.emplace_back();
      for (const std::string& s : v.strings()) c.push_back({s.data(), s.size()});
      data = c.data();
      break;
    }
    case TW_ATTR_SHAPE: {
      auto& c = shapes_.emplace_back();
      for (const Shape& s : v.shapes()) c.push_back(s.c());
      data = c.data();
      break;
    }
    case TW_ATTR_TENSOR: {
      auto& c = tensors_.emplace_back();
      for (const Tensor& t : v.tensors()) c.push_back(t.get());
      data = c.data();
      break;
    }
    default: break;
  }
  attrs_.push_back({name.data(), name.size(), data, v.kind(), v.count(), v.is_list() ? 1u : 0u, 0});
}

}  // namespace thalweg
