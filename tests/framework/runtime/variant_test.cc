#include "framework/runtime/state/variant.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/step/frame.h"
#include "framework/tensor/memory_budget.h"
#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::FakeHost;

int alive = 0;  // number of objects

struct Number {
  explicit Number(int v) : value(v) { ++alive; }
  ~Number() { --alive; }
  int value;
};
void Destroy(const tw_host*, void* object) { delete static_cast<Number*>(object); }
tw_status* Sum(const tw_frame*, const void* x, const void* y, void** out, uint64_t* bytes) {
  *out = new Number(static_cast<const Number*>(x)->value + static_cast<const Number*>(y)->value);
  *bytes = 10;
  return nullptr;
}
tw_status* Zero(const tw_frame*, const void*, void** out, uint64_t* bytes) {
  *out = new Number(0);
  *bytes = 10;
  return nullptr;
}
constexpr tw_variant_type kNumber = {TW_SIZED(tw_variant_type), TW_S("org.test.number"), Destroy, Sum, Zero};
constexpr tw_variant_type kTwin = {TW_SIZED(tw_variant_type), TW_S("org.test.number"), Destroy, nullptr, nullptr};
constexpr tw_variant_type kOther = {TW_SIZED(tw_variant_type), TW_S("org.test.other"), Destroy, nullptr, nullptr};

struct Step final : StepBase {
  void Complete(uint64_t, Status) override {}
  bool IsLastReader(const Slot* slot) const override { return slot == last; }
  const Slot* last = nullptr;
};

// A call with two inputs and one output, each of two variants.
class VariantTest : public ::testing::Test {
 protected:
  VariantTest() {
    kernel_.host = &host_.c;
    run_.kernel = &kernel_;
    for (Slot& s : slots_) s.Hold(Variants(2));
    for (size_t k = 0; k < 3; ++k) views_[k] = &slots_[k].view;
    frame_.c = {};
    frame_.c.size = sizeof(tw_frame);
    frame_.c.host = &host_.c;
    frame_.c.in = views_;
    frame_.c.out = views_ + 2;
    frame_.c.n_in = 2;
    frame_.c.n_out = 1;
    frame_.run = &run_;
    frame_.step = &step_;
  }
  ~VariantTest() override {
    for (Slot& s : slots_) s.held.reset();
    EXPECT_EQ(alive, 0);
    if (step_.budget) {
      EXPECT_EQ(step_.budget->used(), 0u);
      step_.budget->Release();
    }
  }
  static Tensor Variants(int64_t n) { return *Tensor::Make(TW_VARIANT, &n, 1); }
  Status Make(int slot, uint64_t i, int value, const tw_variant_type* type = &kNumber, uint64_t bytes = 10) {
    auto object = std::make_unique<Number>(value);
    Status s = FromC(api_.make(&frame_.c, views_[slot], i, type, object.get(), bytes));
    if (s.ok()) (void)object.release();
    return s;
  }
  StatusOr<int> Get(int slot, uint64_t i, const tw_variant_type* type = &kNumber) {
    const void* object = nullptr;
    RETURN_IF_ERROR(FromC(api_.get(&host_.c, views_[slot], i, type, &object)));
    return static_cast<const Number*>(object)->value;
  }
  std::unique_ptr<Number> Own(uint32_t in, uint64_t i, const tw_variant_type* type = &kNumber) {
    return std::unique_ptr<Number>(static_cast<Number*>(api_.own(&frame_.c, in, i, type)));
  }

  const tw_variant_api& api_ = *VariantSet();
  FakeHost host_;
  KernelDef kernel_;
  NodeRun run_;
  Step step_;
  Slot slots_[3];
  const tw_view* views_[3];
  KernelFrame frame_;
};

TEST_F(VariantTest, AnObjectIsFoundBehindItsElementAndGoesWithIt) {
  ASSERT_TRUE(Make(0, 1, 7).ok());
  EXPECT_EQ(*Get(0, 1), 7);
  ASSERT_TRUE(Make(0, 1, 8).ok());  // replaces the other object
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(*Get(0, 1), 8);
}

TEST_F(VariantTest, ErrorsNameBothTypes) {
  ASSERT_TRUE(Make(0, 0, 1, &kOther).ok());
  EXPECT_THAT(std::string(Get(0, 0).status().message()), HasSubstr("a variant is a org.test.other, not a org.test.number"));
  EXPECT_THAT(std::string(Get(0, 1).status().message()), HasSubstr("empty"));
  EXPECT_THAT(std::string(Get(0, 2).status().message()), HasSubstr("elements 2 to 3 are not in a tensor of 2"));
}

TEST_F(VariantTest, TwoPluginsNeverShareAType) {
  ASSERT_TRUE(Make(0, 0, 1, &kTwin).ok());
  EXPECT_THAT(std::string(Get(0, 0).status().message()), HasSubstr("of another plugin"));
}

TEST_F(VariantTest, OtherTensorsHoldNoVariants) {
  slots_[0].Hold(*Tensor::Vector<int32_t>(TW_INT32, {1, 2}));
  EXPECT_THAT(std::string(Make(0, 0, 1).message()), HasSubstr("int32"));
  EXPECT_THAT(std::string(Get(0, 0).status().message()), HasSubstr("int32"));
  EXPECT_EQ(Own(0, 0), nullptr);
}

TEST_F(VariantTest, OnlyTheLastReaderOfAnObjectThatNobodyElseHoldsOwnsIt) {
  ASSERT_TRUE(Make(0, 0, 7).ok());
  EXPECT_EQ(Own(0, 0), nullptr);  // the slot has another reader
  step_.last = &slots_[0];
  EXPECT_EQ(Own(0, 0, &kOther), nullptr);
  EXPECT_EQ(Own(0, 1), nullptr);  // empty
  {
    const Tensor fetched = slots_[0].held;
    EXPECT_EQ(Own(0, 0), nullptr);
  }
  {
    const Tensor other = Variants(1);  // another tensor with the same object
    ASSERT_TRUE(FromC(api_.copy(&host_.c, views_[0], 0, &other.view(), 0, 1)).ok());
    EXPECT_EQ(Own(0, 0), nullptr);
  }
  views_[1] = views_[0];  // the call reads the slot twice
  EXPECT_EQ(Own(0, 0), nullptr);
  views_[1] = &slots_[1].view;
  const auto owned = Own(0, 0);
  ASSERT_NE(owned, nullptr);
  EXPECT_EQ(owned->value, 7);
  EXPECT_FALSE(Get(0, 0).ok());
}

TEST_F(VariantTest, CopiesShareObjects) {
  ASSERT_TRUE(Make(0, 0, 7).ok());
  ASSERT_TRUE(FromC(api_.copy(&host_.c, views_[0], 0, views_[2], 0, 2)).ok());
  EXPECT_EQ(*Get(2, 0), 7);
  EXPECT_FALSE(Get(2, 1).ok());
  EXPECT_EQ(alive, 1);
  EXPECT_FALSE(FromC(api_.copy(&host_.c, views_[0], 1, views_[2], 0, 2)).ok());
  slots_[1].Hold(*Tensor::Make(TW_RESOURCE, nullptr, 0));
  EXPECT_THAT(std::string(FromC(api_.copy(&host_.c, views_[0], 0, views_[1], 0, 1)).message()), HasSubstr("resource"));
}

TEST_F(VariantTest, SumsAreTheTypesAndAnEmptyElementIsAZero) {
  ASSERT_TRUE(Make(0, 0, 7).ok());
  ASSERT_TRUE(Make(1, 0, 5).ok());
  ASSERT_TRUE(Make(1, 1, 3).ok());
  for (uint64_t i : {0, 1}) ASSERT_TRUE(FromC(api_.add(&frame_.c, views_[0], views_[1], views_[2], i)).ok());
  EXPECT_EQ(*Get(2, 0), 12);
  EXPECT_EQ(*Get(2, 1), 3);
  for (uint64_t i : {0, 1}) ASSERT_TRUE(FromC(api_.zeros(&frame_.c, views_[0], views_[2], i)).ok());
  EXPECT_EQ(*Get(2, 0), 0);
  EXPECT_FALSE(Get(2, 1).ok());
}

TEST_F(VariantTest, TypesWithoutASumSaySo) {
  ASSERT_TRUE(Make(0, 0, 7, &kOther).ok());
  ASSERT_TRUE(Make(1, 0, 7).ok());
  EXPECT_THAT(std::string(FromC(api_.add(&frame_.c, views_[0], views_[0], views_[2], 0)).message()),
              HasSubstr("org.test.other have no sum"));
  EXPECT_THAT(std::string(FromC(api_.add(&frame_.c, views_[0], views_[1], views_[2], 0)).message()),
              HasSubstr("org.test.number have no sum"));
  EXPECT_THAT(std::string(FromC(api_.zeros(&frame_.c, views_[0], views_[2], 0)).message()), HasSubstr("have no zero"));
}

TEST_F(VariantTest, ObjectsCountTowardsTheMemoryLimit) {
  step_.budget = MemoryBudget::Create(25);
  ASSERT_TRUE(Make(0, 0, 1).ok());
  ASSERT_TRUE(Make(0, 1, 2).ok());
  EXPECT_EQ(step_.budget->used(), 20u);
  EXPECT_TRUE(absl::IsResourceExhausted(Make(2, 0, 3)));
  EXPECT_TRUE(absl::IsResourceExhausted(FromC(api_.zeros(&frame_.c, views_[0], views_[2], 0))));
  EXPECT_EQ(alive, 2);
  ASSERT_TRUE(FromC(api_.copy(&host_.c, views_[0], 0, views_[2], 0, 2)).ok());  // shared: counted once
  EXPECT_EQ(step_.budget->used(), 20u);
}

TEST_F(VariantTest, TensorsOfObjectsCountTowardsTheMemoryLimit) {
  step_.budget = MemoryBudget::Create(1000);
  const int64_t dims[] = {10, 10};
  tw_tensor* t = nullptr;
  ASSERT_TRUE(FromC(api_.tensor(&frame_.c, TW_FLOAT, dims, 2, &t)).ok());
  EXPECT_GE(step_.budget->used(), 400u);
  EXPECT_EQ(t->view.count, 100u);
  const int64_t more[] = {1000};
  tw_tensor* none = nullptr;
  EXPECT_TRUE(absl::IsResourceExhausted(FromC(api_.tensor(&frame_.c, TW_FLOAT, more, 1, &none))));
  ReleaseTensor(t);
}

}  // namespace
}  // namespace thalweg
