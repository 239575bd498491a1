#include "framework/planner/placement/cost_model.h"

#include "gtest/gtest.h"

namespace thalweg {
namespace {

TEST(CostModelTest, WhatWasMeasuredIsWhatItAnswers) {
  CostModel m;
  m.AddKernel("MatMul", "float [2]", "CPU:0", 700, 8);
  m.AddKernel("MatMul", "float [2]", "CPU:0", 500, 8);
  EXPECT_EQ(m.KernelNs("MatMul", "float [2]", "CPU:0", 8), 500);
  EXPECT_TRUE(m.Knows("MatMul", "CPU:0"));
  EXPECT_FALSE(m.Knows("MatMul", "FAKE:0"));
}

TEST(CostModelTest, OtherSizesLieOnTheLineOfThoseThatRan) {
  CostModel m;
  m.AddKernel("Add", "float [1000]", "CPU:0", 1'100, 1000);
  m.AddKernel("Add", "float [3000]", "CPU:0", 3'100, 3000);
  EXPECT_NEAR(double(m.KernelNs("Add", "float [2000]", "CPU:0", 2000)), 2'100, 2);
  EXPECT_NEAR(double(m.KernelNs("Add", "", "CPU:0", 5000)), 5'100, 2);
  EXPECT_GE(m.KernelNs("Add", "", "CPU:0", 0), 1);
}

TEST(CostModelTest, ADeviceThatIsSlowerElsewhereIsThoughtSlowerHere) {
  CostModel m;
  m.AddKernel("Neg", "s", "CPU:0", 100, 8);
  m.AddKernel("Neg", "s", "FAKE:0", 400, 8);
  m.AddKernel("Exp", "s", "CPU:0", 1000, 8);
  EXPECT_EQ(m.KernelNs("Exp", "s", "FAKE:0", 8), 4000);
}

TEST(CostModelTest, CopiesOfTwoDevicesGoByWayOfTheHostWhereNoneWasSeen) {
  CostModel m;
  m.AddCopy("", "FAKE:0", 1000, 10'000);
  m.AddCopy("FAKE:1", "", 1000, 5'000);
  EXPECT_EQ(m.CopyNs("", "FAKE:0", 1000), 10'000);
  EXPECT_EQ(m.CopyNs("FAKE:0", "", 1000), 10'000);  // the same as in the other direction
  EXPECT_EQ(m.CopyNs("FAKE:0", "FAKE:1", 1000), 15'000);
  EXPECT_GT(m.CopyNs("A", "B", 1000), 0);  // no measurements
  EXPECT_GT(m.CopyNs("", "B", 1 << 30), m.CopyNs("", "B", 1));
}

TEST(CostModelTest, RowsAreTakenBack) {
  CostModel m, copy;
  m.AddKernel("Neg", "float [2] -> float [2]", "CPU:0", 123, 8);
  m.AddCopy("", "FAKE:0", 100, 1'100);
  m.AddCopy("", "FAKE:0", 300, 1'300);
  for (const auto& row : m.Rows()) EXPECT_TRUE(copy.AddRow(row));
  EXPECT_EQ(copy.KernelNs("Neg", "float [2] -> float [2]", "CPU:0", 8), 123);
  EXPECT_NEAR(double(copy.CopyNs("", "FAKE:0", 200)), 1'200, 3);
  for (const std::vector<std::string>& bad : std::vector<std::vector<std::string>>{
           {}, {"kernel"}, {"kernel", "a", "b", "c", "x", "1"}, {"copy", "a", "b", "-1", "1"}, {"other", "a", "b", "1", "1"}}) {
    EXPECT_FALSE(copy.AddRow(bad));
  }
}

}  // namespace
}  // namespace thalweg
