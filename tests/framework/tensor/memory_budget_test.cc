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
  static constexpr uint64_t kEach = MemoryBudget::kPerBuffer;
  MemoryBudget* budget_ = MemoryBudget::Create(10'000);
};

TEST_F(MemoryBudgetTest, CountsABufferUntilItsLastReferenceIsGone) {
  auto t = Make(4096);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(budget_->used(), 4096u + kEach);
  const int64_t dims[] = {64, 64};
  Tensor view = *t->Reshape(dims, 2), copy = *t;
  const uint64_t with_view = budget_->used();  // with the record of the view
  EXPECT_GT(with_view, 4096u + kEach);
  EXPECT_LT(with_view, 4096u + 2 * kEach);
  t->reset();
  copy.reset();
  EXPECT_EQ(budget_->used(), with_view);
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
            "6480 bytes more are too many: the session holds 4432 of the 10000 bytes of its memory_limit; raise the limit or use less");
  EXPECT_EQ(MemoryPool::Host()->stats().in_use, in_use);
  EXPECT_EQ(budget_->used(), 4096u + kEach);
  EXPECT_FALSE(Make(int64_t{1} << 50).ok());  // not requested from the system
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
  t.reset();  // the address sanitizer detects errors here
}

TEST_F(MemoryBudgetTest, CountsWhatStringsHold) {
  Tensor t = *Make(2, TW_STRING);
  const uint64_t empty = budget_->used();
  ASSERT_TRUE(t.SetString(0, std::string(1000, 'x')).ok());
  const uint64_t with = budget_->used();
  EXPECT_GE(with, empty + 1000);
  EXPECT_LE(with, empty + 1100);
  ASSERT_TRUE(t.SetString(0, std::string(10, 'x')).ok());
  EXPECT_EQ(budget_->used(), with);  // the memory is kept
  EXPECT_TRUE(absl::IsResourceExhausted(t.SetString(1, std::string(20'000, 'x'))));
  EXPECT_EQ(budget_->used(), with);
  EXPECT_EQ(t.str(1), "");
  ASSERT_TRUE(t.SetString(1, std::string(5000, 'x')).ok());
  ASSERT_TRUE(t.SetString(1, "short").ok());  // frees the block of the long string
  EXPECT_LE(budget_->used(), with + 100);
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
    EXPECT_EQ(budget_->used(), 0u);  // not charged while another tensor shares it
  }
  EXPECT_TRUE(budget_->Charge(t.get()).ok());
  const uint64_t used = budget_->used();
  EXPECT_GE(used, 532u);
  EXPECT_TRUE(budget_->Charge(t.get()).ok());
  EXPECT_EQ(budget_->used(), used);  // charged once
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

// ---- Accounts with parents ----

class AccountsTest : public testing::Test {
 protected:
  ~AccountsTest() override {
    for (MemoryBudget* b : {a_, b_, client_, server_}) b->Release();
  }
  static constexpr uint64_t kNone = MemoryBudget::kUnlimited;
  MemoryBudget* server_ = MemoryBudget::Create(10'000, "the server");
  MemoryBudget* client_ = MemoryBudget::Create(6'000, "client 'ann'", server_);
  MemoryBudget* a_ = MemoryBudget::Create(4'000, "the session", client_);
  MemoryBudget* b_ = MemoryBudget::Create(kNone, "the session", client_);
};

TEST_F(AccountsTest, EveryLevelPaysAndIsPaidBack) {
  ASSERT_TRUE(a_->Take(1000).ok());
  const int64_t n = 100;
  Tensor t = *Tensor::Make(TW_UINT8, &n, 1, nullptr, b_);
  EXPECT_EQ(client_->used(), a_->used() + b_->used());
  EXPECT_EQ(server_->used(), client_->used());
  t.reset();
  a_->Give(1000);
  EXPECT_EQ(server_->used(), 0u);
  EXPECT_EQ(client_->used(), 0u);
}

TEST_F(AccountsTest, TheErrorNamesTheAccountWhoseLimitItIs) {
  EXPECT_EQ(Text(a_->Take(4001)),
            "4001 bytes more are too many: the session holds 0 of the 4000 bytes of its memory_limit; raise the limit or use less");
  ASSERT_TRUE(a_->Take(3000).ok());
  EXPECT_EQ(Text(b_->Take(3001)),
            "3001 bytes more are too many: client 'ann' holds 3000 of the 6000 bytes of its memory_limit; raise the limit or use less");
  ASSERT_TRUE(server_->Take(7000).ok());
  for (const Status& s : {a_->Take(1), a_->Check(1)}) {
    EXPECT_EQ(Text(s),
              "1 bytes more are too many: the server holds 10000 of the 10000 bytes of its memory_limit; raise the limit or use less");
  }
}

TEST_F(AccountsTest, ARefusalTakesNothingAnywhere) {
  EXPECT_FALSE(b_->Take(6001).ok());
  ASSERT_TRUE(server_->Take(9000).ok());
  EXPECT_FALSE(a_->Take(1001).ok());
  EXPECT_EQ(a_->used(), 0u);
  EXPECT_EQ(b_->used(), 0u);
  EXPECT_EQ(client_->used(), 0u);
  EXPECT_EQ(server_->used(), 9000u);
  EXPECT_EQ(a_->left(), 1000u);
}

TEST_F(AccountsTest, WhatOneSessionKeepsForLaterGoesForAnother) {
  ASSERT_TRUE(a_->Take(4000).ok());
  int calls = 0;
  a_->SetReclaim([&] {
    ++calls;
    a_->Give(4000);
  });
  EXPECT_TRUE(b_->Take(5000).ok());
  EXPECT_EQ(calls, 1);
  a_->SetReclaim(nullptr);
  EXPECT_FALSE(b_->Take(5000).ok());
  EXPECT_EQ(calls, 1);
}

TEST_F(AccountsTest, AnAccountOutlivesWhoMadeItAsLongAsItsChildrenHoldSomething) {
  MemoryBudget* client = MemoryBudget::Create(kNone, "client 'bob'", server_);
  MemoryBudget* session = MemoryBudget::Create(kNone, "the session", client);
  session->SetReclaim([] {});
  const int64_t n = 100;
  Tensor t = *Tensor::Make(TW_UINT8, &n, 1, nullptr, session);
  session->SetReclaim(nullptr);
  session->Release();
  client->Release();
  EXPECT_GT(server_->used(), 100u);
  EXPECT_FALSE(server_->Take(20'000).ok());  // asks the budgets that the tensor keeps alive to reclaim memory
  t.reset();
  EXPECT_EQ(server_->used(), 0u);
}

TEST_F(AccountsTest, ThreadsOfSeveralSessionsNeverHoldMoreThanTheServersLimit) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      MemoryBudget* session = MemoryBudget::Create(kNone, "the session", i % 2 ? client_ : server_);
      session->SetReclaim([] {});
      for (int k = 0; k < 5000; ++k) {
        if (session->Take(3000).ok()) session->Give(3000);
        EXPECT_LE(server_->used(), 10'000u);
        EXPECT_LE(client_->used(), 6'000u);
      }
      session->SetReclaim(nullptr);
      session->Release();
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(server_->used(), 0u);
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
