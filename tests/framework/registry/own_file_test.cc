#include "framework/registry/own_file.h"

#include <unistd.h>

#include "gtest/gtest.h"
#include <sys/wait.h>

namespace thalweg {
namespace {

TEST(OwnFileTest, IsThisProgram) { EXPECT_EQ(OwnFile(), std::filesystem::canonical("/proc/self/exe").string()); }

TEST(OwnFileTest, IsNotWhatTheCallerSaysItIs) {
  for (const char* name : {"nowhere", "/tmp/nowhere", ""}) {
    const pid_t child = fork();
    if (child == 0) {
      execl("/proc/self/exe", name, "--gtest_filter=OwnFileTest.IsThisProgram", nullptr);
      _exit(127);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "called '" << name << "'";
  }
}

}  // namespace
}  // namespace thalweg
