// Tests host->tensor->forward_part from outside: the forwarded memory, its values, and the effects
// of later steps on them.
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"
#include "tests/framework/support/test_ops.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

class ForwardPartTest : public testing::Test {
 protected:
  Edge Cut(Edge x, int64_t first, int64_t size, uint32_t type = TW_FLOAT, const std::string& device = "") {
    return g_.Op(
        "Cut", {x},
        {.device = device, .attrs = {{"U", AttrValue::Type(type)}, {"first", AttrValue::Int(first)}, {"size", AttrValue::Int(size)}}});
  }
  Edge Input(uint32_t type, const Shape& shape) {
    return g_.Op("Placeholder", {}, {.attrs = {{"shape", AttrValue::OfShape(shape)}, {"dtype", AttrValue::Type(type)}}});
  }
  Tensor Run(Edge fetch, const std::vector<Tensor>& feeds = {}) {
    auto out = Step(*g_.NewSession(), {feeds.empty() ? std::vector<Edge>() : std::vector<Edge>{x_}, {fetch}, {}}, feeds);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0] : Tensor();
  }
  static bool Inside(const Tensor& part, const Tensor& whole) {
    const char *p = part.as<char>(), *w = whole.as<char>();
    return p >= w && p + part.bytes() <= w + whole.bytes();
  }
  TestGraph g_{2};
  Edge x_ = g_.Input(Shape({64}));
};

TEST_F(ForwardPartTest, PartsOfAFeedShareItsMemoryAndKeepIt) {
  Tensor x = FloatsOf(Shape({64}));
  Tensor part = Run(Cut(x_, 16, 3), {x});
  EXPECT_EQ(part.as<float>(), x.as<float>() + 16);
  EXPECT_FALSE(x.unique());
  x.reset();
  EXPECT_THAT(Values(part), ElementsAre(17, 18, 19));
}

TEST_F(ForwardPartTest, APartThatBeginsInTheMiddleOfACacheLineIsACopy) {
  const Tensor x = FloatsOf(Shape({64}));
  const Tensor part = Run(Cut(x_, 61, 3), {x});
  EXPECT_FALSE(Inside(part, x));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(part.data()) % 64, 0u);
  EXPECT_THAT(Values(part), ElementsAre(62, 63, 64));
}

TEST_F(ForwardPartTest, PartsOfPlannedMemoryAreCopies) {
  Edge part = Cut(g_.Op("Next", {x_}), 16, 2), end = g_.Op("Next", {part});
  auto session = g_.NewSession();
  auto first = Step(*session, {{x_}, {part, end}, {}}, {FloatsOf(Shape({64}))});
  auto second = Step(*session, {{x_}, {part, end}, {}}, {FloatsOf(Shape({64}), 100)});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_THAT(Values((*first)[0]), ElementsAre(18, 19));
  EXPECT_THAT(Values((*first)[1]), ElementsAre(19, 20));
  EXPECT_THAT(Values((*second)[0]), ElementsAre(117, 118));
  EXPECT_THAT(Values(Run(end, {FloatsOf(Shape({64}))})), ElementsAre(19, 20));
}

TEST_F(ForwardPartTest, LargePartsAreCopiedByAllThreads) {
  constexpr int64_t kMany = 1 << 19;
  x_ = g_.Input(Shape({2 * kMany}));
  const Tensor part = Run(g_.Op("Neg", {Cut(g_.Op("Next", {x_}), kMany + 1, kMany - 1)}), {FloatsOf(Shape({2 * kMany}))});
  const std::vector<float> got = Values(part);
  for (int64_t i = 0; i < kMany - 1; ++i) ASSERT_EQ(got[size_t(i)], -float(kMany + i + 3));
}

TEST_F(ForwardPartTest, APartOfAConstantStaysWhenTheSessionIsGone) {
  const Tensor part = Run(Cut(g_.Const(Values(FloatsOf(Shape({64})))), 32, 2));
  EXPECT_THAT(Values(part), ElementsAre(33, 34));
}

TEST_F(ForwardPartTest, NumbersBecomeThoseOfAnotherTypeCountedInThat) {
  Tensor x = *Tensor::Make(TW_FLOAT, Shape({64}));
  std::memset(x.data(), 0, x.bytes());
  x.as<double>()[8] = 2.5;
  x.as<uint8_t>()[129] = 7;
  const Tensor halves = Run(Cut(x_, 8, 1, TW_DOUBLE), {x}), bytes = Run(Cut(x_, 128, 2, TW_UINT8), {x});
  EXPECT_EQ(halves.as<double>()[0], 2.5);
  EXPECT_TRUE(Inside(halves, x));
  EXPECT_EQ(bytes.as<uint8_t>()[1], 7);
  EXPECT_EQ(Run(Cut(x_, 0, 256, TW_UINT8), {x}).data(), x.data());
}

TEST_F(ForwardPartTest, BytesThatLieAnyhowAreNotSharedAsLargerNumbers) {
  Tensor bytes = *Tensor::Make(TW_UINT8, Shape({72}));
  for (uint64_t i = 0; i < 72; ++i) bytes.as<uint8_t>()[i] = uint8_t(i);
  const int64_t size = 64;
  const Tensor odd = *bytes.Part(1, TW_UINT8, &size, 1, false);
  x_ = Input(TW_UINT8, Shape({64}));
  const Tensor numbers = Run(Cut(x_, 0, 16, TW_INT32), {odd});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.data()) % alignof(int32_t), 0u);
  EXPECT_EQ(numbers.as<int32_t>()[0], 0x04030201);
}

TEST_F(ForwardPartTest, PartsOfStringsAreSharedWhereverTheyBegin) {
  x_ = Input(TW_STRING, Shape({3}));
  Tensor x = *Tensor::Make(TW_STRING, Shape({3}));
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(x.SetString(i, StrCat("text ", i)).ok());
  const Tensor part = Run(Cut(x_, 1, 2, TW_STRING), {x});
  EXPECT_TRUE(Inside(part, x));
  x.reset();
  EXPECT_EQ(part.str(1), "text 2");
}

TEST_F(ForwardPartTest, PartsOnADeviceBeginAtAnOffset) {
  Edge x = g_.Op("OnFake", {x_}, {.device = "FAKE:0"});
  for (int64_t first : {16, 3}) {
    Edge part = g_.Op("Neg", {Cut(g_.Op("HandOn", {x}, {.device = "FAKE:0"}), first, 2, TW_FLOAT, "FAKE:0")}, {.device = "FAKE:0"});
    EXPECT_THAT(Values(Run(part, {FloatsOf(Shape({64}))})), ElementsAre(-3 * float(first + 1), -3 * float(first + 2)));
  }
}

TEST_F(ForwardPartTest, APartOfAVariableDoesNotChangeWithIt) {
  Edge v = g_.Op("Box", {}, {.attrs = {{"key", AttrValue::String("v")}, {"shape", AttrValue::OfShape(Shape({64}))}}});
  const Node* put = g_.Op("Put", {v, x_}).node;
  Edge part = Cut(g_.Op("Get", {v}), 0, 1);
  const Node* bump = g_.Op("Bump", {v}).node;
  auto session = g_.NewSession();
  ASSERT_TRUE(Step(*session, {{x_}, {}, {put}}, {FloatsOf(Shape({64}))}).ok());
  const Tensor before = (*Step(*session, {{}, {part}, {}}))[0];
  ASSERT_TRUE(Step(*session, {{}, {}, {bump}}).ok());
  EXPECT_THAT(Values(before), ElementsAre(1));
  EXPECT_THAT(Values((*Step(*session, {{}, {part}, {}}))[0]), ElementsAre(2));
}

TEST_F(ForwardPartTest, RefusesWhatIsNotThere) {
  auto session = g_.NewSession();
  auto why = [&](Edge fetch, const Tensor& x) { return Text(Step(*session, {{x_}, {fetch}, {}}, {x}).status()); };
  const Tensor x = FloatsOf(Shape({64}));
  EXPECT_THAT(why(Cut(x_, 62, 3), x), HasSubstr("3 elements from number 62 on were asked of an input that has 64"));
  EXPECT_THAT(why(Cut(x_, 33, 0, TW_DOUBLE), x), HasSubstr("0 elements from number 33 on were asked of an input that has 32"));
  EXPECT_THAT(why(Cut(x_, -1, 1), x), HasSubstr("were asked of an input that has 64"));
  EXPECT_THAT(why(Cut(x_, 0, 4, TW_STRING), x), HasSubstr("elements of float cannot become string"));
  EXPECT_EQ(Run(Cut(x_, 64, 0), {x}).count(), 0u);
}

}  // namespace
}  // namespace thalweg
