#include "framework/graph/attr_proto.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/proto/attr_value.pb.h"
#include "framework/proto/wire.h"

namespace thalweg {
namespace {

constexpr std::string_view kLocation = "loc:@";
// Fields of the messages that Census inspects.
enum : uint32_t {
  kAttrList = 1,
  kAttrShape = 7,
  kAttrTensor = 8,
  kAttrFunc = 10,
  kListFunc = 9,
  kFuncAttr = 2,
  kTensorShape = 2,
  kShapeDim = 2
};

// Limits the number of nested messages before any is parsed: an empty message takes two bytes on
// the wire and hundreds in memory.
class Census {
 public:
  explicit Census(size_t bytes) : left_(65536 + bytes / 64) {}
  bool Attr(std::string_view message, int depth = 0) {
    return Each(message, [&](const WireField& f) {
      if (f.number == kAttrList) return List(f.bytes, depth);
      if (f.number == kAttrShape || f.number == kAttrTensor || f.number == kAttrFunc) return Child(f.number, f.bytes, depth);
      return true;
    });
  }

 private:
  template <class Visit>
  bool Each(std::string_view message, Visit visit) {
    WireReader reader(message);
    for (WireField f; reader.Next(&f);) {
      if (f.type == WireField::kBytes && !visit(f)) return false;
    }
    return true;  // the parser reports bytes that are not a message
  }
  bool List(std::string_view message, int depth) {
    return Each(message, [&](const WireField& f) {
      if (f.number == kAttrShape || f.number == kAttrTensor) return Child(f.number, f.bytes, depth);
      return f.number != kListFunc || Child(kAttrFunc, f.bytes, depth);
    });
  }
  bool Child(uint32_t kind, std::string_view message, int depth) {
    constexpr int kParserDepth = 100;  // the parser refuses deeper nesting
    if (left_-- == 0) return false;
    return Each(message, [&](const WireField& f) {
      if (kind == kAttrShape) return f.number != kShapeDim || left_-- != 0;
      // Counts a tensor's shape, resource handles and variants; strings and numbers are not
      // messages.
      if (kind == kAttrTensor)
        return f.number == kTensorShape ? Child(kAttrShape, f.bytes, depth) : (f.number != 14 && f.number != 15) || left_-- != 0;
      if (f.number != kFuncAttr || depth > kParserDepth) return true;
      if (left_-- == 0) return false;
      return Each(f.bytes, [&](const WireField& entry) { return entry.number != 2 || Attr(entry.bytes, depth + 1); });
    });
  }
  uint64_t left_;
};

StatusOr<AttrValue> TensorAttr(const proto::TensorProto& p, SplatBudget* budget) {
  ASSIGN_OR_RETURN(Tensor t, TensorFromProto(p, budget));
  return AttrValue::OfTensor(std::move(t));
}

StatusOr<AttrValue> FromList(const proto::AttrValue::ListValue& p, uint32_t kind_if_empty, SplatBudget* budget, bool* whole) {
  const int sizes[] = {p.s_size(), p.i_size(), p.f_size(), p.b_size(), p.type_size(), p.shape_size(), p.tensor_size(), p.func_size()};
  int kinds = 0;
  for (int n : sizes) kinds += n > 0;
  if (kinds > 1) return InvalidArgument("its list has values of ", kinds, " kinds");
  if (p.i_size()) return AttrValue::Ints({p.i().begin(), p.i().end()});
  if (p.f_size()) return AttrValue::Floats({p.f().begin(), p.f().end()});
  if (p.b_size()) return AttrValue::Bools({p.b().begin(), p.b().end()});
  if (p.s_size()) return AttrValue::Strings({p.s().begin(), p.s().end()});
  if (p.type_size()) {
    std::vector<uint32_t> types;
    for (int t : p.type()) types.push_back(uint32_t(t));
    return AttrValue::Types(std::move(types));
  }
  if (p.shape_size()) {
    std::vector<Shape> shapes;
    for (const auto& s : p.shape()) {
      ASSIGN_OR_RETURN(Shape shape, ShapeFromProto(s));
      shapes.push_back(std::move(shape));
    }
    return AttrValue::Shapes(std::move(shapes));
  }
  if (p.tensor_size()) {
    std::vector<Tensor> tensors;
    for (const auto& t : p.tensor()) {
      ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(t, budget));
      tensors.push_back(std::move(tensor));
    }
    return AttrValue::Tensors(std::move(tensors));
  }
  if (p.func_size()) {
    std::vector<std::string> names;
    for (const auto& f : p.func()) {
      names.push_back(f.name());
      *whole = *whole && f.attr().empty();
    }
    return AttrValue::Funcs(std::move(names));
  }
  return AttrValue::EmptyList(kind_if_empty);
}

Status Parse(std::string_view message, proto::AttrValue* p) {
  if (!Census(message.size()).Attr(message))
    return ResourceExhausted("its ", message.size(), " bytes hold too many messages for an attribute");
  if (p->ParseFromArray(message.data(), int(message.size()))) return Status();
  return InvalidArgument("its ", message.size(), " bytes are no AttrValue message: they are damaged, or nested more than 100 deep");
}

StatusOr<float> ToFloat(double v) {
  if (std::isfinite(v) && std::fabs(v) > double(std::numeric_limits<float>::max())) {
    return InvalidArgument(v, " is beyond the range of float, which a stored graph has");
  }
  return float(v);
}

Status ToList(const AttrValue& v, proto::AttrValue::ListValue* p) {
  switch (v.kind()) {
    case TW_ATTR_INT: p->mutable_i()->Add(v.ints().begin(), v.ints().end()); break;
    case TW_ATTR_BOOL: p->mutable_b()->Add(v.bools().begin(), v.bools().end()); break;
    case TW_ATTR_FLOAT:
      for (double d : v.floats()) {
        ASSIGN_OR_RETURN(const float f, ToFloat(d));
        p->add_f(f);
      }
      break;
    case TW_ATTR_STRING:
      for (const std::string& s : v.strings()) p->add_s(s);
      break;
    case TW_ATTR_TYPE:
      for (uint32_t t : v.types()) p->add_type(proto::DataType(t));
      break;
    case TW_ATTR_SHAPE:
      for (const Shape& s : v.shapes()) ShapeToProto(s, p->add_shape());
      break;
    case TW_ATTR_TENSOR:
      for (const Tensor& t : v.tensors()) RETURN_IF_ERROR(TensorToProto(t, p->add_tensor()));
      break;
    case TW_ATTR_FUNC:
      for (const std::string& s : v.strings()) p->add_func()->set_name(s);
      break;
    default: return Internal("an attribute has no value");
  }
  return Status();
}

Status ToProto(const AttrValue& v, proto::AttrValue* p) {
  if (v.is_list()) return ToList(v, p->mutable_list());
  switch (v.kind()) {
    case TW_ATTR_INT: p->set_i(v.ints()[0]); break;
    case TW_ATTR_BOOL: p->set_b(v.bools()[0]); break;
    case TW_ATTR_FLOAT: {
      ASSIGN_OR_RETURN(const float f, ToFloat(v.floats()[0]));
      p->set_f(f);
      break;
    }
    case TW_ATTR_STRING: p->set_s(v.strings()[0]); break;
    case TW_ATTR_TYPE: p->set_type(proto::DataType(v.types()[0])); break;
    case TW_ATTR_SHAPE: ShapeToProto(v.shapes()[0], p->mutable_shape()); break;
    case TW_ATTR_TENSOR: return TensorToProto(v.tensors()[0], p->mutable_tensor());
    case TW_ATTR_FUNC: p->mutable_func()->set_name(v.strings()[0]); break;
    default: return Internal("an attribute has no value");
  }
  return Status();
}

// Fast path: the usual attributes are read off the wire without the parser's objects: one number,
// bool, text, type or shape, a tensor of numbers, an empty list. These functions return nothing for
// all other bytes, damaged ones included; the parser handles those.

std::optional<Shape> ReadShape(std::string_view message) {
  constexpr uint32_t kSize = 1;
  int64_t dims[kMaxRank];
  int32_t rank = 0;
  WireReader reader(message);
  for (WireField dim; reader.Next(&dim); ++rank) {
    if (dim.number != kShapeDim || dim.type != WireField::kBytes || rank == kMaxRank) return {};
    dims[rank] = 0;
    if (dim.bytes.empty()) continue;
    WireReader inside(dim.bytes);
    WireField size;
    if (!inside.Next(&size) || size.number != kSize || size.type != WireField::kVarint || size.raw != dim.bytes) return {};
    dims[rank] = int64_t(size.value);
    if (dims[rank] < -1) return {};
  }
  return reader.ok() ? std::optional(Shape(dims, rank)) : std::nullopt;
}

Tensor ReadTensor(std::string_view message) {
  enum : uint32_t { kDType = 1, kContent = 4 };
  uint32_t dtype = TW_INVALID_TYPE;
  std::optional<Shape> shape;
  std::string_view content;
  WireReader reader(message);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kDType && f.type == WireField::kVarint && dtype == TW_INVALID_TYPE) {
      dtype = uint32_t(f.value);
    } else if (f.number == kTensorShape && f.type == WireField::kBytes && !shape) {
      shape = ReadShape(f.bytes);
      if (!shape) return Tensor();
    } else if (f.number == kContent && f.type == WireField::kBytes && content.empty()) {
      content = f.bytes;
    } else {
      return Tensor();
    }
  }
  const DTypeInfo* info = FindDType(dtype);
  if (!reader.ok() || !info || !info->plain || IsRef(dtype) || !shape || !shape->known() || content.empty()) return Tensor();
  auto bytes = CountBytes(shape->dims().data(), shape->rank(), dtype);
  if (!bytes.ok() || uint64_t(*bytes) != content.size()) return Tensor();
  auto tensor = Tensor::Make(dtype, *shape);
  if (!tensor.ok()) return Tensor();
  std::memcpy(tensor->data(), content.data(), content.size());
  return CheckElements(*tensor).ok() ? *std::move(tensor) : Tensor();
}

AttrValue ReadUsual(std::string_view message, const AttrSpec& spec) {
  enum : uint32_t { kS = 2, kI = 3, kF = 4, kB = 5, kType = 6 };
  WireReader reader(message);
  WireField f;
  if (!reader.Next(&f) || f.raw.size() != message.size()) return AttrValue();
  switch (f.number) {
    case kS: return f.type == WireField::kBytes ? AttrValue::String(std::string(f.bytes)) : AttrValue();
    case kI: return f.type == WireField::kVarint ? AttrValue::Int(int64_t(f.value)) : AttrValue();
    case kB: return f.type == WireField::kVarint ? AttrValue::Bool(f.value != 0) : AttrValue();
    case kType: return f.type == WireField::kVarint ? AttrValue::Type(uint32_t(f.value)) : AttrValue();
    case kF: {
      float value;
      if (f.type != WireField::kFixed32) return AttrValue();
      std::memcpy(&value, f.raw.data() + f.raw.size() - sizeof value, sizeof value);
      return AttrValue::Float(double(value));
    }
    case kAttrList: return f.type == WireField::kBytes && f.bytes.empty() ? AttrValue::EmptyList(spec.kind) : AttrValue();
    case kAttrShape: {
      if (f.type != WireField::kBytes) return AttrValue();
      std::optional<Shape> shape = ReadShape(f.bytes);
      return shape ? AttrValue::OfShape(*std::move(shape)) : AttrValue();
    }
    case kAttrTensor: {
      if (f.type != WireField::kBytes) return AttrValue();
      Tensor tensor = ReadTensor(f.bytes);
      return tensor ? AttrValue::OfTensor(std::move(tensor)) : AttrValue();
    }
    default: return AttrValue();
  }
}

}  // namespace

StatusOr<AttrValue> ParseAttr(std::string_view message, const AttrSpec& spec, SplatBudget* budget, bool* whole) {
  *whole = true;
  if (AttrValue usual = ReadUsual(message, spec); !usual.empty()) return usual;
  proto::AttrValue p;
  RETURN_IF_ERROR(Parse(message, &p));
  switch (p.value_case()) {
    case proto::AttrValue::kS: return AttrValue::String(p.s());
    case proto::AttrValue::kI: return AttrValue::Int(p.i());
    case proto::AttrValue::kF: return AttrValue::Float(double(p.f()));
    case proto::AttrValue::kB: return AttrValue::Bool(p.b());
    case proto::AttrValue::kType: return AttrValue::Type(uint32_t(p.type()));
    case proto::AttrValue::kTensor: return TensorAttr(p.tensor(), budget);
    case proto::AttrValue::kList: return FromList(p.list(), spec.kind, budget, whole);
    case proto::AttrValue::kShape: {
      ASSIGN_OR_RETURN(Shape shape, ShapeFromProto(p.shape()));
      return AttrValue::OfShape(std::move(shape));
    }
    case proto::AttrValue::kFunc: *whole = p.func().attr().empty(); return AttrValue::Func(p.func().name());
    case proto::AttrValue::kPlaceholder:
      return InvalidArgument("it is the placeholder '", Shown(p.placeholder()), "', which only the body of a function may have");
    case proto::AttrValue::VALUE_NOT_SET: break;
  }
  return InvalidArgument("it has no value");
}

StatusOr<std::string> SerializeAttr(const AttrValue& value) {
  proto::AttrValue p;
  RETURN_IF_ERROR(ToProto(value, &p));
  std::string out;
  if (!p.SerializeToString(&out)) return ResourceExhausted("an attribute's value does not fit into a message, which holds 2 GiB");
  return out;
}

Status ParseColocation(std::string_view message, std::vector<std::string>* names, std::vector<std::string>* others) {
  proto::AttrValue p;
  RETURN_IF_ERROR(Parse(message, &p));
  for (const std::string& s : p.list().s()) {
    const bool location = std::string_view(s).substr(0, kLocation.size()) == kLocation;
    (location ? names : others)->push_back(location ? s.substr(kLocation.size()) : s);
  }
  return Status();
}

StatusOr<std::string> SerializeColocation(const std::vector<std::string>& names, const std::vector<std::string>& others) {
  std::vector<std::string> all = others;
  for (const std::string& n : names) all.push_back(StrCat(kLocation, n));
  return SerializeAttr(AttrValue::Strings(std::move(all)));
}

}  // namespace thalweg
