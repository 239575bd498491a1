#include "framework/session/options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::Text;

TEST(SessionOptionsTest, TakesEachOptionByName) {
  SessionOptions o;
  EXPECT_TRUE(SetSessionOption(&o, "threads", "1").ok());
  EXPECT_TRUE(SetSessionOption(&o, "container", "c").ok());
  EXPECT_TRUE(SetSessionOption(&o, "lease", "a,b").ok());
  EXPECT_TRUE(SetSessionOption(&o, "lease", "c").ok());
  EXPECT_FALSE(SetSessionOption(&o, "lease", "d,<graph 1>").ok());  // of a graph
  EXPECT_THAT(o.lease, ElementsAre("a", "b", "c"));
  EXPECT_TRUE(SetSessionOption(&o, "optimize", "false").ok());
  EXPECT_TRUE(SetSessionOption(&o, "engine", "counted").ok());
  EXPECT_TRUE(SetSessionOption(&o, "fallback", "allow").ok());
  EXPECT_TRUE(SetSessionOption(&o, "device", "/job:localhost/gpu:1").ok());
  EXPECT_TRUE(SetSessionOption(&o, "max_shape_plans", "3").ok());
  EXPECT_TRUE(SetSessionOption(&o, "max_shapes", "5").ok());
  EXPECT_TRUE(SetSessionOption(&o, "max_plans", "7").ok());
  EXPECT_TRUE(SetSessionOption(&o, "order", "smallest_peak").ok());
  EXPECT_TRUE(SetSessionOption(&o, "memory_budget", "100").ok());
  EXPECT_TRUE(SetSessionOption(&o, "disable_pass", "cse").ok());
  EXPECT_TRUE(SetSessionOption(&o, "disable_pass", "fold").ok());
  EXPECT_TRUE(SetSessionOption(&o, "allow_files", "/data").ok());
  EXPECT_TRUE(SetSessionOption(&o, "allow_ops", "Add,MatMul").ok());
  EXPECT_TRUE(SetSessionOption(&o, "deny_ops", "PyCall").ok());
  EXPECT_TRUE(SetSessionOption(&o, "deny_ops", "Print,Abort").ok());  // repeated options accumulate
  EXPECT_TRUE(SetSessionOption(&o, "trust_imported", "true").ok());
  EXPECT_TRUE(SetSessionOption(&o, "memory_limit", "2G").ok());
  EXPECT_TRUE(SetSessionOption(&o, "step_timeout_ms", "500").ok());
  EXPECT_EQ(o.allow_files, "/data");
  EXPECT_THAT(o.allow_ops, ElementsAre("Add", "MatMul"));
  EXPECT_THAT(o.deny_ops, ElementsAre("PyCall", "Print", "Abort"));
  EXPECT_TRUE(o.trust_imported);
  EXPECT_EQ(o.memory_limit, uint64_t{2} << 30);
  EXPECT_EQ(o.step_timeout_ms, 500u);
  EXPECT_EQ(o.threads, 1u);
  EXPECT_EQ(o.container, "c");
  EXPECT_FALSE(o.optimize);
  EXPECT_EQ(o.engine, "counted");
  EXPECT_EQ(o.fallback, "allow");
  EXPECT_EQ(o.device, "/job:localhost/gpu:1");
  EXPECT_EQ(o.max_shape_plans, 3u);
  EXPECT_EQ(o.max_shapes, 5u);
  EXPECT_EQ(o.max_plans, 7u);
  EXPECT_EQ(o.order, "smallest_peak");
  EXPECT_EQ(o.memory_budget, 100u);
  EXPECT_THAT(o.disabled_passes, ElementsAre("cse", "fold"));
}

TEST(SessionOptionsTest, RefusesWhatNoOptionTakes) {
  SessionOptions o;
  for (auto [key, value] : {std::pair("threads", "-1"),
                            {"threads", "two"},
                            {"optimize", "yes"},
                            {"engine", "diesel"},
                            {"soft_placement", ""},
                            {"fallback", "maybe"},
                            {"device", "the big one"},
                            {"max_shape_plans", "0"},
                            {"max_shapes", "0"},
                            {"max_plans", "0"},
                            {"order", "random"},
                            {"compilers", "some"},
                            {"memory_budget", "-1"},
                            {"disable_pass", "place"},
                            {"disable_pass", "csee"},
                            {"engines", "auto"}}) {
    EXPECT_EQ(SetSessionOption(&o, key, value).code(), absl::StatusCode::kInvalidArgument) << key << "=" << value;
  }
  EXPECT_THAT(Text(SetSessionOption(&o, "engine", "diesel")),
              HasSubstr("session option 'engine' cannot be 'diesel'; it takes auto, fixed or counted"));
  EXPECT_THAT(
      Text(SetSessionOption(&o, "disable_pass", "csee")),
      HasSubstr("'disable_pass' cannot be 'csee'; it takes sequence, inline, simplify, fold, cse, rewrite, layout, claim or recompute"));
  for (const auto& row : SessionOptionRows()) EXPECT_THAT(Text(SetSessionOption(&o, "no", "")), HasSubstr(row.about.name));
}

TEST(SessionOptionsTest, DefaultsAreThoseOfTheRecord) {
  for (const auto& row : SessionOptionRows()) {
    SessionOptions o;
    if (!*row.about.default_value) continue;
    EXPECT_TRUE(SetSessionOption(&o, row.about.name, row.about.default_value).ok()) << row.about.name;
    EXPECT_TRUE(o == SessionOptions()) << row.about.name;
  }
}

}  // namespace
}  // namespace thalweg
