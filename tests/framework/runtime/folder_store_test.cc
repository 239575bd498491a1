#include "framework/runtime/state/folder_store.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

#include "framework/runtime/step/frame.h"

namespace thalweg {
namespace {

class FolderStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/store-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    base_ = name;
    folder_ = name + "/inner";  // made by the first Put
  }
  void TearDown() override { std::filesystem::remove_all(base_); }
  FolderStore Store(bool stopped = false) const {
    return FolderStore(folder_, [stopped] { return stopped; });
  }
  static int64_t Soon() { return MonotonicNs() + 60'000'000'000; }

  std::string base_, folder_;
};

TEST_F(FolderStoreTest, ValuesComeBackUnderAnyKey) {
  const std::string keys[] = {"1/2.3/shm", "../escape", "a%2fb", "", std::string("\0\n", 2)};
  const std::string values[] = {"x", "", std::string("\0binary\xff", 8), "path /dev/shm", std::string(5000, 'v')};
  for (size_t i = 0; i < std::size(keys); ++i) ASSERT_TRUE(Store().Put(keys[i], values[i]).ok());
  for (size_t i = 0; i < std::size(keys); ++i) {
    auto got = Store().Get(keys[i], Soon());
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, values[i]);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), int64_t(std::size(keys)));
}

TEST_F(FolderStoreTest, ALaterValueReplacesAnEarlierOne) {
  ASSERT_TRUE(Store().Put("key", "old").ok());
  ASSERT_TRUE(Store().Put("key", "new").ok());
  EXPECT_EQ(*Store().Get("key", Soon()), "new");
}

// The other process may be in another container, or on another host.
TEST_F(FolderStoreTest, FilesOfAProcessWithTheSameNumberAreNotInTheWay) {
  ASSERT_TRUE(Store().Put("key", "first").ok());
  for (int i = 1; i <= 1000; ++i) std::ofstream(folder_ + "/." + std::to_string(getpid()) + "-" + std::to_string(i)) << "unfinished";
  const Status s = Store().Put("key", "second");
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(*Store().Get("key", Soon()), "second");
}

TEST_F(FolderStoreTest, GetWaitsForTheKey) {
  auto got = std::async(std::launch::async, [this] { return Store().Get("late", Soon()); });
  ASSERT_TRUE(Store().Put("late", "here").ok());
  EXPECT_EQ(*got.get(), "here");
}

TEST_F(FolderStoreTest, TheWaitEndsAtTheDeadlineAndWhenStopped) {
  EXPECT_EQ(Store().Get("none", MonotonicNs() + 1).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Store(true).Get("none", Soon()).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(FolderStoreTest, AFolderThatCannotBeMadeIsNamed) {
  folder_ = "/proc/nowhere/store";
  const Status s = Store().Put("key", "value");
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(s.message().find("'/proc/nowhere/store'"), std::string::npos) << s;
}

}  // namespace
}  // namespace thalweg
