#include "framework/tensor/payer.h"

#include <memory>
#include <thread>

#include "gtest/gtest.h"

#include "framework/tensor/memory_budget.h"

namespace thalweg {
namespace {

class PayerTest : public testing::Test {
 protected:
  ~PayerTest() override { budget_->Release(); }
  MemoryBudget* budget_ = MemoryBudget::Create(1000);
};

TEST_F(PayerTest, AScopePutsBackWhoPaidBefore) {
  EXPECT_EQ(PayerOfThread(), nullptr);
  {
    const PaysFor outer(budget_);
    EXPECT_EQ(PayerOfThread(), budget_);
    {
      const PaysFor inner(nullptr);
      EXPECT_EQ(PayerOfThread(), nullptr);
    }
    EXPECT_EQ(PayerOfThread(), budget_);
    std::thread([] { EXPECT_EQ(PayerOfThread(), nullptr); }).join();
  }
  EXPECT_EQ(PayerOfThread(), nullptr);
}

TEST_F(PayerTest, PaidBytesAreGivenBackToWhoPaid) {
  std::unique_ptr<PaidBytes> paid;
  {
    const PaysFor scope(budget_);
    paid = std::make_unique<PaidBytes>();
  }
  EXPECT_TRUE(paid->Take(600).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(paid->Take(500)));
  EXPECT_TRUE(paid->Take(400).ok());
  EXPECT_EQ(budget_->used(), 1000u);
  std::thread([&] { paid.reset(); }).join();
  EXPECT_EQ(budget_->used(), 0u);
}

TEST_F(PayerTest, WithoutAPayerNothingIsCounted) {
  PaidBytes paid;
  EXPECT_TRUE(paid.Take(uint64_t{1} << 60).ok());
}

}  // namespace
}  // namespace thalweg
