#include "framework/base/meant.h"

#include <gtest/gtest.h>

namespace thalweg {
namespace {

std::string Of(std::string_view written, std::initializer_list<std::string_view> names) {
  Meant meant(written);
  for (std::string_view name : names) meant.Consider(name);
  return meant.text();
}

TEST(MeantTest, IsTheNearest) {
  EXPECT_EQ(Of("MatMull", {"Mul", "MatMul", "BatchMatMul"}), "; did you mean 'MatMul'?");
  EXPECT_EQ(Of("Sotfmax", {"Softplus", "Softmax"}), "; did you mean 'Softmax'?");
  EXPECT_EQ(Of("ab", {"aa", "bb"}), "") << "two letters, one of them wrong, say nothing";
  EXPECT_EQ(Of("abc", {"abx", "aby"}), "; did you mean 'abx'?") << "of two that are as near, the first";
}

TEST(MeantTest, IsNothingWhereAllAreFar) {
  EXPECT_EQ(Of("Mystery", {"Add", "Const", "Identity"}), "");
  EXPECT_EQ(Of("Add", {}), "");
  EXPECT_EQ(Of("", {"", "a"}), "");
}

TEST(MeantTest, LongNamesAreNotCompared) {
  const std::string name(201, 'a');
  EXPECT_EQ(Of(name, {name}), "");
  EXPECT_EQ(Of(name.substr(1), {name.substr(2)}), "; did you mean '" + name.substr(2) + "'?");
}

}  // namespace
}  // namespace thalweg
