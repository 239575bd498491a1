// Placement by cost, on graphs that are small enough for exhaustive search, and on graphs with an
// obvious answer.
#include "framework/planner/placement/list_placer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thalweg {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Two or three devices; the first uses host memory.
PlacementProblem Problem(size_t devices, int64_t copy_ns = 100, double byte_ns = 0) {
  PlacementProblem p;
  for (size_t d = 0; d < devices; ++d) p.memory.push_back(int32_t(d));
  p.capacity.assign(devices, 0);
  p.copy_ns = [=](int32_t, int32_t, uint64_t bytes) { return copy_ns + int64_t(byte_ns * double(bytes)); };
  return p;
}

// Adds a task in its own group that produces one value; returns the value.
int32_t Add(PlacementProblem* p, std::vector<int64_t> ns, std::vector<int32_t> reads, uint64_t bytes = 1000) {
  PlacementProblem::Task t;
  t.group = int32_t(p->groups.size());
  t.ns = std::move(ns);
  t.reads = std::move(reads);
  PlacementProblem::Group g;
  g.tasks = {int32_t(p->tasks.size())};
  for (size_t d = 0; d < p->memory.size(); ++d) g.devices.push_back(int32_t(d));
  p->values.push_back({int32_t(p->tasks.size()), bytes, false});
  p->tasks.push_back(std::move(t));
  p->groups.push_back(std::move(g));
  return int32_t(p->values.size()) - 1;
}

// Every task reads up to three values of earlier tasks; the last values are fetched.
PlacementProblem RandomProblem(uint32_t seed) {
  std::mt19937 random(seed);
  auto upto = [&](int64_t n) { return int64_t(random() % uint32_t(n)); };
  const size_t devices = 2 + size_t(upto(2)), tasks = devices == 2 ? 11 : 7;
  const int64_t latency = 20 + upto(400);
  PlacementProblem p = Problem(devices, latency, double(upto(40)) / 100);
  p.values.push_back({-1, uint64_t(upto(2000)), false});
  for (size_t t = 0; t < tasks; ++t) {
    std::vector<int64_t> ns;
    const int64_t base = 50 + upto(1000);
    for (size_t d = 0; d < devices; ++d) ns.push_back(base * (25 + upto(375)) / 100);
    std::vector<int32_t> reads;
    for (int64_t k = 0; k <= upto(3); ++k) {
      const auto v = int32_t(upto(int64_t(p.values.size())));
      if (std::find(reads.begin(), reads.end(), v) == reads.end()) reads.push_back(v);
    }
    Add(&p, ns, reads, uint64_t(upto(2000)));
  }
  p.values.back().fetched = true;
  if (upto(3) == 0) p.capacity.back() = 2500;  // not enough for all values
  return p;
}

TEST(ListPlacerTest, OnSmallRandomGraphsItIsNextToTheBestThereIs) {
  double worst = 1, sum = 0;
  int exact = 0;
  constexpr int kGraphs = 120;
  for (int seed = 0; seed < kGraphs; ++seed) {
    const PlacementProblem p = RandomProblem(uint32_t(seed));
    const StepModel model(p);
    const PlacementCost found = model.Cost(SearchPlacement(p)), best = model.Cost(PlaceExhaustively(p));
    ASSERT_EQ(found.over, best.over) << seed;
    ASSERT_GE(found.ns, best.ns) << seed;
    const double gap = double(found.ns) / double(best.ns);
    worst = std::max(worst, gap);
    sum += gap;
    exact += found.ns == best.ns;
  }
  std::printf("gap to the exhaustive optimum over %d random graphs: mean %.4f, worst %.4f, %d of them optimal\n", kGraphs, sum / kGraphs,
              worst, exact);
  RecordProperty("mean_gap", std::to_string(sum / kGraphs));
  EXPECT_LE(sum / kGraphs, 1.005);
  EXPECT_LE(worst, 1.08);
  EXPECT_GE(exact, kGraphs * 9 / 10);
}

// The search must be better than the list schedule alone.
TEST(ListPlacerTest, SearchingIsWorthIt) {
  double listed = 0, searched = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const PlacementProblem p = RandomProblem(1000 + seed);
    const StepModel model(p);
    const PlacementCost list = model.Cost(model.ListSchedule()), search = model.Cost(SearchPlacement(p));
    EXPECT_FALSE(list < search) << seed;
    if (list.over > 0) continue;  // the list schedule ignores memory
    listed += double(list.ns);
    searched += double(search.ns);
  }
  EXPECT_LT(searched, 0.98 * listed);
}

TEST(ListPlacerTest, IndependentTasksSpreadByTheSpeedOfTheDevices) {
  PlacementProblem p = Problem(2, 10);
  for (int i = 0; i < 10; ++i) p.values[size_t(Add(&p, {400, 100}, {}))].fetched = true;
  const Assignment where = SearchPlacement(p);
  EXPECT_EQ(std::count(where.begin(), where.end(), 0), 2);  // a device a quarter as fast gets a fifth of the work
}

TEST(ListPlacerTest, AChainStaysWhereItIsUnlessACopyPays) {
  for (const auto& [copy, device] : {std::pair(1000, 0), std::pair(10, 1)}) {
    PlacementProblem p = Problem(2, copy);
    p.values.push_back({-1, 1000, false});
    int32_t last = 0;
    for (int i = 0; i < 4; ++i) last = Add(&p, {300, 100}, {last});
    p.values[size_t(last)].fetched = true;
    EXPECT_THAT(SearchPlacement(p), Each(device)) << copy;
  }
}

TEST(ListPlacerTest, AGroupMovesAsOne) {
  PlacementProblem p = Problem(2, 10);
  const int32_t a = Add(&p, {100, 50}, {}), b = Add(&p, {100, 900}, {a});
  p.groups[0].tasks = {0, 1};
  p.groups.pop_back();
  p.tasks[1].group = 0;
  p.values[size_t(b)].fetched = true;
  EXPECT_THAT(SearchPlacement(p), ElementsAre(0));
}

TEST(ListPlacerTest, WhatDoesNotFitIsNotPutThere) {
  PlacementProblem p = Problem(2, 1);
  p.capacity[1] = 2500;
  for (int i = 0; i < 4; ++i) p.values[size_t(Add(&p, {100, 10}, {}, 1000))].fetched = true;
  const Assignment where = SearchPlacement(p);
  EXPECT_EQ(std::count(where.begin(), where.end(), 1), 2);
  EXPECT_EQ(StepModel(p).Cost(where).over, 0u);
}

TEST(ListPlacerTest, AValueIsCopiedOnceForAllItsReadersThere) {
  PlacementProblem p = Problem(2, 1000);
  const int32_t a = Add(&p, {10, 10}, {});
  for (int i = 0; i < 3; ++i) Add(&p, {10, 10}, {a});
  EXPECT_EQ(StepModel(p).Cost({0, 1, 1, 1}).ns, 10 + 1000 + 3 * 10);
}

TEST(ListPlacerTest, LargeGraphsArePlacedInTime) {
  PlacementProblem p = Problem(3, 50);
  std::mt19937 random(7);
  p.values.push_back({-1, 100, false});
  for (int i = 0; i < 3000; ++i) {
    Add(&p, {200, 100 + int64_t(random() % 200), 100 + int64_t(random() % 200)},
        {int32_t(p.values.size() - 1 - random() % std::min<size_t>(p.values.size(), 20))});
  }
  p.values.back().fetched = true;
  const StepModel model(p);
  EXPECT_FALSE(model.Cost(Assignment(p.groups.size(), 0)) < model.Cost(SearchPlacement(p)));
}

}  // namespace
}  // namespace thalweg
