#include "framework/base/scanner.h"

#include <cmath>

#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using testing_support::Text;

TEST(ScannerTest, TakesWordsTokensAndNumbers) {
  Scanner s("  alpha -> 12\t-3.5\n\"q\\\"\" ; ", "text");
  EXPECT_EQ(s.column(), 3u);
  EXPECT_FALSE(s.TakeKeyword("alp"));
  EXPECT_TRUE(s.TakeKeyword("alpha"));
  EXPECT_FALSE(s.Take(";"));
  EXPECT_TRUE(s.Expect("->", "here"));
  EXPECT_TRUE(s.PeekNumber());
  EXPECT_EQ(s.ExpectInt("a number"), 12);
  EXPECT_EQ(s.ExpectFloat("a number"), -3.5);
  EXPECT_EQ(s.ExpectQuoted("a text"), "q\"");
  EXPECT_FALSE(s.AtEnd());
  EXPECT_TRUE(s.Take(";"));
  EXPECT_TRUE(s.AtEnd());
  EXPECT_TRUE(s.ok());
}

TEST(ScannerTest, ReadsInfinityAndNan) {
  Scanner s("inf -inf nan", "text");
  EXPECT_EQ(s.ExpectFloat("x"), INFINITY);
  EXPECT_EQ(s.ExpectFloat("x"), -INFINITY);
  EXPECT_TRUE(std::isnan(s.ExpectFloat("x")));
}

TEST(ScannerTest, JoinsWordsOnlyWithLettersBehind) {
  Scanner s("a.b.->c", "text");
  EXPECT_EQ(s.TakeWord(".>"), "a.b");
  EXPECT_TRUE(s.Take("."));
  EXPECT_TRUE(s.Take("->"));
}

TEST(ScannerTest, KeepsTheFirstErrorAndThenAnswersNothing) {
  Scanner s("abc 1", "text");
  s.ExpectInt("a number");
  s.Fail(1, "later");
  EXPECT_EQ(Text(s.status()), "text, column 1: expected a number, an integer, found 'abc'");
  EXPECT_EQ(s.Peek(), 0);
  EXPECT_FALSE(s.AtEnd());
  EXPECT_TRUE(s.TakeWord().empty());
  EXPECT_FALSE(s.Take("abc"));
  EXPECT_EQ(s.ExpectInt("a number"), 0);
  EXPECT_EQ(s.ExpectQuoted("a text"), "");
}

TEST(ScannerTest, SkipsAClauseButNotAQuotedSemicolon) {
  Scanner s("x [ \"a;b\" ] ; y", "text");
  s.SkipClause();
  EXPECT_EQ(s.column(), 13u);
  EXPECT_TRUE(s.Take(";"));
}

}  // namespace
}  // namespace thalweg
