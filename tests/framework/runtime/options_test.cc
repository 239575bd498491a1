#include "framework/runtime/options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::Text;

TEST(RuntimeOptionsTest, ReadsEveryOption) {
  RuntimeOptions o;
  EXPECT_TRUE(SetRuntimeOption(&o, "threads", "3").ok());
  EXPECT_TRUE(SetRuntimeOption(&o, "load_plugins", "false").ok());
  EXPECT_TRUE(SetRuntimeOption(&o, "plugin_path", "/a:/b/c.so:").ok());
  EXPECT_TRUE(SetRuntimeOption(&o, "disabled_plugins", "org.x.*,libfoo.so").ok());
  EXPECT_TRUE(SetRuntimeOption(&o, "memory_limit.gpu", "2G").ok());
  EXPECT_TRUE(SetRuntimeOption(&o, "memory_limit.CPU", "1000").ok());
  EXPECT_TRUE(SetRuntimeOption(&o, "plugin.org.x.trace", "a=b").ok());
  EXPECT_EQ(o.threads, 3u);
  EXPECT_FALSE(o.load_plugins);
  EXPECT_THAT(o.plugin_path, ElementsAre("/a", "/b/c.so"));
  EXPECT_THAT(o.disabled_plugins, ElementsAre("org.x.*", "libfoo.so"));
  EXPECT_EQ(o.memory_limit["GPU"], 2ull << 30);
  EXPECT_EQ(o.memory_limit["CPU"], 1000u);
  EXPECT_EQ(o.plugin_settings["plugin.org.x.trace"], "a=b");
}

TEST(RuntimeOptionsTest, RefusesWhatItCannotRead) {
  RuntimeOptions o;
  EXPECT_EQ(Text(SetRuntimeOption(&o, "threads", "many")), "runtime option 'threads' cannot be 'many'; it takes a number from 0 to 4096");
  for (auto [key, value] : std::vector<std::pair<const char*, const char*>>{{"threads", "-1"},
                                                                            {"threads", "5000"},
                                                                            {"threads", "2x"},
                                                                            {"threads", ""},
                                                                            {"load_plugins", "yes"},
                                                                            {"memory_limit.CPU", "2X"},
                                                                            {"memory_limit.CPU", "99999999999T"},
                                                                            {"memory_limit.CPU", "2GB"},
                                                                            {"memory_limit.", "1"},
                                                                            {"plugin.", "1"},
                                                                            {"plugin.id", "1"}}) {
    EXPECT_EQ(SetRuntimeOption(&o, key, value).code(), absl::StatusCode::kInvalidArgument) << key << "=" << value;
  }
  EXPECT_THAT(Text(SetRuntimeOption(&o, "treads", "2")), HasSubstr("there is no runtime option 'treads'; there are: threads, "));
}

TEST(RuntimeOptionsTest, DocumentsEachOption) {
  for (const auto& row : RuntimeOptionRows()) EXPECT_STRNE(row.about.doc, "") << row.about.name;
}

}  // namespace
}  // namespace thalweg
