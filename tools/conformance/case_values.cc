#include "tools/conformance/case_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "framework/base/dtype.h"
#include "framework/graph/builder.h"

namespace thalweg::conformance {

Status OnlyHas(const JsonValue& v, std::initializer_list<std::string_view> members) {
  if (!v.is(JsonValue::Kind::kObject)) return InvalidArgument("it is ", JsonText(v), "; write an object");
  std::string all;
  for (std::string_view m : members) all += StrCat(all.empty() ? "" : ", ", m);
  for (const std::string& key : v.keys()) {
    if (std::find(members.begin(), members.end(), key) == members.end())
      return InvalidArgument("'", key, "' has no meaning here; there are ", all);
  }
  return Status();
}

StatusOr<double> NumberOf(const JsonValue& v) {
  if (v.is(JsonValue::Kind::kNumber) || v.is(JsonValue::Kind::kBool)) return v.number();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (v.text() == "inf") return kInf;
  if (v.text() == "-inf") return -kInf;
  if (v.text() == "nan") return std::nan("");
  return InvalidArgument("value ", JsonText(v), " is no number; write one, true, false, \"nan\", \"inf\" or \"-inf\"");
}

namespace {

StatusOr<uint32_t> TypeOf(const JsonValue& v) {
  const uint32_t dtype = DTypeByName(v.text());
  if (dtype == TW_INVALID_TYPE) return InvalidArgument("no element type is called ", JsonText(v), "; write one as in schemas, \"float\"");
  return dtype;
}

StatusOr<int64_t> WholeOf(const JsonValue& v) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: JSON's numbers are read as doubles
  const double n = v.number();
  if (!v.is(JsonValue::Kind::kNumber) || n != std::floor(n) || std::fabs(n) > kExact) {
    return InvalidArgument(JsonText(v), " is no whole number from -2^53 to 2^53");
  }
  return int64_t(n);
}

StatusOr<Shape> ShapeOf(const JsonValue& v, bool known) {
  if (!known && v.null()) return Shape();
  if (!v.is(JsonValue::Kind::kArray)) return InvalidArgument("its shape is ", JsonText(v), "; write a list of sizes such as [2, 3]");
  std::vector<int64_t> dims;
  for (const JsonValue& d : v.items()) {
    ASSIGN_OR_RETURN(const int64_t size, WholeOf(d));
    if (size < (known ? 0 : -1)) return InvalidArgument("size ", size, " in shape ", JsonText(v), " is negative");
    dims.push_back(size);
  }
  return Shape(dims);
}

void Flatten(const JsonValue& v, std::vector<const JsonValue*>* out) {
  if (!v.is(JsonValue::Kind::kArray)) return out->push_back(&v);
  for (const JsonValue& item : v.items()) Flatten(item, out);
}

Status SetElement(Tensor* t, uint64_t i, double value, double imaginary) {
  const DTypeInfo* info = FindDType(t->dtype());
  if (t->dtype() == TW_COMPLEX64) {
    t->as<float>()[2 * i] = float(value), t->as<float>()[2 * i + 1] = float(imaginary);
    return Status();
  }
  if (t->dtype() == TW_COMPLEX128) {
    t->as<double>()[2 * i] = value, t->as<double>()[2 * i + 1] = imaginary;
    return Status();
  }
  ASSIGN_OR_RETURN(Tensor one, ScalarTensor(t->dtype(), value));
  std::memcpy(t->as<char>() + i * info->bytes, one.data(), info->bytes);
  return Status();
}

Status SetValues(const JsonValue& values, Tensor* t) {
  std::vector<const JsonValue*> flat;
  Flatten(values, &flat);
  const uint64_t each = t->dtype() == TW_COMPLEX64 || t->dtype() == TW_COMPLEX128 ? 2 : 1;
  if (flat.size() != t->count() * each) {
    return InvalidArgument("it has ", flat.size(), " values; its shape ", t->shape().text(), " needs ", t->count() * each,
                           each == 2 ? ", two for each complex number" : "");
  }
  for (uint64_t i = 0; i < t->count(); ++i) {
    if (t->dtype() == TW_STRING) {
      if (!flat[i]->is(JsonValue::Kind::kText)) return InvalidArgument("value ", JsonText(*flat[i]), " is no text");
      RETURN_IF_ERROR(t->SetString(i, flat[i]->text()));
      continue;
    }
    ASSIGN_OR_RETURN(const double value, NumberOf(*flat[i * each]));
    double imaginary = 0;
    if (each == 2) {
      ASSIGN_OR_RETURN(imaginary, NumberOf(*flat[i * each + 1]));
    }
    RETURN_IF_ERROR(SetElement(t, i, value, imaginary));
  }
  return Status();
}

bool IsFractional(uint32_t dtype) {
  return dtype == TW_FLOAT || dtype == TW_DOUBLE || dtype == TW_HALF || dtype == TW_BFLOAT16 || dtype == TW_COMPLEX64 ||
         dtype == TW_COMPLEX128;
}

// Fills the tensor with values that are spread over a closed range.
Status SetRange(const JsonValue& range, Tensor* t) {
  if (range.items().size() != 2) return InvalidArgument("its range is ", JsonText(range), "; write [lowest, highest]");
  ASSIGN_OR_RETURN(const double low, NumberOf(range.items()[0]));
  ASSIGN_OR_RETURN(const double high, NumberOf(range.items()[1]));
  if (!(low <= high) || !std::isfinite(high - low))
    return InvalidArgument("its range is ", JsonText(range), "; the first must not be larger");
  if (t->dtype() == TW_STRING) return InvalidArgument("texts have no range; write values");
  for (uint64_t i = 0; i < t->count(); ++i) {
    const double value = IsFractional(t->dtype()) ? low + (high - low) * double((i * 7 + 3) % 11) / 10
                                                  : low + std::fmod(double(i * 5 + 1), std::floor(high - low) + 1);
    RETURN_IF_ERROR(SetElement(t, i, value, 0));
  }
  return Status();
}

StatusOr<uint8_t> TruthOf(const JsonValue& v) {
  if (!v.is(JsonValue::Kind::kBool)) return InvalidArgument("it is ", JsonText(v), "; write true or false");
  return uint8_t(v.number() != 0);
}

StatusOr<AttrValue> AttrListOf(const AttrSpec& spec, const JsonValue& v) {
  switch (spec.kind) {
    case TW_ATTR_INT: {
      ASSIGN_OR_RETURN(auto list, ListOf<int64_t>(v, WholeOf));
      return AttrValue::Ints(std::move(list));
    }
    case TW_ATTR_FLOAT: {
      ASSIGN_OR_RETURN(auto list, ListOf<double>(v, NumberOf));
      return AttrValue::Floats(std::move(list));
    }
    case TW_ATTR_BOOL: {
      ASSIGN_OR_RETURN(auto list, ListOf<uint8_t>(v, TruthOf));
      return AttrValue::Bools(std::move(list));
    }
    case TW_ATTR_STRING: {
      ASSIGN_OR_RETURN(auto list, ListOf<std::string>(v, StringOf));
      return AttrValue::Strings(std::move(list));
    }
    case TW_ATTR_TYPE: {
      ASSIGN_OR_RETURN(auto list, ListOf<uint32_t>(v, TypeOf));
      return AttrValue::Types(std::move(list));
    }
    case TW_ATTR_SHAPE: {
      ASSIGN_OR_RETURN(auto list, ListOf<Shape>(v, [](const JsonValue& s) { return ShapeOf(s, false); }));
      return AttrValue::Shapes(std::move(list));
    }
    case TW_ATTR_TENSOR: {
      ASSIGN_OR_RETURN(auto list, ListOf<Tensor>(v, [](const JsonValue& t) { return TensorOf(t, 0); }));
      return AttrValue::Tensors(std::move(list));
    }
    default: return Unimplemented("functions cannot be written");
  }
}

StatusOr<AttrValue> AttrOf(const AttrSpec& spec, const JsonValue& v) {
  if (spec.list) return AttrListOf(spec, v);
  switch (spec.kind) {
    case TW_ATTR_INT: {
      ASSIGN_OR_RETURN(const int64_t value, WholeOf(v));
      return AttrValue::Int(value);
    }
    case TW_ATTR_FLOAT: {
      ASSIGN_OR_RETURN(const double value, NumberOf(v));
      return AttrValue::Float(value);
    }
    case TW_ATTR_BOOL: {
      ASSIGN_OR_RETURN(const uint8_t value, TruthOf(v));
      return AttrValue::Bool(value != 0);
    }
    case TW_ATTR_STRING: {
      ASSIGN_OR_RETURN(std::string value, StringOf(v));
      return AttrValue::String(std::move(value));
    }
    case TW_ATTR_TYPE: {
      ASSIGN_OR_RETURN(const uint32_t value, TypeOf(v));
      return AttrValue::Type(value);
    }
    case TW_ATTR_SHAPE: {
      ASSIGN_OR_RETURN(Shape value, ShapeOf(v, false));
      return AttrValue::OfShape(std::move(value));
    }
    case TW_ATTR_TENSOR: {
      ASSIGN_OR_RETURN(Tensor value, TensorOf(v, 0));
      return AttrValue::OfTensor(std::move(value));
    }
    default: return Unimplemented("functions cannot be written");
  }
}

}  // namespace

StatusOr<Tensor> TensorOf(const JsonValue& v, uint32_t dtype) {
  RETURN_IF_ERROR(OnlyHas(v, {"dtype", "shape", "values", "range"}));
  if (v.has("dtype")) {
    ASSIGN_OR_RETURN(dtype, TypeOf(v["dtype"]));
  }
  if (dtype == 0) return InvalidArgument("it says no dtype");
  const DTypeInfo* info = FindDType(dtype);
  if (!info || (!info->plain && dtype != TW_STRING)) return InvalidArgument("values of type ", DTypeName(dtype), " cannot be written");
  if (!v.has("shape")) return InvalidArgument("it says no shape");
  if (v.has("values") == v.has("range")) return InvalidArgument("it has to say either values or a range");
  ASSIGN_OR_RETURN(const Shape shape, ShapeOf(v["shape"], true));
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, shape));
  RETURN_IF_ERROR(v.has("values") ? SetValues(v["values"], &t) : SetRange(v["range"], &t));
  return t;
}

StatusOr<std::string> StringOf(const JsonValue& v) {
  if (!v.is(JsonValue::Kind::kText)) return InvalidArgument("it is ", JsonText(v), "; write a text");
  return v.text();
}

StatusOr<Attrs> AttrsOf(const OpSchema& op, const JsonValue& v) {
  Attrs attrs;
  if (!v.null() && !v.is(JsonValue::Kind::kObject)) return InvalidArgument("attrs are ", JsonText(v), "; write an object");
  for (size_t i = 0; i < v.keys().size(); ++i) {
    const int a = op.FindAttr(v.keys()[i]);
    if (a < 0) return InvalidArgument("op '", op.name, "' has no attribute '", v.keys()[i], "'");
    auto value = AttrOf(op.attrs[size_t(a)], v.items()[i]);
    if (!value.ok()) return Prefix(value.status(), StrCat("attribute '", v.keys()[i], "':"));
    attrs[v.keys()[i]] = *std::move(value);
  }
  return attrs;
}

}  // namespace thalweg::conformance
