// Tests the limits of control groups, in folders that look like the kernel's.
#include "framework/base/machine_memory.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

class ControlGroupMemoryTest : public testing::Test {
 protected:
  ~ControlGroupMemoryTest() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path) << text << "\n";
  }
  uint64_t Memory(const std::string& groups, const std::string& mounts) const { return ControlGroupMemory(groups, mounts, root_); }

  const std::string root_ = testing::TempDir() + "/machine_memory_" + std::to_string(getpid());
  const std::string kFirst =
      "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
      "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
  const std::string kSecond = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
};

TEST_F(ControlGroupMemoryTest, WithoutGroupsThereIsNoLimit) {
  EXPECT_EQ(Memory("", ""), UINT64_MAX);
  EXPECT_EQ(Memory("0::/\n", kSecond), UINT64_MAX);
  EXPECT_EQ(Memory("nonsense\n4\n", "nonsense\n- - -\n" + kFirst), UINT64_MAX);
}

TEST_F(ControlGroupMemoryTest, TheGroupOfVersion1HasTheLimitAndNotItsRoot) {
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  Write("/sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "4096000");
  Write("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(Memory("5:devices:/\n4:memory:/jobs/one\n0::/\n", kFirst), 4096000u);
  EXPECT_EQ(Memory("4:cpu,memory:/jobs/one\n", kFirst), 4096000u);
}

TEST_F(ControlGroupMemoryTest, TheSmallestOfAllGroupsAboveCounts) {
  for (const char* version : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
    const char* file = version == std::string("/sys/fs/cgroup") ? "/memory.max" : "/memory.limit_in_bytes";
    Write(version + std::string("/a/b/c") + file, "5000");
    Write(version + std::string("/a/b") + file, "3000");
    Write(version + std::string("/a") + file, "4000");
  }
  EXPECT_EQ(Memory("4:memory:/a/b/c\n", kFirst), 3000u);
  EXPECT_EQ(Memory("4:memory:/a\n", kFirst), 4000u);
  EXPECT_EQ(Memory("0::/a/b/c\n", kSecond), 3000u);
}

TEST_F(ControlGroupMemoryTest, TheWordMaxIsNoLimitAndNothingIsOne) {
  Write("/sys/fs/cgroup/a/memory.max", "max");
  EXPECT_EQ(Memory("0::/a\n", kSecond), UINT64_MAX);
  Write("/sys/fs/cgroup/a/memory.max", "0");
  EXPECT_EQ(Memory("0::/a\n", kSecond), 0u);
}

// In a container, the tree is mounted from the container's group on, but /proc may name that group
// from the machine's root on.
TEST_F(ControlGroupMemoryTest, AMountThatShowsAPartOfTheTreeBeginsWithThatPart) {
  const std::string mounts = "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000");
  Write("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "6000");
  EXPECT_EQ(Memory("4:memory:/docker/ab\n", mounts), 7000u);
  EXPECT_EQ(Memory("4:memory:/docker/ab/inner\n", mounts), 6000u);
}

TEST_F(ControlGroupMemoryTest, BothVersionsCountWhereBothAreMounted) {
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "8000");
  Write("/sys/fs/cgroup/unified/b/memory.max", "7000");
  EXPECT_EQ(Memory("4:memory:/a\n0::/b\n", kFirst), 7000u);
}

// If this process may make a control group, checks the same with the kernel's own folders.
TEST_F(ControlGroupMemoryTest, AGroupOfTheKernelsLimitsThisMachine) {
  const std::string group = "/sys/fs/cgroup/memory/thalweg_test_" + std::to_string(getpid());
  std::error_code error;
  if (!std::filesystem::create_directory(group, error)) GTEST_SKIP() << "no control group may be made: " << error.message();
  uint64_t limit = 1 << 30;
  std::ofstream(group + "/memory.limit_in_bytes") << limit << std::flush;
  std::ifstream(group + "/memory.limit_in_bytes") >> limit;
  std::ifstream mounts("/proc/self/mountinfo");
  std::stringstream text;
  text << mounts.rdbuf();
  const uint64_t found = ControlGroupMemory("4:memory:" + group.substr(group.rfind('/')) + "\n", text.str());
  std::filesystem::remove(group);
  EXPECT_EQ(found, limit);
  EXPECT_EQ(found, 1u << 30);
}

}  // namespace
}  // namespace thalweg
