#include "framework/planner/emit/memory_plan.h"

#include <algorithm>
#include <ctime>
#include <random>
#include <set>

#include "gtest/gtest.h"

#include "framework/base/strings.h"

namespace thalweg {
namespace {

constexpr uint64_t kGrain = 64;

uint64_t Rounded(uint64_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }

// Nodes with random successors, and storages that random nodes touch.
struct Problem {
  size_t nodes;
  std::vector<std::vector<int32_t>> next;
  std::vector<Storage> storages;
};

Problem RandomProblem(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](size_t n) { return size_t(random() % n); };
  Problem p;
  p.nodes = 2 + below(90);
  p.next.resize(p.nodes);
  for (size_t i = 0; i + 1 < p.nodes; ++i) {
    for (size_t k = below(3); k > 0; --k) p.next[i].push_back(int32_t(i + 1 + below(std::min<size_t>(p.nodes - i - 1, 10))));
  }
  for (size_t i = 0; i < p.nodes; ++i) {
    for (size_t k = below(3); k > 0; --k) {
      Storage s;
      s.bytes = below(8) == 0 ? 0 : below(2000);
      s.first = int32_t(i);
      s.users = {int32_t(i)};
      // The users of a storage come after its producer.
      int32_t at = int32_t(i);
      for (size_t steps = below(5); steps > 0 && !p.next[size_t(at)].empty(); --steps) {
        at = p.next[size_t(at)][below(p.next[size_t(at)].size())];
        if (below(2)) s.users.push_back(at);
      }
      p.storages.push_back(std::move(s));
    }
  }
  return p;
}

// The nodes of one batch run in order; a batch starts when all predecessors of its nodes are done.
// Batches are random, with few nodes or one node each.
BatchOrder RandomOrder(const Problem& p, uint64_t seed) {
  std::mt19937_64 random(seed);
  BatchOrder order;
  const size_t longest = 1 + random() % 9;
  for (size_t i = 0; i < p.nodes; ++i) {
    const bool begins = i == 0 || random() % longest == 0;
    order.batch.push_back(i == 0 ? 0 : order.batch.back() + int32_t(begins));
  }
  std::vector<std::vector<int32_t>> next(size_t(order.batch.back()) + 1);
  for (size_t i = 0; i < p.nodes; ++i) {
    for (int32_t k : p.next[i]) {
      if (order.batch[i] != order.batch[size_t(k)]) next[size_t(order.batch[i])].push_back(order.batch[size_t(k)]);
    }
  }
  order.before = FindAncestors(next);
  return order;
}

// Computes by search the nodes that start only after each node: the later ones of its batch, and
// the batches that wait for it.
std::vector<std::set<int32_t>> Descendants(const Problem& p, const BatchOrder& order) {
  std::vector<std::set<int32_t>> batches(order.before.size()), all(p.nodes);
  for (size_t i = p.nodes; i-- > 0;) {
    std::set<int32_t>& mine = batches[size_t(order.batch[i])];
    for (int32_t k : p.next[i]) {
      const int32_t b = order.batch[size_t(k)];
      if (b == order.batch[i]) continue;
      mine.insert(b);
      mine.insert(batches[size_t(b)].begin(), batches[size_t(b)].end());
    }
  }
  for (size_t i = 0; i < p.nodes; ++i) {
    for (size_t k = 0; k < p.nodes; ++k) {
      if (order.batch[i] == order.batch[k] ? i < k : batches[size_t(order.batch[i])].count(order.batch[k]) != 0) all[i].insert(int32_t(k));
    }
  }
  return all;
}

// Checks that storages with overlapping lifetimes share no byte. Returns the end of the last
// storage.
template <class Before>
uint64_t Check(const std::vector<Storage>& storages, const Before& before) {
  uint64_t end = 0;
  for (size_t i = 0; i < storages.size(); ++i) {
    const Storage& a = storages[i];
    EXPECT_EQ(a.offset % kGrain, 0u);
    EXPECT_EQ(a.bytes % kGrain, 0u);
    end = std::max(end, a.offset + a.bytes);
    for (size_t k = i + 1; k < storages.size(); ++k) {
      const Storage& b = storages[k];
      if (a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes) continue;
      auto over = [&](const Storage& old, const Storage& young) {
        return std::all_of(old.users.begin(), old.users.end(), [&](int32_t u) {
          return std::all_of(young.users.begin(), young.users.end(), [&](int32_t v) { return before(u, v); });
        });
      };
      EXPECT_TRUE(over(a, b) || over(b, a)) << "storages " << i << " and " << k << " share memory";
    }
  }
  return end;
}

class RandomMemoryPlanTest : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomMemoryPlanTest, NothingInUseTogetherSharesMemory) {
  for (uint64_t seed = GetParam(); seed < GetParam() + 50; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    const Problem p = RandomProblem(seed);
    uint64_t sum = 0, largest = 0;
    for (const Storage& s : p.storages) {
      sum += Rounded(s.bytes);
      largest = std::max(largest, Rounded(s.bytes));
    }
    // Sequential execution.
    std::vector<Storage> storages = p.storages;
    uint64_t in_order = PlanOffsets(&storages, nullptr);
    EXPECT_EQ(in_order, Check(storages, [](int32_t a, int32_t b) { return a < b; }));
    // Parallel execution.
    std::vector<Storage> shared = p.storages;
    const BatchOrder order = RandomOrder(p, seed);
    const std::vector<std::set<int32_t>> after = Descendants(p, order);
    uint64_t counted = PlanOffsets(&shared, &order);
    EXPECT_EQ(counted, Check(shared, [&](int32_t a, int32_t b) { return after[size_t(a)].count(b) != 0; }));
    for (uint64_t block : {in_order, counted}) {
      EXPECT_LE(block, sum);
      EXPECT_GE(block, largest);
    }
    if (testing::Test::HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMemoryPlanTest, testing::Values(1, 1001, 2001, 3001));

TEST(MemoryPlanTest, FindsAncestorsAcrossWords) {
  std::vector<std::vector<int32_t>> next(200);
  for (int32_t i = 0; i + 1 < 200; ++i) next[size_t(i)] = {i + 1};
  next[10].clear();  // 0..10 and 11..199 are two chains
  const Ancestors a = FindAncestors(next);
  auto is = [&](size_t node, size_t before) { return (a[node][before / 64] >> (before % 64) & 1) != 0; };
  EXPECT_TRUE(is(199, 11));
  EXPECT_TRUE(is(130, 129));
  EXPECT_FALSE(is(199, 10));
  EXPECT_FALSE(is(11, 11));
  EXPECT_FALSE(is(63, 64));
}

TEST(MemoryPlanTest, AChainNeedsTwoPlaces) {
  std::vector<Storage> storages;
  for (int32_t i = 0; i < 1000; ++i) storages.push_back({1000, i, {i, i + 1}, 0});
  EXPECT_EQ(PlanOffsets(&storages, nullptr), 2 * Rounded(1000));
}

TEST(MemoryPlanTest, TakesTheSmallestGapThatFits) {
  // When the last storage is placed, two gaps are left: 128 and 64 bytes.
  std::vector<Storage> storages = {{128, 0, {0, 1}, 0}, {64, 0, {0, 9}, 0}, {64, 0, {0, 1}, 0}, {64, 0, {0, 9}, 0}, {10, 2, {2}, 0}};
  EXPECT_EQ(PlanOffsets(&storages, nullptr), 320u);
  EXPECT_EQ(storages[4].offset, storages[2].offset);
}

TEST(MemoryPlanTest, ManyLiveStoragesTakeNoTime) {
  constexpr int32_t kMany = 60000;
  std::vector<Storage> storages;
  for (int32_t i = 0; i < kMany; ++i) storages.push_back({uint64_t(i % 7 + 1) * kGrain, i, {i, i % 2 ? i + 2 : kMany}, 0});
  const std::clock_t start = std::clock();
  PlanOffsets(&storages, nullptr);
  EXPECT_LT(double(std::clock() - start) / CLOCKS_PER_SEC, 2);
}

TEST(MemoryPlanTest, InABatchAChainNeedsTwoPlacesBesideWhatOthersHold) {
  // Batches 0 and 1 run in parallel, batch 2 after batch 0.
  constexpr int32_t kLength = 100;
  BatchOrder order;
  for (int32_t b = 0; b < 3; ++b) order.batch.insert(order.batch.end(), kLength, b);
  order.before = FindAncestors({{2}, {}, {}});
  std::vector<Storage> storages;
  for (int32_t i = 0; i < 3 * kLength; ++i) {
    storages.push_back({1000, i, {i}, 0});
    if ((i + 1) % kLength) storages.back().users.push_back(i + 1);
  }
  EXPECT_EQ(PlanOffsets(&storages, &order), 4 * Rounded(1000));
}

TEST(MemoryPlanTest, EmptyStoragesTakeNoRoom) {
  std::vector<Storage> storages = {{0, 0, {0, 5}, 0}, {10, 0, {0, 5}, 0}, {0, 1, {1, 5}, 0}};
  EXPECT_EQ(PlanOffsets(&storages, nullptr), kGrain);
  std::vector<Storage> none;
  EXPECT_EQ(PlanOffsets(&none, nullptr), 0u);
}

}  // namespace
}  // namespace thalweg
