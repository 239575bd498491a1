#include "framework/runtime/pace.h"

#include "gtest/gtest.h"

namespace thalweg {
namespace {

// Returns how many of the next `steps` steps ran in parallel, for the given durations.
int SideBySide(Pace* pace, int steps, int64_t in_order, int64_t side_by_side) {
  int n = 0;
  for (int i = 0; i < steps; ++i) {
    const Pace::Way way = pace->Next();
    n += way == Pace::kSideBySide;
    pace->Took(way, way == Pace::kSideBySide ? side_by_side : in_order);
  }
  return n;
}

TEST(PaceTest, ShortStepsAreNeverShared) {
  Pace pace;
  EXPECT_EQ(SideBySide(&pace, 10'000, 20'000, 1'000), 0);
}

TEST(PaceTest, WhatIsFasterSideBySideIsSharedAfterAFewSteps) {
  Pace pace;
  EXPECT_GE(SideBySide(&pace, 1000, 100'000, 60'000), 970);
}

TEST(PaceTest, WhatGainsNothingStaysInOrderAndTryingCostsNextToNothing) {
  for (int64_t side_by_side : {99'000, 101'000, 110'000, 150'000, 300'000, 700'000}) {
    Pace pace;
    SideBySide(&pace, 1000, 100'000, side_by_side);
    const int tries = SideBySide(&pace, 10'000, 100'000, side_by_side);
    EXPECT_LE(tries, 1250) << side_by_side;
    EXPECT_LE(tries * (side_by_side - 100'000), 10'000 * 500) << side_by_side;  // half a percent
  }
}

TEST(PaceTest, AChangeIsNoticed) {
  Pace pace;
  SideBySide(&pace, 100, 100'000, 60'000);
  SideBySide(&pace, 1000, 100'000, 200'000);  // another program needs the other processors
  EXPECT_LE(SideBySide(&pace, 1000, 100'000, 200'000), 15);
  SideBySide(&pace, 200, 100'000, 60'000);
  EXPECT_GE(SideBySide(&pace, 1000, 100'000, 60'000), 980);
}

TEST(PaceTest, ABadStartIsForgotten) {
  Pace pace;
  SideBySide(&pace, 8, 100'000, 150'000);
  EXPECT_GE(SideBySide(&pace, 100, 100'000, 60'000), 80);
}

TEST(PaceTest, OneSlowStepChangesNothing) {
  Pace pace;
  SideBySide(&pace, 100, 100'000, 60'000);
  SideBySide(&pace, 1, 50'000'000, 50'000'000);
  EXPECT_GE(SideBySide(&pace, 500, 100'000, 60'000), 490);
}

TEST(PacesTest, StepsOfOneKindLearnNothingFromOthers) {
  Paces paces;
  char kinds[2] = {};
  int shared[2] = {0, 0};
  for (int i = 0; i < 1000; ++i) {
    for (int k : {0, 1}) {
      paces.Turn(&kinds[k]);
      shared[k] += SideBySide(&paces.now(), 1, 100'000, k ? 60'000 : 700'000);
    }
  }
  EXPECT_LE(shared[0], 10);
  EXPECT_GE(shared[1], 970);
}

TEST(PacesTest, TheOldestKindIsForgotten) {
  Paces paces;
  char kinds[20] = {};
  for (char& kind : kinds) {
    paces.Turn(&kind);
    SideBySide(&paces.now(), 100, 100'000, 60'000);
  }
  paces.Turn(&kinds[19]);
  EXPECT_EQ(SideBySide(&paces.now(), 1, 100'000, 60'000), 1);
  paces.Turn(&kinds[0]);
  EXPECT_EQ(SideBySide(&paces.now(), 1, 100'000, 60'000), 0) << "it is new again";
}

}  // namespace
}  // namespace thalweg
