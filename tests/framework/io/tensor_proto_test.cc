#include "framework/proto/tensor_proto.h"

#include <cstring>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/dtype.h"
#include "framework/proto/tensor.pb.h"

namespace thalweg {
namespace {

using proto::TensorProto;
using testing::HasSubstr;

std::string Text(const Status& s) { return std::string(Message(s)); }

TensorProto Proto(uint32_t dtype, const std::vector<int64_t>& dims) {
  TensorProto p;
  p.set_dtype(proto::DataType(dtype));
  for (int64_t d : dims) p.mutable_tensor_shape()->add_dim()->set_size(d);
  return p;
}

template <class T>
std::vector<T> Values(const StatusOr<Tensor>& t) {
  if (!t.ok()) {
    ADD_FAILURE() << t.status();
    return {};
  }
  EXPECT_EQ(t->bytes() % sizeof(T), 0u);
  return {t->as<T>(), t->as<T>() + t->bytes() / sizeof(T)};
}

template <class T>
using V = std::vector<T>;

TEST(TensorProtoTest, ReadsEveryTypedField) {
  auto p = Proto(TW_FLOAT, {2});
  p.add_float_val(1.5f), p.add_float_val(-2);
  EXPECT_EQ(Values<float>(TensorFromProto(p)), (V<float>{1.5f, -2}));
  p = Proto(TW_DOUBLE, {2});
  p.add_double_val(0.1), p.add_double_val(1e300);
  EXPECT_EQ(Values<double>(TensorFromProto(p)), (V<double>{0.1, 1e300}));
  p = Proto(TW_INT64, {2});
  p.add_int64_val(INT64_MIN), p.add_int64_val(INT64_MAX);
  EXPECT_EQ(Values<int64_t>(TensorFromProto(p)), (V<int64_t>{INT64_MIN, INT64_MAX}));
  p = Proto(TW_UINT32, {1});
  p.add_uint32_val(UINT32_MAX);
  EXPECT_EQ(Values<uint32_t>(TensorFromProto(p)), V<uint32_t>{UINT32_MAX});
  p = Proto(TW_UINT64, {1});
  p.add_uint64_val(UINT64_MAX);
  EXPECT_EQ(Values<uint64_t>(TensorFromProto(p)), V<uint64_t>{UINT64_MAX});
  p = Proto(TW_BOOL, {2});
  p.add_bool_val(true), p.add_bool_val(false);
  EXPECT_EQ(Values<uint8_t>(TensorFromProto(p)), (V<uint8_t>{1, 0}));
  p = Proto(TW_COMPLEX64, {2});
  for (float f : {1.f, 2.f, 3.f, 4.f}) p.add_scomplex_val(f);
  EXPECT_EQ(Values<float>(TensorFromProto(p)), (V<float>{1, 2, 3, 4}));
  p = Proto(TW_COMPLEX128, {1});
  p.add_dcomplex_val(1), p.add_dcomplex_val(-1);
  EXPECT_EQ(Values<double>(TensorFromProto(p)), (V<double>{1, -1}));
  for (uint32_t dtype : {TW_HALF, TW_BFLOAT16}) {
    p = Proto(dtype, {2});
    p.add_half_val(0x3c00), p.add_half_val(0xffff);
    EXPECT_EQ(Values<uint16_t>(TensorFromProto(p)), (V<uint16_t>{0x3c00, 0xffff}));
  }
  for (uint32_t dtype : {TW_FLOAT8_E5M2, TW_FLOAT8_E4M3FN, TW_FLOAT8_E4M3FNUZ, TW_FLOAT8_E4M3B11FNUZ, TW_FLOAT8_E5M2FNUZ}) {
    p = Proto(dtype, {3});
    p.set_float8_val("\x01\xff");
    EXPECT_EQ(Values<uint8_t>(TensorFromProto(p)), (V<uint8_t>{1, 0xff, 0xff}));
  }
}

TEST(TensorProtoTest, ReadsSmallIntegersFromIntVal) {
  auto read = [](uint32_t dtype, std::vector<int32_t> values) {
    auto p = Proto(dtype, {int64_t(values.size())});
    for (int32_t v : values) p.add_int_val(v);
    return TensorFromProto(p);
  };
  for (uint32_t t : {TW_INT32, TW_QINT32}) EXPECT_EQ(Values<int32_t>(read(t, {INT32_MIN, INT32_MAX})), (V<int32_t>{INT32_MIN, INT32_MAX}));
  for (uint32_t t : {TW_INT16, TW_QINT16}) EXPECT_EQ(Values<int16_t>(read(t, {-32768, 32767})), (V<int16_t>{-32768, 32767}));
  for (uint32_t t : {TW_UINT16, TW_QUINT16}) EXPECT_EQ(Values<uint16_t>(read(t, {0, 65535})), (V<uint16_t>{0, 65535}));
  for (uint32_t t : {TW_INT8, TW_QINT8}) EXPECT_EQ(Values<int8_t>(read(t, {-128, 127})), (V<int8_t>{-128, 127}));
  for (uint32_t t : {TW_UINT8, TW_QUINT8}) EXPECT_EQ(Values<uint8_t>(read(t, {0, 255})), (V<uint8_t>{0, 255}));
  EXPECT_EQ(Values<int8_t>(read(TW_INT4, {-8, 7})), (V<int8_t>{-8, 7}));
  EXPECT_EQ(Values<int8_t>(read(TW_UINT2, {0, 3})), (V<int8_t>{0, 3}));
  EXPECT_THAT(Text(read(TW_INT8, {1, 128}).status()), HasSubstr("value 1 is 128, which does not fit into 8 bits"));
  EXPECT_FALSE(read(TW_UINT8, {-1}).ok());
  EXPECT_FALSE(read(TW_UINT16, {65536}).ok());
  EXPECT_THAT(Text(read(TW_INT4, {8}).status()), HasSubstr("element 0 is 8, but int4 is -8 to 7"));
  EXPECT_FALSE(read(TW_UINT4, {200}).ok());
}

TEST(TensorProtoTest, RepeatsTheLastValueAndFillsWithZerosWhereThereIsNone) {
  auto p = Proto(TW_INT32, {2, 2});
  p.add_int_val(7), p.add_int_val(9);
  EXPECT_EQ(Values<int32_t>(TensorFromProto(p)), (V<int32_t>{7, 9, 9, 9}));
  p = Proto(TW_COMPLEX64, {3});
  p.add_scomplex_val(1), p.add_scomplex_val(2);
  EXPECT_EQ(Values<float>(TensorFromProto(p)), (V<float>{1, 2, 1, 2, 1, 2}));
  p = Proto(TW_DOUBLE, {2});
  EXPECT_EQ(Values<double>(TensorFromProto(p)), (V<double>{0, 0}));
  p = Proto(TW_STRING, {3});
  p.add_string_val("a"), p.add_string_val("bc");
  auto t = TensorFromProto(p);
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->str(0), "a");
  EXPECT_EQ(t->str(1), "bc");
  EXPECT_EQ(t->str(2), "bc");
  p = Proto(TW_STRING, {2});
  t = TensorFromProto(p);
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->str(1), "");
}

TEST(TensorProtoTest, ReadsContentOfEveryPlainType) {
  for (uint32_t dtype = TW_FLOAT; dtype <= TW_UINT2; ++dtype) {
    if (!FindDType(dtype)->plain) continue;
    auto p = Proto(dtype, {3});
    std::string bytes(3 * DTypeBytes(dtype), '\1');
    p.set_tensor_content(bytes);
    EXPECT_EQ(Values<char>(TensorFromProto(p)), V<char>(bytes.begin(), bytes.end())) << DTypeName(dtype);
    bytes.pop_back();
    p.set_tensor_content(bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(TensorFromProto(p).status()));
  }
}

TEST(TensorProtoTest, ReadsStringsInContent) {
  auto p = Proto(TW_STRING, {3});
  std::string content(
      "\x02\x00\x81\x01"
      "ab",
      6);
  content.append(129, 'z');
  p.set_tensor_content(content);
  auto t = TensorFromProto(p);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->str(0), "ab");
  EXPECT_EQ(t->str(1), "");
  EXPECT_EQ(t->str(2), std::string(129, 'z'));
  for (const std::string& bad : {std::string("\x02\x00\x01z", 4), std::string("\x01\x01\x01z", 4),
                                 std::string("\x01\x01\xff\xff\xff\xff\xff\x01", 8), std::string("\x01\x01", 2)}) {
    p.set_tensor_content(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(TensorFromProto(p).status()));
  }
}

TEST(TensorProtoTest, BombsAreRefusedBeforeAnythingIsAllocated) {
  auto p = Proto(TW_FLOAT, {int64_t{1} << 40});
  p.add_float_val(1);
  Status s = TensorFromProto(p).status();
  EXPECT_TRUE(absl::IsResourceExhausted(s));
  EXPECT_THAT(Text(s), HasSubstr("1099511627775 more of 4 bytes"));
  p = Proto(TW_STRING, {1000});
  p.add_string_val(std::string(100000, 'x'));
  EXPECT_TRUE(absl::IsResourceExhausted(TensorFromProto(p).status()));
  p = Proto(TW_COMPLEX128, {int64_t{1} << 58});
  EXPECT_TRUE(absl::IsResourceExhausted(TensorFromProto(p).status()));
  // Many tensors share one budget.
  SplatBudget budget{1000};
  p = Proto(TW_UINT8, {400});
  EXPECT_TRUE(TensorFromProto(p, &budget).ok());
  EXPECT_TRUE(TensorFromProto(p, &budget).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(TensorFromProto(p, &budget).status()));
  EXPECT_EQ(budget.left, 200u);
  // Values that are written out in full cost nothing.
  p.set_tensor_content(std::string(400, '\1'));
  EXPECT_TRUE(TensorFromProto(p, &budget).ok());
  EXPECT_EQ(budget.left, 200u);
}

TEST(TensorProtoTest, RefusesShapesThatAreNone) {
  EXPECT_THAT(Text(TensorFromProto(Proto(TW_FLOAT, {-1})).status()), HasSubstr("not complete"));
  EXPECT_THAT(Text(TensorFromProto(Proto(TW_FLOAT, {-7})).status()), HasSubstr("below -1"));
  EXPECT_THAT(Text(TensorFromProto(Proto(TW_FLOAT, {int64_t{1} << 40, int64_t{1} << 40})).status()), HasSubstr("2^63-1"));
  EXPECT_THAT(Text(TensorFromProto(Proto(TW_DOUBLE, {int64_t{1} << 61})).status()), HasSubstr("2^63-1 bytes"));
  EXPECT_THAT(Text(TensorFromProto(Proto(TW_FLOAT, std::vector<int64_t>(255, 1))).status()), HasSubstr("255 axes"));
  auto p = Proto(TW_FLOAT, {2});
  p.mutable_tensor_shape()->set_unknown_rank(true);
  EXPECT_TRUE(absl::IsInvalidArgument(TensorFromProto(p).status()));
  EXPECT_TRUE(TensorFromProto(Proto(TW_FLOAT, {int64_t{1} << 40, 0})).ok());
}

TEST(TensorProtoTest, RefusesContentsThatDoNotFit) {
  auto p = Proto(TW_FLOAT, {1});
  p.add_float_val(1), p.add_float_val(2);
  EXPECT_THAT(Text(TensorFromProto(p).status()), HasSubstr("it holds 2 values, but shape [1] has 1"));
  p = Proto(TW_FLOAT, {1});
  p.add_int_val(1);
  EXPECT_THAT(Text(TensorFromProto(p).status()), HasSubstr("it is float but holds 1 values in the field of another type"));
  p = Proto(TW_COMPLEX64, {2});
  p.add_scomplex_val(1);
  EXPECT_THAT(Text(TensorFromProto(p).status()), HasSubstr("not pairs"));
  p = Proto(TW_BOOL, {2});
  p.set_tensor_content(std::string("\1\2"));
  EXPECT_THAT(Text(TensorFromProto(p).status()), HasSubstr("element 1 is 2"));
  EXPECT_THAT(Text(TensorFromProto(Proto(TW_INVALID_TYPE, {1})).status()), HasSubstr("no dtype"));
  EXPECT_THAT(Text(TensorFromProto(Proto(77, {1})).status()), HasSubstr("dtype 77 is unknown"));
  EXPECT_THAT(Text(TensorFromProto(Proto(TW_FLOAT + TW_REF, {1})).status()), HasSubstr("float_ref"));
  for (uint32_t dtype : {TW_RESOURCE, TW_VARIANT}) EXPECT_TRUE(absl::IsUnimplemented(TensorFromProto(Proto(dtype, {})).status()));
}

TEST(TensorProtoTest, RoundTripsEveryType) {
  for (uint32_t dtype = TW_FLOAT; dtype <= TW_UINT2; ++dtype) {
    if (!FindDType(dtype)->plain) continue;
    for (const Shape& shape : {Shape(std::vector<int64_t>()), Shape({0}), Shape({2, 3})}) {
      Tensor t = *Tensor::Make(dtype, shape);
      for (uint64_t i = 0; i < t.bytes(); ++i) t.as<uint8_t>()[i] = uint8_t(i % 2);
      TensorProto p;
      ASSERT_TRUE(TensorToProto(t, &p).ok());
      auto back = TensorFromProto(p);
      ASSERT_TRUE(back.ok()) << DTypeName(dtype) << back.status();
      EXPECT_EQ(back->dtype(), dtype);
      EXPECT_EQ(back->shape(), shape);
      EXPECT_TRUE(t.bytes() == 0 || std::memcmp(back->data(), t.data(), t.bytes()) == 0);
    }
  }
  Tensor s = *Tensor::Make(TW_STRING, Shape({2}));
  ASSERT_TRUE(s.SetString(1, std::string("\0x", 2)).ok());
  TensorProto p;
  ASSERT_TRUE(TensorToProto(s, &p).ok());
  auto back = TensorFromProto(p);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->str(0), "");
  EXPECT_EQ(back->str(1), std::string("\0x", 2));
  EXPECT_TRUE(absl::IsUnimplemented(TensorToProto(*Tensor::Make(TW_RESOURCE, Shape({1})), &p)));
}

TEST(TensorProtoTest, ShapesKeepWhatTheySay) {
  for (const Shape& shape : {Shape(), Shape(std::vector<int64_t>()), Shape({-1, 3}), Shape({0})}) {
    proto::TensorShapeProto p;
    ShapeToProto(shape, &p);
    auto back = ShapeFromProto(p);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, shape);
  }
  proto::TensorShapeProto p;
  ShapeToProto(Shape({-5}), &p);  // an unknown dimension with a name
  EXPECT_EQ(p.dim(0).size(), -1);
}

}  // namespace
}  // namespace thalweg
