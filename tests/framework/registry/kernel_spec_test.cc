#include "framework/registry/kernel_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
using testing_support::Text;

KernelSpec Parsed(std::string_view text) {
  auto s = ParseKernelSpec(text);
  EXPECT_TRUE(s.ok()) << text << "\n" << s.status();
  return s.ok() ? *std::move(s) : KernelSpec();
}

std::string Refusal(std::string_view text, absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  auto s = ParseKernelSpec(text);
  EXPECT_FALSE(s.ok()) << text;
  if (s.ok()) return "";
  std::string message = Text(s.status());
  EXPECT_EQ(s.status().code(), code) << message;
  return message.substr(std::min(message.find("column"), message.size()));
}

TEST(KernelSpecTest, ReadsAKernelForAnyOp) {
  KernelSpec s = Parsed("* @null; cheap; priority 3");
  EXPECT_TRUE(s.any_op);
  EXPECT_EQ(s.kind, "NULL");
  EXPECT_TRUE(s.cheap);
  EXPECT_EQ(s.priority, 3);
  EXPECT_FALSE(Parsed("F @NULL").any_op);
  EXPECT_EQ(Refusal("*(float) @NULL"), "column 2: expected '@' before the device kind, found '('");
  EXPECT_EQ(Refusal("* @NULL; host x"), "column 15: a kernel for any op cannot name arguments");
  EXPECT_EQ(Refusal("* @NULL; inplace y=x"), "column 18: a kernel for any op cannot name arguments");
}

TEST(KernelSpecTest, ReadsTheExampleOfTheHeader) {
  KernelSpec s = Parsed("Gather(float, int32 -> float) @CPU; host indices; priority 10");
  EXPECT_EQ(s.op, "Gather");
  EXPECT_EQ(s.kind, "CPU");
  EXPECT_TRUE(s.has_types);
  EXPECT_THAT(s.in_types, ElementsAre(TW_FLOAT, TW_INT32));
  EXPECT_THAT(s.out_types, ElementsAre(TW_FLOAT));
  EXPECT_THAT(s.host, ElementsAre("indices"));
  EXPECT_EQ(s.priority, 10);
  EXPECT_FALSE(s.cheap);
}

TEST(KernelSpecTest, ReadsWhatLiesAnywhere) {
  const KernelSpec s = Parsed("F @CPU; async_calls; keep a b; gives c; anywhere a c");
  EXPECT_THAT(s.anywhere, ElementsAre("a", "c"));
  EXPECT_TRUE(s.async_calls);
  EXPECT_FALSE(s.async);
  EXPECT_FALSE(Parsed("F @CPU; async").async_calls);
}

TEST(KernelSpecTest, ReadsWhichOrdersOfAxesItPrefers) {
  EXPECT_THAT(Parsed("F @CPU; ?prefers NHWC NDHWC; priority 2").prefers, ElementsAre("NHWC", "NDHWC"));
  EXPECT_THAT(Parsed("F @CPU; ?prefers_not NHWC").prefers, IsEmpty());
  EXPECT_FALSE(ParseKernelSpec("F @CPU; ?prefers").ok());
}

TEST(KernelSpecTest, ReadsTypesInEveryForm) {
  EXPECT_FALSE(Parsed("F @CPU").has_types);
  EXPECT_TRUE(Parsed("F() @CPU").has_types);
  EXPECT_THAT(Parsed("F(_, half) @CPU").in_types, ElementsAre(0, TW_HALF));
  EXPECT_THAT(Parsed("F(_, half) @CPU").out_types, IsEmpty());
  KernelSpec s = Parsed("F( -> float, _) @CPU");
  EXPECT_THAT(s.in_types, IsEmpty());
  EXPECT_THAT(s.out_types, ElementsAre(TW_FLOAT, 0));
  EXPECT_THAT(Parsed("F(float -> ) @CPU").out_types, IsEmpty());
}

TEST(KernelSpecTest, ReadsEveryClause) {
  KernelSpec s = Parsed(
      "F @GPU; cheap; async; capture_safe; strided; host a b; host c; keep k; read r1 r2; update u; replace w; inplace y=x z = w; view "
      "v=x; "
      "priority -3; ?hint");
  EXPECT_TRUE(s.cheap && s.async && s.capture_safe && s.strided);
  EXPECT_FALSE(s.may_block || s.nondeterministic);
  EXPECT_THAT(s.host, ElementsAre("a", "b", "c"));
  EXPECT_THAT(s.keep, ElementsAre("k"));
  EXPECT_THAT(s.read, ElementsAre("r1", "r2"));
  EXPECT_THAT(s.update, ElementsAre("u"));
  EXPECT_THAT(s.replace, ElementsAre("w"));
  EXPECT_THAT(s.inplace, ElementsAre(Pair("y", "x"), Pair("z", "w")));
  EXPECT_THAT(s.view, ElementsAre(Pair("v", "x")));
  EXPECT_EQ(s.priority, -3);
  EXPECT_TRUE(Parsed("F @CPU; may_block; nondeterministic").nondeterministic);
  EXPECT_FALSE(Parsed("F @CPU; deterministic").nondeterministic);
}

TEST(KernelSpecTest, WritesKindsInUpperCase) { EXPECT_EQ(Parsed("F @opencl").kind, "OPENCL"); }

TEST(KernelSpecTest, RefusesWhatIsWrongWithItsColumn) {
  EXPECT_EQ(Text(ParseKernelSpec("F @CPU; fast").status()),
            "spec of a kernel for 'F', column 9: unknown clause 'fast'; a hint that hosts may skip starts with '?'");
  EXPECT_THAT(Refusal(""), StartsWith("column 1: expected the op's name"));
  EXPECT_THAT(Refusal("F"), StartsWith("column 2: expected '@' before the device kind"));
  EXPECT_THAT(Refusal("F @"), StartsWith("column 4: expected the device kind"));
  EXPECT_THAT(Refusal("F(float @CPU"), StartsWith("column 9: expected ')'"));
  EXPECT_THAT(Refusal("F(flt) @CPU", absl::StatusCode::kUnimplemented), StartsWith("column 3: 'flt' is no element type"));
  EXPECT_THAT(Refusal("F(float,) @CPU"), StartsWith("column 9: expected an element type or _"));
  EXPECT_THAT(Refusal("F @CPU cheap"), StartsWith("column 8: expected ';'"));
  EXPECT_THAT(Refusal("F @CPU;"), StartsWith("column 8: expected a clause"));
  EXPECT_THAT(Refusal("F @CPU; host"), StartsWith("column 13: expected the name of an argument after host"));
  EXPECT_THAT(Refusal("F @CPU; inplace y"), StartsWith("column 18: expected '='"));
  EXPECT_THAT(Refusal("F @CPU; priority high"), StartsWith("column 18: expected the priority, an integer"));
  EXPECT_THAT(Refusal("F @CPU; priority 3000000000"), StartsWith("column 18: priority 3000000000 does not fit"));
  EXPECT_THAT(Refusal("F @CPU; deterministic; nondeterministic"), HasSubstr("cannot be deterministic and nondeterministic"));
  EXPECT_THAT(Refusal("F @CPU; nondeterministic; deterministic"), HasSubstr("cannot be deterministic and nondeterministic"));
  EXPECT_THAT(Refusal("F @CPU; cheap; may_block"), HasSubstr("not cheap"));
}

TEST(KernelSpecTest, SurvivesEveryPrefixAndEveryDroppedByte) {
  std::string text = "F(float, _ -> int32) @CPU; host a b; inplace y=x; priority 4; ?h \"q\"";
  ASSERT_TRUE(ParseKernelSpec(text).ok());
  for (size_t i = 0; i < text.size(); ++i) {
    (void)ParseKernelSpec(std::string_view(text).substr(0, i)).status();
    (void)ParseKernelSpec(text.substr(0, i) + text.substr(i + 1)).status();
  }
}

}  // namespace
}  // namespace thalweg
