#include "distributed/peer_accounts.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "distributed/messages.h"
#include "distributed/meter.h"
#include "distributed/piece.h"

namespace thalweg::distributed {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

PeerLimits Small() {
  PeerLimits limits;
  limits.memory_limit = 1 << 20;
  limits.client_memory_limit = 400 << 10;
  limits.max_client_requests = PeerAccounts::kFree + 5;
  return limits;
}

TEST(PeerAccounts, HaveALimitForAllAndOneForEachClient) {
  PeerAccounts accounts(Small(), nullptr);
  const auto ann = accounts.Find("client/ann", true), bob = accounts.Find("client/bob", true), task = accounts.Find("task/ps/0", false);
  EXPECT_EQ(ann, accounts.Find("client/ann", true));
  Meter hers(ann->budget()), his(bob->budget()), its(task->budget());
  EXPECT_TRUE(hers.TakeJust(300 << 10));
  EXPECT_FALSE(hers.TakeJust(101 << 10));
  EXPECT_THAT(hers.status().message(), HasSubstr("client 'client/ann' holds 307200 of the 409600 bytes of its memory_limit"));
  // Other clients have their own accounts, and a peer that is no client is limited only by the total.
  EXPECT_TRUE(his.TakeJust(400 << 10));
  EXPECT_TRUE(its.TakeJust(324 << 10));
  EXPECT_FALSE(its.TakeJust(1));
  EXPECT_THAT(its.status().message(), HasSubstr("the task holds 1048576 of the 1048576 bytes"));
  hers = Meter();
  EXPECT_EQ(ann->budget()->used(), 0u);
  EXPECT_TRUE(its.TakeJust(300 << 10));
}

TEST(PeerAccounts, ARequestCountsUntilItsAnswerIsOnItsWay) {
  PeerAccounts accounts(Small(), nullptr);
  const auto ann = accounts.Find("client/ann", true);
  std::vector<RequestShare> open;
  for (uint32_t i = 0; i < PeerAccounts::kFree + 5; ++i) {
    auto share = ann->Begin();
    ASSERT_TRUE(share.ok());
    open.push_back(*std::move(share));
  }
  const Status more = ann->Begin().status();
  EXPECT_EQ(more.code(), Code::kResourceExhausted);
  EXPECT_THAT(more.message(), HasSubstr("client 'client/ann' has 69 requests"));
  EXPECT_THAT(more.message(), HasSubstr("max_client_requests"));
  EXPECT_TRUE(accounts.Find("client/bob", true)->Begin().ok());
  EXPECT_EQ(ann->budget()->used(), 5 * PeerAccounts::kPerRequest);
  open.pop_back();
  EXPECT_TRUE(ann->Begin().ok());
  open.clear();
  EXPECT_EQ(ann->requests(), 0u);
  EXPECT_EQ(ann->budget()->used(), 0u);
}

TEST(PeerAccounts, WhoHasLeftSomethingBehindIsTheSameOneWhenItComesBack) {
  PeerAccounts accounts(Small(), nullptr);
  auto left = std::make_unique<Meter>(accounts.Find("client/ann", true)->budget());
  ASSERT_TRUE(left->TakeJust(1000));
  for (int i = 0; i < 10000; ++i) accounts.Find(StrCat("client/", i), true);
  EXPECT_EQ(accounts.size(), 1u);
  EXPECT_EQ(accounts.Find("client/ann", true)->budget()->used(), 1000u);
  left.reset();
  EXPECT_EQ(accounts.size(), 0u);
}

TEST(PeerAccounts, CountRightFromManyThreads) {
  PeerAccounts accounts(Small(), nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&accounts, t] {
      for (int i = 0; i < 5000; ++i) {
        const auto account = accounts.Find(t % 2 ? "client/ann" : "client/bob", true);
        const auto one = account->Begin();
        Meter m(account->budget(), 100);
        m.Take(uint64_t(i));
        m.Trim();
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(accounts.all()->used(), 0u);
}

// ---- Messages that expand ----

// Parses the message with that limit, and checks that its account stays within the limit.
Status Read(std::string_view message, uint64_t limit) {
  PeerLimits limits = Small();
  limits.memory_limit = limits.client_memory_limit = limit;
  PeerAccounts accounts(limits, nullptr);
  const auto ann = accounts.Find("client/ann", true);
  Meter meter(ann->budget());
  const Status s = PieceMessage::Get(message, &meter).status();
  EXPECT_LE(ann->budget()->used(), limit);
  return s;
}

TEST(Meters, PayForListsBeforeTheyAreMade) {
  // An empty string takes 4 bytes in the message and 32 in memory; a node takes 36 and about 300.
  WireWriter texts, nodes;
  texts.Text("");
  for (int i = 0; i < 3; ++i) texts.Number(uint32_t{0});  // nodes, loops, extended
  texts.Texts(std::vector<std::string>(1 << 20));
  for (int i = 0; i < 3; ++i) texts.Number(uint32_t{0});
  nodes.Text("");
  nodes.Number(uint32_t{1 << 16});
  nodes.Raw(std::string(size_t{36} << 16, '\0').data(), size_t{36} << 16);
  for (int i = 0; i < 6; ++i) nodes.Number(uint32_t{0});
  for (const WireWriter* w : {&texts, &nodes}) {
    ASSERT_LT(w->bytes().size(), size_t{5} << 20);
    const Status s = Read(w->bytes(), 8 << 20);
    EXPECT_EQ(s.code(), Code::kResourceExhausted);
    EXPECT_THAT(s.message(), HasSubstr("client 'client/ann' holds"));
    EXPECT_TRUE(Read(w->bytes(), 64 << 20).ok());
  }
}

TEST(Meters, FeedsOfStringsAndOfManyTensorsAreTheirAccounts) {
  const auto limited = [](uint64_t limit, std::string_view body) {
    PeerLimits limits = Small();
    limits.memory_limit = limits.client_memory_limit = limit;
    PeerAccounts accounts(limits, nullptr);
    const auto ann = accounts.Find("client/ann", true);
    auto all = GetTensors(body, ann->budget());
    const Status s = all.status();
    if (s.ok()) {
      EXPECT_GT(ann->budget()->used(), body.size());
    }
    all = InvalidArgument("");
    EXPECT_EQ(ann->budget()->used(), 0u);
    return s;
  };
  WireWriter strings, many;
  const int64_t n = 1 << 18;
  strings.Number(uint32_t{1});
  strings.Number(uint32_t{TW_STRING});
  strings.Number(uint32_t{1});
  strings.Number(n);
  strings.Number(uint64_t(n) * 4);
  strings.Raw(std::string(size_t(n) * 4, '\0').data(), size_t(n) * 4);
  many.Number(uint32_t{1 << 16});
  for (int i = 0; i < 1 << 16; ++i) {
    many.Number(uint32_t{TW_FLOAT});
    many.Number(uint32_t{1});
    many.Number(int64_t{0});
    many.Number(uint64_t{0});
  }
  for (const WireWriter* w : {&strings, &many}) {
    const Status s = limited(3 << 20, w->bytes());
    EXPECT_EQ(s.code(), Code::kResourceExhausted);
    EXPECT_THAT(s.message(), HasSubstr("client 'client/ann' holds"));
    EXPECT_TRUE(limited(64 << 20, w->bytes()).ok());
  }
}

}  // namespace
}  // namespace thalweg::distributed
