#include "framework/tensor/tensor.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/dtype.h"
#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::Text;

const Shape kScalar{std::initializer_list<int64_t>{}};

TEST(TensorTest, MakesEveryElementType) {
  for (uint32_t t = 1; t <= TW_UINT2; ++t) {
    auto made = Tensor::Make(t, Shape({2, 3}));
    ASSERT_TRUE(made.ok()) << DTypeName(t);
    EXPECT_EQ(made->dtype(), t);
    EXPECT_EQ(made->count(), 6u);
    EXPECT_EQ(made->bytes(), 6u * DTypeBytes(t));
    EXPECT_EQ(made->view().size, sizeof(tw_view));
    EXPECT_EQ(made->view().tensor, made->get());
    EXPECT_EQ(made->view().strides, nullptr);
  }
}

TEST(TensorTest, MakesScalarsEmptyAndDeepTensors) {
  EXPECT_EQ(Tensor::Make(TW_FLOAT, kScalar)->count(), 1u);
  EXPECT_EQ(Tensor::Make(TW_FLOAT, kScalar)->view().dims, nullptr);
  EXPECT_EQ(Tensor::Make(TW_STRING, Shape({3, 0}))->bytes(), 0u);
  Tensor deep = *Tensor::Make(TW_FLOAT, Shape(std::vector<int64_t>(kMaxRank, 1)));
  EXPECT_EQ(deep.rank(), kMaxRank);
  EXPECT_EQ(deep.dim(kMaxRank - 1), 1);
}

TEST(TensorTest, RefusesImpossibleTensors) {
  EXPECT_THAT(Text(Tensor::Make(TW_FLOAT, Shape({2, -1})).status()), HasSubstr("size -1 of axis 1"));
  EXPECT_FALSE(Tensor::Make(TW_FLOAT, Shape()).ok());
  EXPECT_FALSE(Tensor::Make(77, Shape({1})).ok());
  EXPECT_FALSE(Tensor::Make(TW_DOUBLE, Shape({std::numeric_limits<int64_t>::max() / 4})).ok());
  EXPECT_EQ(Tensor::Make(TW_UINT8, Shape({int64_t{1} << 62})).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(Tensor::Make(TW_FLOAT, Shape(std::vector<int64_t>(kMaxRank + 1, 1))).status()), HasSubstr("rank 255 is more than 254"));
}

TEST(TensorTest, CountsReferences) {
  Tensor a = *Tensor::Vector<float>(TW_FLOAT, {1, 2});
  EXPECT_TRUE(a.unique());
  Tensor b = a;
  EXPECT_FALSE(a.unique());
  b.reset();
  EXPECT_TRUE(a.unique());
  tw_tensor* raw = a.release();
  EXPECT_FALSE(bool(a));
  Tensor c = Tensor::Adopt(raw);
  Tensor d = Tensor::Share(raw);
  EXPECT_FALSE(c.unique());
  ReleaseTensor(nullptr);
}

TEST(TensorTest, ReshapesWithoutCopying) {
  Tensor a = *Tensor::Vector<int32_t>(TW_INT32, {1, 2, 3, 4, 5, 6});
  int64_t dims[] = {2, 3};
  Tensor b = *a.Reshape(dims, 2);
  EXPECT_EQ(b.data(), a.data());
  EXPECT_FALSE(a.unique());
  a.reset();
  EXPECT_TRUE(b.unique());
  EXPECT_EQ(b.as<int32_t>()[5], 6);
  dims[0] = 4;
  EXPECT_EQ(Text(b.Reshape(dims, 2).status()), "a tensor of shape [2, 3] cannot take the shape [4, 3]");
}

TEST(TensorTest, PartsLieInTheMemoryOfTheWhole) {
  Tensor whole = *Tensor::Vector<int32_t>(TW_INT32, {1, 2, 3, 4, 5, 6});
  const int64_t two = 2, dims[] = {2, 1};
  Tensor part = *whole.Part(8, TW_INT32, &two, 1, false);
  EXPECT_EQ(part.as<int32_t>(), whole.as<int32_t>() + 2);
  EXPECT_EQ(part.view().offset, 0u);
  Tensor as_bytes = *part.Part(4, TW_UINT8, &two, 1, false), column = *part.Reshape(dims, 2);
  EXPECT_EQ(as_bytes.as<uint8_t>()[0], 4);
  EXPECT_EQ(column.data(), part.data());
  EXPECT_EQ(whole.Part(8, TW_INT32, &two, 1, true)->view().offset, 8u);
  EXPECT_FALSE(part.unique());
  whole.reset();
  as_bytes.reset();
  column.reset();
  EXPECT_TRUE(part.unique());
  EXPECT_EQ(part.as<int32_t>()[1], 4);
}

TEST(TensorTest, PartsOfStringsKeepTheirOwner) {
  Tensor whole = *Tensor::Make(TW_STRING, Shape({4}));
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(whole.SetString(i, StrCat("text ", i)).ok());
  const int64_t two = 2, one = 1;
  Tensor part = *whole.Part(sizeof(tw_string), TW_STRING, &two, 1, false), last = *part.Part(sizeof(tw_string), TW_STRING, &one, 1, false);
  whole.reset();
  EXPECT_EQ(part.str(0), "text 1");
  EXPECT_FALSE(part.unique());
  part.reset();
  EXPECT_EQ(last.str(0), "text 2");
  EXPECT_EQ(last.Clone()->str(0), "text 2");
}

TEST(TensorTest, OwnsItsStrings) {
  Tensor t = *Tensor::Make(TW_STRING, Shape({3}));
  EXPECT_EQ(t.str(1), "");
  ASSERT_TRUE(t.SetString(1, "hello").ok());
  ASSERT_TRUE(t.SetString(1, std::string(1000, 'x')).ok());
  ASSERT_TRUE(t.SetString(2, "").ok());
  EXPECT_EQ(t.str(1).size(), 1000u);
  EXPECT_THAT(Text(t.SetString(3, "x")), HasSubstr("string 3 is past the end of a tensor of 3 elements"));
  EXPECT_THAT(Text(Tensor::Make(TW_FLOAT, Shape({1}))->SetString(0, "x")), HasSubstr("a tensor of float holds no strings"));
}

TEST(TensorTest, ReshapedStringsKeepTheirOwner) {
  Tensor a = *Tensor::Make(TW_STRING, Shape({4}));
  ASSERT_TRUE(a.SetString(3, "last").ok());
  int64_t dims[] = {2, 2};
  Tensor b = *a.Reshape(dims, 2);
  a.reset();
  EXPECT_EQ(b.str(3), "last");
  EXPECT_FALSE(b.unique());
}

TEST(TensorTest, ClonesWhatItHolds) {
  Tensor numbers = *Tensor::Vector<float>(TW_FLOAT, {1, 2});
  Tensor copy = *numbers.Clone();
  copy.as<float>()[0] = 9;
  EXPECT_EQ(numbers.as<float>()[0], 1);
  Tensor strings = *Tensor::Make(TW_STRING, Shape({1}));
  ASSERT_TRUE(strings.SetString(0, "abc").ok());
  Tensor second = *strings.Clone();
  ASSERT_TRUE(strings.SetString(0, "changed").ok());
  EXPECT_EQ(second.str(0), "abc");
  EXPECT_TRUE(Tensor::Make(TW_FLOAT, Shape({0}))->Clone().ok());
}

// Counts its destruction.
struct Counted final : Handle {
  explicit Counted(int* gone) : gone_(gone) {}
  ~Counted() override { ++*gone_; }
  int* gone_;
};

TEST(TensorTest, HoldsHandlesAsLongAsAnyTensorDoes) {
  int gone = 0;
  Tensor t = *Tensor::Make(TW_RESOURCE, Shape({2}));
  EXPECT_EQ(t.as<Handle*>()[1], nullptr);
  t.as<Handle*>()[0] = new Counted(&gone);
  Tensor copy = *t.Clone();
  int64_t dims[] = {2, 1};
  Tensor reshaped = *t.Reshape(dims, 2);
  t.reset();
  copy.reset();
  EXPECT_EQ(gone, 0);
  reshaped.reset();
  EXPECT_EQ(gone, 1);
}

TEST(TensorTest, WrapsABufferAndTakesItAlsoOnFailure) {
  Buffer* b = *MemoryPool::Host()->Allocate(64);
  b->Retain();
  int64_t dims[] = {4};
  Tensor t = *Tensor::Wrap(b, 16, TW_FLOAT, dims, 1);
  EXPECT_EQ(t.data(), static_cast<char*>(b->data) + 16);
  EXPECT_FALSE(t.unique());
  t.reset();
  EXPECT_TRUE(b->Unique());
  b->Retain();
  int64_t bad[] = {-1};
  EXPECT_FALSE(Tensor::Wrap(b, 0, TW_FLOAT, bad, 1).ok());
  EXPECT_TRUE(b->Unique());
  b->Release();
}

}  // namespace
}  // namespace thalweg
