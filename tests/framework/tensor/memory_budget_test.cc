#include "framework/tensor/memory_budget.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/tensor/tensor.h"
#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::Text;

class MemoryBudgetTest : public testing::Test {
 protected:
  ~MemoryBudgetTest() override { budget_->Release(); }
  StatusOr<Tensor> Make(int64_t n, uint32_t dtype = TW_UINT8) { return Tensor::Make(dtype, &n, 1, nullptr, budget_); }
  MemoryBudget* budget_ = MemoryBudget::Create(10'000);
};

TEST_F(MemoryBudgetTest, CountsABufferUntilItsLastReferenceIsGone) {
  auto t = Make(4096);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(budget_->used(), 4096u);
  const int64_t dims[] = {64, 64};
  Tensor view = *t->Reshape(dims, 2), copy = *t;
  EXPECT_EQ(budget_->used(), 4096u);
  t->reset();
  copy.reset();
  EXPECT_EQ(budget_->used(), 4096u);
  view.reset();
  EXPECT_EQ(budget_->used(), 0u);
}

TEST_F(MemoryBudgetTest, RefusesWhatDoesNotFit) {
  auto t = Make(4096);
  ASSERT_TRUE(t.ok());
  const uint64_t in_use = MemoryPool::Host()->stats().in_use;
  auto more = Make(6000);
  EXPECT_TRUE(absl::IsResourceExhausted(more.status()));
  EXPECT_EQ(Text(more.status()),
            "6000 bytes more are too many: the session holds 4096 of the 10000 bytes of its memory_limit; raise the limit or use less");
  EXPECT_EQ(MemoryPool::Host()->stats().in_use, in_use);
  EXPECT_EQ(budget_->used(), 4096u);
  EXPECT_FALSE(Make(int64_t{1} << 50).ok());  // never asked of the system
  t->reset();
  EXPECT_TRUE(Make(6000).ok());
}

TEST_F(MemoryBudgetTest, BuffersComeBackToTheirPool) {
  const int64_t n = 5000;
  void* first = Make(n)->data();
  EXPECT_EQ(Tensor::Make(TW_UINT8, &n, 1)->data(), first);  // uncharged, from the free list
  EXPECT_EQ(Make(n)->data(), first);
}

TEST_F(MemoryBudgetTest, TensorsMayOutliveWhoMadeTheBudget) {
  MemoryBudget* budget = MemoryBudget::Create(10'000);
  const int64_t n = 100;
  Tensor t = *Tensor::Make(TW_UINT8, &n, 1, nullptr, budget);
  budget->Release();
  t.reset();  // the address sanitizer watches
}

TEST_F(MemoryBudgetTest, CountsWhatStringsHold) {
  Tensor t = *Make(2, TW_STRING);
  const uint64_t empty = budget_->used();
  ASSERT_TRUE(t.SetString(0, std::string(1000, 'x')).ok());
  EXPECT_EQ(budget_->used(), empty + 1000);
  ASSERT_TRUE(t.SetString(0, std::string(10, 'x')).ok());
  EXPECT_EQ(budget_->used(), empty + 10);
  EXPECT_TRUE(absl::IsResourceExhausted(t.SetString(1, std::string(20'000, 'x'))));
  EXPECT_EQ(budget_->used(), empty + 10);
  t.reset();
  EXPECT_EQ(budget_->used(), 0u);
}

TEST_F(MemoryBudgetTest, TakesOverATensorThatNobodyElseHolds) {
  const int64_t n = 2;
  Tensor t = *Tensor::Make(TW_STRING, &n, 1);
  ASSERT_TRUE(t.SetString(1, std::string(500, 'x')).ok());
  {
    Tensor other = t;
    EXPECT_TRUE(budget_->Charge(t.get()).ok());
    EXPECT_EQ(budget_->used(), 0u);  // somebody else's
  }
  EXPECT_TRUE(budget_->Charge(t.get()).ok());
  const uint64_t used = budget_->used();
  EXPECT_GE(used, 532u);
  EXPECT_TRUE(budget_->Charge(t.get()).ok());
  EXPECT_EQ(budget_->used(), used);  // once
  t.reset();
  EXPECT_EQ(budget_->used(), 0u);

  t = *Tensor::Make(TW_STRING, &n, 1);
  ASSERT_TRUE(t.SetString(1, std::string(50'000, 'x')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(budget_->Charge(t.get())));
  t.reset();
  EXPECT_EQ(budget_->used(), 0u);
}

TEST_F(MemoryBudgetTest, ReclaimsBeforeItRefuses) {
  Tensor kept = *Make(8000);
  int calls = 0;
  budget_->SetReclaim([&] {
    ++calls;
    kept.reset();
  });
  EXPECT_TRUE(Make(8000).ok());
  EXPECT_EQ(calls, 1);
  budget_->SetReclaim(nullptr);
  EXPECT_FALSE(Make(20'000).ok());
  EXPECT_EQ(calls, 1);
}

TEST_F(MemoryBudgetTest, ThreadsNeverHoldMoreThanTheLimit) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5000; ++k) {
        auto t = Make(4096);
        EXPECT_LE(budget_->used(), 10'000u);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(budget_->used(), 0u);
}

}  // namespace
}  // namespace thalweg
