#include "framework/graph/attr_value.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::Text;

Tensor Floats(std::vector<float> v) { return *Tensor::Vector<float>(TW_FLOAT, v); }
Tensor StringTensor(std::string_view s) {
  Tensor t = *Tensor::Make(TW_STRING, Shape(std::initializer_list<int64_t>{}));
  EXPECT_TRUE(t.SetString(0, s).ok());
  return t;
}

// Returns one value of each kind, single and list.
std::vector<AttrValue> Samples() {
  return {AttrValue::Int(-3),
          AttrValue::Float(0.5),
          AttrValue::Bool(true),
          AttrValue::String("a"),
          AttrValue::Type(TW_FLOAT),
          AttrValue::OfShape(Shape({2, -1})),
          AttrValue::OfTensor(Floats({1, 2})),
          AttrValue::Func("f"),
          AttrValue::Ints({1, 2}),
          AttrValue::Floats({1, 2}),
          AttrValue::Bools({0, 1}),
          AttrValue::Strings({"a", ""}),
          AttrValue::Types({TW_FLOAT, TW_INT32}),
          AttrValue::Shapes({Shape(), Shape({3})}),
          AttrValue::Tensors({Floats({1})}),
          AttrValue::Funcs({"f", "g"})};
}

TEST(AttrValueTest, KnowsItsKindAndCount) {
  EXPECT_TRUE(AttrValue().empty());
  EXPECT_EQ(AttrValue().count(), 0u);
  AttrValue v = AttrValue::Strings({"a", "b"});
  EXPECT_EQ(v.kind(), uint32_t{TW_ATTR_STRING});
  EXPECT_TRUE(v.is_list());
  EXPECT_EQ(v.count(), 2u);
  EXPECT_FALSE(AttrValue::Int(1).is_list());
  EXPECT_EQ(AttrValue::Int(1).count(), 1u);
}

TEST(AttrValueTest, MakesAnEmptyListOfEachKind) {
  for (uint32_t kind = TW_ATTR_INT; kind <= TW_ATTR_FUNC; ++kind) {
    AttrValue v = AttrValue::EmptyList(kind);
    EXPECT_EQ(v.kind(), kind);
    EXPECT_TRUE(v.is_list());
    EXPECT_EQ(v.count(), 0u);
  }
  EXPECT_TRUE(AttrValue::EmptyList(99).empty());
}

TEST(AttrValueTest, EqualsOnlyItself) {
  std::vector<AttrValue> a = Samples(), b = Samples();
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) EXPECT_EQ(a[i] == b[k], i == k) << a[i].text() << " and " << b[k].text();
  }
  EXPECT_TRUE(AttrValue() == AttrValue());
  EXPECT_FALSE(AttrValue::Int(1) == AttrValue::Ints({1}));
}

TEST(AttrValueTest, ComparesNumbersBitForBit) {
  EXPECT_FALSE(AttrValue::Float(0.0) == AttrValue::Float(-0.0));
  EXPECT_TRUE(AttrValue::Float(NAN) == AttrValue::Float(NAN));
  EXPECT_FALSE(AttrValue::OfTensor(Floats({0.0f})) == AttrValue::OfTensor(Floats({-0.0f})));
}

TEST(AttrValueTest, RoundsFloatsAsTheyAreStored) {
  EXPECT_THAT(AttrValue::Float(0.2).floats(), ElementsAre(double(0.2f)));
  EXPECT_THAT(AttrValue::Floats({0.1, -1e-50}).floats(), ElementsAre(double(0.1f), 0));
  const double c[] = {0.2, 1e300};
  EXPECT_THAT(AttrValue::FromC({"f", 1, c, TW_ATTR_FLOAT, 2, 1, 0})->floats(), ElementsAre(double(0.2f), 1e300));
  EXPECT_THAT(AttrValue::Float(-INFINITY).floats(), ElementsAre(-INFINITY));
  EXPECT_THAT(AttrValue::Float(3.4028235e38).floats(), ElementsAre(double(FLT_MAX)));
}

TEST(AttrValueTest, ComparesTensorsByTypeShapeAndContents) {
  EXPECT_FALSE(AttrValue::OfTensor(Floats({1, 2})) == AttrValue::OfTensor(Floats({1, 3})));
  EXPECT_FALSE(AttrValue::OfTensor(Floats({1, 2})) == AttrValue::OfTensor(Floats({1})));
  EXPECT_FALSE(AttrValue::OfTensor(Floats({1})) == AttrValue::OfTensor(*Tensor::Vector<int32_t>(TW_INT32, {1})));
  EXPECT_TRUE(AttrValue::OfTensor(StringTensor("x")) == AttrValue::OfTensor(StringTensor("x")));
  EXPECT_FALSE(AttrValue::OfTensor(StringTensor("x")) == AttrValue::OfTensor(StringTensor("y")));
}

TEST(AttrValueTest, SpeaksForMessages) {
  EXPECT_EQ(AttrValue::Int(3).text(), "3");
  EXPECT_EQ(AttrValue::String("SA\"ME").text(), "\"SA\\\"ME\"");
  EXPECT_EQ(AttrValue::Type(TW_FLOAT).text(), "float");
  EXPECT_EQ(AttrValue::Type(77).text(), "type 77");
  EXPECT_EQ(AttrValue::Ints({1, 2}).text(), "[1, 2]");
  EXPECT_EQ(AttrValue::OfShape(Shape({2, -1})).text(), "[2, ?]");
  EXPECT_EQ(AttrValue::OfTensor(Floats({1, 2})).text(), "a float tensor [2]");
  EXPECT_EQ(AttrValue::Bool(true).text(), "true");
  EXPECT_THAT(AttrValue::Ints(std::vector<int64_t>(20, 7)).text(), HasSubstr("and 4 more]"));
}

TEST(AttrValueTest, SurvivesTheTripThroughC) {
  for (const AttrValue& v : Samples()) {
    CAttrs c;
    c.Add("name", v);
    ASSERT_EQ(c.size(), 1u);
    EXPECT_EQ(std::string_view(c.data()->name, c.data()->name_len), "name");
    auto back = AttrValue::FromC(*c.data());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == v) << v.text();
  }
}

TEST(AttrValueTest, CFormStaysGoodWhileMoreIsAdded) {
  std::vector<AttrValue> all = Samples();
  CAttrs c;
  for (int round = 0; round < 10; ++round) {
    for (const AttrValue& v : all) c.Add("x", v);
  }
  for (uint32_t i = 0; i < c.size(); ++i) EXPECT_TRUE(*AttrValue::FromC(c.data()[i]) == all[i % all.size()]);
}

TEST(AttrValueTest, TurnsAnyTruthIntoOne) {
  uint8_t values[] = {0, 7};
  tw_attr a = {TW_S("b"), values, TW_ATTR_BOOL, 2, 1, 0};
  EXPECT_THAT(AttrValue::FromC(a)->bools(), ElementsAre(0, 1));
}

TEST(AttrValueTest, RefusesCAttributesThatCannotBe) {
  int64_t one = 1;
  auto refusal = [](tw_attr a) {
    auto v = AttrValue::FromC(a);
    EXPECT_EQ(v.status().code(), absl::StatusCode::kInvalidArgument);
    return Text(v.status());
  };
  EXPECT_EQ(refusal({TW_S("a"), &one, TW_ATTR_INT, 2, 0, 0}), "attribute 'a' is a single value but its count is 2");
  EXPECT_EQ(refusal({TW_S("a"), &one, 42, 1, 0, 0}), "attribute 'a': kind 42 is unknown");
  EXPECT_EQ(refusal({TW_S("a"), &one, TW_ATTR_INT, 1, 2, 0}), "attribute 'a': is_list is 2; it must be 0 or 1");
  EXPECT_EQ(refusal({TW_S("a"), nullptr, TW_ATTR_INT, 1, 0, 0}), "attribute 'a' has 1 values but no data");
  tw_string no_bytes = {nullptr, 3};
  EXPECT_THAT(refusal({TW_S("a"), &no_bytes, TW_ATTR_STRING, 1, 0, 0}), HasSubstr("3 bytes but no data"));
  tw_shape no_dims = {nullptr, 2, 0};
  EXPECT_THAT(refusal({TW_S("a"), &no_dims, TW_ATTR_SHAPE, 1, 0, 0}), HasSubstr("a shape of rank 2 has no dims"));
  tw_shape deep = {&one, 1000, 0};
  EXPECT_THAT(refusal({TW_S("a"), &deep, TW_ATTR_SHAPE, 1, 0, 0}), HasSubstr("rank 1000 is more than"));
  tw_tensor* no_tensor = nullptr;
  EXPECT_THAT(refusal({TW_S("a"), &no_tensor, TW_ATTR_TENSOR, 1, 0, 0}), HasSubstr("tensor 0 is NULL"));
}

}  // namespace
}  // namespace thalweg
