#include "framework/graph/resolve.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;

// Returns the error of resolving a node of the op, with n values for the input of N.
std::string Refusal(std::string_view schema, std::vector<uint32_t> inputs, int64_t n) {
  auto op = ParseOpSchema(schema);
  EXPECT_TRUE(op.ok()) << op.status();
  std::map<std::string, AttrValue> given;
  given.emplace("N", AttrValue::Int(n));
  given.emplace("T", AttrValue::Type(TW_FLOAT));
  auto attrs = InSchemaOrder(*op, std::move(given));
  EXPECT_TRUE(attrs.ok()) << attrs.status();
  auto node = ResolveNode(*op, inputs, *std::move(attrs));
  return node.ok() ? "" : std::string(Message(node.status()));
}

TEST(ResolveTest, CountsBeyondAllNumbersAreRefused) {
  constexpr int64_t kHuge = INT64_MAX;
  // The total number of inputs would wrap around to 0, which is the number given.
  EXPECT_THAT(Refusal("B(a: T, b: T, x: T * N, y: T * N) -> (); N: int; T: type; stateful", {}, kHuge), HasSubstr("inputs but got 0"));
  EXPECT_THAT(Refusal("C(a: T) -> (o: T, p: T * N); N: int; T: type", {TW_FLOAT}, kHuge),
              HasSubstr("cannot have 9223372036854775807 outputs"));
  EXPECT_THAT(Refusal("D(x: T * N, axis: int32) -> (y: T); N: int; T: type", {TW_FLOAT}, kHuge), HasSubstr("but got 1"));
  EXPECT_EQ(Refusal("D(x: T * N, axis: int32) -> (y: T); N: int; T: type", {TW_FLOAT, TW_FLOAT, TW_INT32}, 2), "");
}

}  // namespace
}  // namespace thalweg
