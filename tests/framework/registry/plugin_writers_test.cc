#include "framework/registry/plugin_writers.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/stat.h>

#include "framework/registry/plugin_loader.h"
#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing_support::StatusApi;
using testing_support::Text;

// A plugin in two folders, `outer/inner/good.so`, below the sticky folder of temporary files.
class PluginWritersTest : public ::testing::Test {
 protected:
  PluginWritersTest() {
    std::string pattern = (fs::temp_directory_path() / "thalweg-writers-XXXXXX").string();
    top_ = mkdtemp(pattern.data());
    outer_ = top_ + "/outer";
    inner_ = outer_ + "/inner";
    file_ = inner_ + "/good.so";
    fs::create_directories(inner_);
    const char* where = std::getenv("THALWEG_TEST_PLUGINS");
    fs::copy_file(StrCat(where ? where : "plugins", "/good.so"), file_);
    for (const std::string& path : {outer_, inner_, file_}) Mode(path, 0755);
  }
  ~PluginWritersTest() override { fs::remove_all(top_); }

  static void Mode(const std::string& path, mode_t mode) { ASSERT_EQ(chmod(path.c_str(), mode), 0) << path; }
  static Status Check(const std::string& path) {
    std::string real, fix;
    return CheckPluginWriters(path, &real, &fix);
  }
  static PluginRecord Load(const std::string& path, bool trust = false) {
    Registry registry;
    PluginLoading loading;
    loading.trust_folders = trust;
    PluginLoader loader(
        &registry,
        [](std::string_view, std::string_view, uint32_t minor, const std::weak_ptr<const void>&) {
          static const tw_run_api run = {
              TW_SIZED(tw_run_api), nullptr, nullptr, nullptr, nullptr, [](const tw_host*, uint32_t, const char*, uint64_t) {}};
          auto* h = new tw_host{TW_SIZED(tw_host), TW_EPOCH, minor,   nullptr, &StatusApi(), nullptr,
                                nullptr,           nullptr,  nullptr, &run,    nullptr,      nullptr};
          return std::unique_ptr<tw_host, void (*)(tw_host*)>(h, [](tw_host* t) { delete t; });
        },
        loading);
    loader.LoadAll({{path}, {}});
    return loader.records().at(0);
  }

  std::string top_, outer_, inner_, file_;
};

TEST_F(PluginWritersTest, WhatOnlyItsUserMayWriteIsLoaded) {
  EXPECT_TRUE(Check(file_).ok()) << Check(file_);
  EXPECT_EQ(Load(inner_).state, PluginRecord::kLoaded) << Load(inner_).reason;
}

TEST_F(PluginWritersTest, WhatEverybodyMayWriteIsRefused) {
  for (const std::string& path : {file_, inner_, outer_}) {
    Mode(path, 0777);
    EXPECT_EQ(Text(Check(file_)), StrCat("others could change it: '", path, "' is writable by everybody"));
    for (const PluginRecord& r : {Load(inner_), Load(file_)}) {
      EXPECT_EQ(r.state, PluginRecord::kFailed);
      EXPECT_EQ(r.path, file_);
      EXPECT_THAT(r.reason, HasSubstr(path));
      EXPECT_THAT(r.fix, HasSubstr(StrCat("run: chmod go-w '", path, "'")));
    }
    EXPECT_EQ(Load(file_, true).state, PluginRecord::kLoaded);
    Mode(path, 0755);
    EXPECT_TRUE(Check(file_).ok());
  }
}

TEST_F(PluginWritersTest, AStickyFolderIsFineFurtherUpOnly) {
  Mode(outer_, 01777);
  EXPECT_TRUE(Check(file_).ok());
  Mode(inner_, 01777);
  EXPECT_THAT(Text(Check(file_)), HasSubstr("is a folder to which others may add files"));
}

TEST_F(PluginWritersTest, AGroupMustBeTheUsersOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  Mode(file_, 0775);
  ASSERT_EQ(chown(file_.c_str(), 0, 54321), 0);
  ASSERT_EQ(chmod(file_.c_str(), 0775), 0);
  EXPECT_THAT(Text(Check(file_)), HasSubstr("is writable by group 54321"));
  ASSERT_EQ(chown(file_.c_str(), 0, 0), 0);
  EXPECT_TRUE(Check(file_).ok()) << Check(file_);  // root's own group
}

TEST_F(PluginWritersTest, OwnersAreRootOrTheUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  for (const std::string& path : {file_, inner_, outer_}) {
    ASSERT_EQ(chown(path.c_str(), 54321, 0), 0);
    EXPECT_EQ(Text(Check(file_)),
              StrCat("others could change it: '", path, "' belongs to user 54321, neither root nor user 0 of this process"));
    EXPECT_EQ(Load(inner_).state, PluginRecord::kFailed);
    ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
  }
}

TEST_F(PluginWritersTest, WhatALinkLeadsToCounts) {
  fs::create_directory(top_ + "/open");
  Mode(top_ + "/open", 0777);
  fs::create_symlink(file_, top_ + "/open/link.so");
  EXPECT_TRUE(Check(top_ + "/open/link.so").ok());  // whoever may change the link may also change the file that is checked
  fs::copy_file(file_, top_ + "/open/theirs.so");
  fs::create_symlink(top_ + "/open/theirs.so", inner_ + "/mine.so");
  EXPECT_THAT(Text(Check(inner_ + "/mine.so")), HasSubstr(top_ + "/open' is writable by everybody"));
}

TEST_F(PluginWritersTest, WhatIsNotThereIsNoPlugin) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Check(top_ + "/none.so")));
  fs::create_symlink("none.so", inner_ + "/dangling.so");
  EXPECT_FALSE(Check(inner_ + "/dangling.so").ok());
}

}  // namespace
}  // namespace thalweg
