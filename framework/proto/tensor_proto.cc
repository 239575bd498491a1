#include "framework/proto/tensor_proto.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/proto/tensor.pb.h"
#include "framework/proto/wire.h"

namespace thalweg {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor_content is little-endian and is copied as it is");

constexpr uint64_t kMostMessageBytes = (uint64_t{1} << 31) - 1;

// The typed fields, so that a field that does not belong to the type is detected.
enum class Field {
  kNone,
  kFloat,
  kDouble,
  kInt,
  kInt64,
  kUint32,
  kUint64,
  kBool,
  kHalf,
  kComplex64,
  kComplex128,
  kFloat8,
  kString,
  kHandle
};

Field FieldOf(uint32_t dtype) {
  switch (dtype) {
    case TW_FLOAT: return Field::kFloat;
    case TW_DOUBLE: return Field::kDouble;
    case TW_INT64: return Field::kInt64;
    case TW_UINT32: return Field::kUint32;
    case TW_UINT64: return Field::kUint64;
    case TW_BOOL: return Field::kBool;
    case TW_HALF:
    case TW_BFLOAT16: return Field::kHalf;
    case TW_COMPLEX64: return Field::kComplex64;
    case TW_COMPLEX128: return Field::kComplex128;
    case TW_STRING: return Field::kString;
    case TW_RESOURCE:
    case TW_VARIANT: return Field::kHandle;
    case TW_FLOAT8_E5M2:
    case TW_FLOAT8_E4M3FN:
    case TW_FLOAT8_E4M3FNUZ:
    case TW_FLOAT8_E4M3B11FNUZ:
    case TW_FLOAT8_E5M2FNUZ: return Field::kFloat8;
    default: return Field::kInt;
  }
}

// Returns the entries of a typed field. A complex number takes two.
uint64_t EntriesIn(const proto::TensorProto& p, Field field) {
  switch (field) {
    case Field::kFloat: return uint64_t(p.float_val_size());
    case Field::kDouble: return uint64_t(p.double_val_size());
    case Field::kInt: return uint64_t(p.int_val_size());
    case Field::kInt64: return uint64_t(p.int64_val_size());
    case Field::kUint32: return uint64_t(p.uint32_val_size());
    case Field::kUint64: return uint64_t(p.uint64_val_size());
    case Field::kBool: return uint64_t(p.bool_val_size());
    case Field::kHalf: return uint64_t(p.half_val_size());
    case Field::kComplex64: return uint64_t(p.scomplex_val_size());
    case Field::kComplex128: return uint64_t(p.dcomplex_val_size());
    case Field::kFloat8: return p.float8_val().size();
    case Field::kString: return uint64_t(p.string_val_size());
    case Field::kHandle: return uint64_t(p.resource_handle_val_size()) + uint64_t(p.variant_val_size());
    case Field::kNone: break;
  }
  return 0;
}

Status CheckOtherFields(const proto::TensorProto& p, Field used, uint32_t dtype) {
  for (int f = int(Field::kFloat); f <= int(Field::kHandle); ++f) {
    const uint64_t n = Field(f) == used ? 0 : EntriesIn(p, Field(f));
    if (n > 0) return InvalidArgument("it is ", DTypeName(dtype), " but holds ", n, " values in the field of another type");
  }
  return Status();
}

// Copies the whole field, then repeats the last `group` entries; zeros if there are none.
template <class To, class From>
Status Fill(const From& from, To* to, uint64_t n, uint64_t group) {
  uint64_t i = 0;
  for (const auto v : from) {
    if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool> && sizeof(To) < sizeof(v)) {
      if (v < std::numeric_limits<To>::min() || v > std::numeric_limits<To>::max()) {
        return InvalidArgument("value ", i, " is ", v, ", which does not fit into ", 8 * sizeof(To), " bits");
      }
    }
    to[i++] = static_cast<To>(v);
  }
  if (i == 0) {
    std::fill_n(to, n, To());
  } else {
    for (; i < n; ++i) to[i] = to[i - group];
  }
  return Status();
}

Status FillStrings(const proto::TensorProto& p, Tensor* t) {
  const int n = p.string_val_size();
  if (n == 0) return Status();  // new strings are empty
  for (uint64_t i = 0; i < t->count(); ++i) RETURN_IF_ERROR(t->SetString(i, p.string_val(int(std::min<uint64_t>(i, uint64_t(n) - 1)))));
  return Status();
}

// Reads strings from tensor_content: all lengths as varints, then all bytes.
Status StringsFromContent(const std::string& content, Tensor* t) {
  const char* p = content.data();
  const char* const end = p + content.size();
  std::vector<uint64_t> lengths(t->count());
  uint64_t sum = 0;
  for (uint64_t& length : lengths) {
    if (!GetVarint(&p, end, &length) || length > content.size()) return InvalidArgument("a string's length in tensor_content is damaged");
    sum += length;  // at most 2^31 of them, each at most 2^31
  }
  if (sum != uint64_t(end - p)) return InvalidArgument("its strings have ", sum, " bytes, but tensor_content holds ", end - p);
  for (uint64_t i = 0; i < lengths.size(); ++i) {
    RETURN_IF_ERROR(t->SetString(i, {p, lengths[i]}));
    p += lengths[i];
  }
  return Status();
}

Status FillTyped(const proto::TensorProto& p, Tensor* t) {
  const uint64_t n = t->count();
  switch (FieldOf(t->dtype())) {
    case Field::kFloat: return Fill(p.float_val(), t->as<float>(), n, 1);
    case Field::kDouble: return Fill(p.double_val(), t->as<double>(), n, 1);
    case Field::kInt64: return Fill(p.int64_val(), t->as<int64_t>(), n, 1);
    case Field::kUint32: return Fill(p.uint32_val(), t->as<uint32_t>(), n, 1);
    case Field::kUint64: return Fill(p.uint64_val(), t->as<uint64_t>(), n, 1);
    case Field::kBool: return Fill(p.bool_val(), t->as<bool>(), n, 1);
    case Field::kHalf: return Fill(p.half_val(), t->as<uint16_t>(), n, 1);
    case Field::kComplex64: return Fill(p.scomplex_val(), t->as<float>(), 2 * n, 2);
    case Field::kComplex128: return Fill(p.dcomplex_val(), t->as<double>(), 2 * n, 2);
    case Field::kFloat8: return Fill(p.float8_val(), t->as<char>(), n, 1);
    case Field::kString: return FillStrings(p, t);
    default: break;
  }
  switch (t->dtype()) {
    case TW_INT32:
    case TW_QINT32: return Fill(p.int_val(), t->as<int32_t>(), n, 1);
    case TW_INT16:
    case TW_QINT16: return Fill(p.int_val(), t->as<int16_t>(), n, 1);
    case TW_UINT16:
    case TW_QUINT16: return Fill(p.int_val(), t->as<uint16_t>(), n, 1);
    case TW_UINT8:
    case TW_QUINT8:
    case TW_UINT4:
    case TW_UINT2: return Fill(p.int_val(), t->as<uint8_t>(), n, 1);
    default: return Fill(p.int_val(), t->as<int8_t>(), n, 1);
  }
}

// Charges the budget for the bytes that the message expands to beyond its own.
Status Charge(uint64_t extra_elements, uint64_t bytes_each, SplatBudget* budget) {
  uint64_t bytes;
  if (__builtin_mul_overflow(extra_elements, bytes_each, &bytes) || bytes > budget->left) {
    return ResourceExhausted("it spells out so few values that filling it up takes ", extra_elements, " more of ", bytes_each, " bytes; ",
                             budget->left, " bytes are left for that; write the values out or raise the limit");
  }
  if (budget->may) RETURN_IF_ERROR(budget->may(bytes));
  budget->left -= bytes;
  return Status();
}

StatusOr<Tensor> FromContent(const proto::TensorProto& p, const Shape& shape, uint64_t count, uint64_t bytes) {
  const uint32_t dtype = uint32_t(p.dtype());
  const uint64_t have = p.tensor_content().size();
  const bool strings = dtype == TW_STRING;
  if (strings ? have < count : have != bytes) {
    return InvalidArgument("shape ", shape.text(), " of ", DTypeName(dtype), " takes ", strings ? "at least " : "", strings ? count : bytes,
                           " bytes, but tensor_content has ", have);
  }
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, shape));
  if (strings) {
    RETURN_IF_ERROR(StringsFromContent(p.tensor_content(), &t));
  } else {
    std::memcpy(t.data(), p.tensor_content().data(), have);
  }
  return t;
}

StatusOr<Tensor> FromTyped(const proto::TensorProto& p, const Shape& shape, uint64_t count, SplatBudget* budget) {
  const uint32_t dtype = uint32_t(p.dtype());
  const Field field = FieldOf(dtype);
  const uint64_t entries = EntriesIn(p, field), group = field == Field::kComplex64 || field == Field::kComplex128 ? 2 : 1;
  if (entries % group) return InvalidArgument("its complex numbers have ", entries, " parts, which are not pairs");
  const uint64_t have = entries / group;
  if (have > count) return InvalidArgument("it holds ", have, " values, but shape ", shape.text(), " has ", count);
  uint64_t each = DTypeBytes(dtype);
  if (field == Field::kString && have > 0) each += p.string_val(int(have) - 1).size();
  RETURN_IF_ERROR(Charge(count - have, each, budget));
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, shape));
  RETURN_IF_ERROR(FillTyped(p, &t));
  return t;
}

}  // namespace

StatusOr<Shape> ShapeFromProto(const proto::TensorShapeProto& p) {
  if (p.unknown_rank()) {
    if (p.dim_size() > 0) return InvalidArgument("a shape of unknown rank has ", p.dim_size(), " sizes");
    return Shape();
  }
  if (p.dim_size() > kMaxRank) return InvalidArgument("a shape has ", p.dim_size(), " axes; at most ", kMaxRank, " are possible");
  std::vector<int64_t> dims;
  for (const auto& d : p.dim()) {
    if (d.size() < -1) return InvalidArgument("size ", d.size(), " of axis ", dims.size(), " is below -1, which stands for unknown");
    dims.push_back(d.size());
  }
  return Shape(std::move(dims));
}

void ShapeToProto(const Shape& shape, proto::TensorShapeProto* p) {
  p->Clear();
  p->set_unknown_rank(!shape.has_rank());
  for (int64_t d : shape.dims()) p->add_dim()->set_size(d < 0 ? -1 : d);  // names of unknown dims are lost
}

StatusOr<Tensor> TensorFromProto(const proto::TensorProto& p, SplatBudget* budget) {
  SplatBudget fresh;
  const uint32_t dtype = uint32_t(p.dtype());
  if (dtype == TW_INVALID_TYPE) return InvalidArgument("it has no dtype");
  if (!FindDType(dtype)) return InvalidArgument("its dtype ", dtype, " is unknown to this runtime");
  if (IsRef(dtype)) return InvalidArgument("its dtype is ", DTypeName(dtype), "; a value is never a reference");
  if (FieldOf(dtype) == Field::kHandle) return Unimplemented("a ", DTypeName(dtype), " cannot be made from a stored value");
  ASSIGN_OR_RETURN(const Shape shape, ShapeFromProto(p.tensor_shape()));
  if (!shape.known()) return InvalidArgument("its shape ", shape.text(), " is not complete");
  ASSIGN_OR_RETURN(const int64_t count, CountElements(shape.dims().data(), shape.rank()));
  ASSIGN_OR_RETURN(const int64_t bytes, CountBytes(shape.dims().data(), shape.rank(), dtype));
  RETURN_IF_ERROR(CheckOtherFields(p, p.tensor_content().empty() ? FieldOf(dtype) : Field::kNone, dtype));
  ASSIGN_OR_RETURN(Tensor t, p.tensor_content().empty() ? FromTyped(p, shape, uint64_t(count), budget ? budget : &fresh)
                                                        : FromContent(p, shape, uint64_t(count), uint64_t(bytes)));
  RETURN_IF_ERROR(CheckElements(t));
  return t;
}

Status TensorToProto(const Tensor& tensor, proto::TensorProto* p) {
  p->Clear();
  p->set_dtype(proto::DataType(tensor.dtype()));
  if (FieldOf(BaseType(tensor.dtype())) == Field::kHandle) return Unimplemented("a ", DTypeName(tensor.dtype()), " cannot be stored");
  ShapeToProto(tensor.shape(), p->mutable_tensor_shape());
  uint64_t bytes = tensor.bytes();
  if (tensor.dtype() == TW_STRING) {
    bytes = 0;
    for (uint64_t i = 0; i < tensor.count(); ++i) bytes += tensor.str(i).size() + 2;
  }
  if (bytes > kMostMessageBytes) {
    return ResourceExhausted("a value of ", bytes, " bytes does not fit into a message, which holds 2 GiB; keep it in a checkpoint");
  }
  if (tensor.dtype() != TW_STRING) {
    p->set_tensor_content(tensor.data(), size_t(bytes));
    return Status();
  }
  for (uint64_t i = 0; i < tensor.count(); ++i) p->add_string_val(tensor.str(i).data(), tensor.str(i).size());
  return Status();
}

Status CheckElements(const Tensor& tensor) {
  int32_t low, high;
  switch (tensor.dtype()) {
    case TW_BOOL: low = 0, high = 1; break;
    case TW_INT4: low = -8, high = 7; break;
    case TW_UINT4: low = 0, high = 15; break;
    case TW_INT2: low = -2, high = 1; break;
    case TW_UINT2: low = 0, high = 3; break;
    default: return Status();
  }
  for (uint64_t i = 0; i < tensor.count(); ++i) {
    const int32_t v = tensor.as<int8_t>()[i];  // above 127 it is negative, which is out of range just as well
    if (v < low || v > high)
      return InvalidArgument("element ", i, " is ", v, ", but ", DTypeName(tensor.dtype()), " is ", low, " to ", high);
  }
  return Status();
}

}  // namespace thalweg
