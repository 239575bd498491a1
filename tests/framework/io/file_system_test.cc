#include "framework/files/file_system.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/framework/io/fake_files.h"

namespace thalweg {
namespace {

using test::TempFolder;
using testing::HasSubstr;

std::string Text(const Status& s) { return std::string(Message(s)); }

TEST(FileSystemTest, WritesAndReadsBack) {
  TempFolder folder;
  auto out = LocalFiles().Create(folder / "f");
  ASSERT_TRUE(out.ok());
  EXPECT_TRUE((*out)->Append("hello ", 6).ok());
  EXPECT_TRUE((*out)->Append("world", 5).ok());
  EXPECT_TRUE((*out)->Append(nullptr, 0).ok());
  EXPECT_TRUE((*out)->Sync().ok());
  EXPECT_TRUE((*out)->Close().ok());
  auto in = LocalFiles().Open(folder / "f");
  ASSERT_TRUE(in.ok());
  EXPECT_EQ((*in)->size(), 11u);
  char bytes[6] = {};
  EXPECT_TRUE((*in)->ReadAt(6, bytes, 5).ok());
  EXPECT_STREQ(bytes, "world");
  EXPECT_TRUE(LocalFiles().SyncFolderOf(folder / "f").ok());
  EXPECT_TRUE(LocalFiles().Remove(folder / "f").ok());
  EXPECT_TRUE(absl::IsNotFound(LocalFiles().Remove(folder / "f")));
}

TEST(FileSystemTest, ErrorsNamePathAndErrno) {
  TempFolder folder;
  Status s = LocalFiles().Open(folder / "none").status();
  EXPECT_TRUE(absl::IsNotFound(s));
  EXPECT_EQ(Text(s), "cannot open '" + (folder / "none") + "': No such file or directory (errno 2)");
  EXPECT_TRUE(absl::IsNotFound(LocalFiles().Create(folder / "no/folder").status()));
  EXPECT_TRUE(absl::IsNotFound(LocalFiles().Rename(folder / "none", folder / "x")));
}

TEST(FileSystemTest, CreateNeverTakesOverWhatIsThere) {
  TempFolder folder;
  test::Spill(folder / "f", "old");
  EXPECT_TRUE(absl::IsAlreadyExists(LocalFiles().Create(folder / "f").status()));
  ASSERT_EQ(symlink("elsewhere", (folder / "link").c_str()), 0);
  EXPECT_TRUE(absl::IsAlreadyExists(LocalFiles().Create(folder / "link").status()));
  EXPECT_EQ(test::Slurp(folder / "f"), "old");
}

TEST(FileSystemTest, OpenRefusesFoldersAndDoesNotWaitForPipes) {
  TempFolder folder;
  EXPECT_TRUE(absl::IsInvalidArgument(LocalFiles().Open(folder.path()).status()));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(LocalFiles().Open(folder / "pipe").status()));
}

TEST(FileSystemTest, RefusesEmptyNamesAndNul) {
  EXPECT_TRUE(absl::IsInvalidArgument(LocalFiles().Open("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(LocalFiles().Create(std::string("a\0b", 3)).status()));
}

TEST(FileSystemTest, ReadPastTheEndIsDataLoss) {
  TempFolder folder;
  test::Spill(folder / "f", "12345678");
  auto in = LocalFiles().Open(folder / "f");
  ASSERT_TRUE(in.ok());
  char bytes[16];
  EXPECT_THAT(Text((*in)->ReadAt(4, bytes, 8)), HasSubstr("ends at byte 8, 4 bytes too early"));
  EXPECT_TRUE(absl::IsDataLoss((*in)->ReadAt(UINT64_MAX - 2, bytes, 8)));
  EXPECT_TRUE((*in)->ReadAt(8, bytes, 0).ok());
}

TEST(FileSystemTest, WriteErrorsAreStatuses) {
  // The file size limit simulates a full disk.
  TempFolder folder;
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto out = LocalFiles().Create(folder / "f");
  ASSERT_TRUE(out.ok());
  const std::string bytes(5000, 'x');
  Status s = (*out)->Append(bytes.data(), bytes.size());
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(Text(s), HasSubstr("cannot write '" + (folder / "f") + "': File too large (errno 27)"));
}

TEST(FileSystemTest, LockKeepsOthersOutUntilItIsGone) {
  TempFolder folder;
  auto lock = LocalFiles().LockFolderOf(folder / "a");
  ASSERT_TRUE(lock.ok());
  std::atomic<bool> inside{false};
  std::thread other([&] {
    auto second = LocalFiles().LockFolderOf(folder / "b");
    inside = second.ok();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(inside);
  lock->reset();
  other.join();
  EXPECT_TRUE(inside);
}

TEST(FileSystemTest, AChildOfForkDoesNotKeepALock) {
  TempFolder folder;
  auto lock = LocalFiles().LockFolderOf(folder / "a");
  ASSERT_TRUE(lock.ok());
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  lock->reset();
  EXPECT_TRUE(LocalFiles().LockFolderOf(folder / "a").ok());  // the lock is taken while the child lives
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace thalweg
