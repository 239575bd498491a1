// Name look-ups end when the caller's time is over, whatever the name servers do.
#include "plugins/common/lookup.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/wait.h>

namespace thalweg {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

bool Write(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool good = fd >= 0 && write(fd, text.data(), text.size()) == ssize_t(text.size());
  if (fd >= 0) close(fd);
  return good;
}

constexpr int kNoNamespace = 77;

// Runs in a process with its own resolv.conf; the server that the file names receives every query
// and never answers.
int LookUpInVain() {
  const unsigned uid = geteuid(), gid = getegid();
  if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) return kNoNamespace;
  if (uid != 0) {
    Write("/proc/self/setgroups", "deny");
    if (!Write("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1") || !Write("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1"))
      return kNoNamespace;
  }
  char name[] = "/tmp/thalweg-resolv-XXXXXX";
  const int made = mkstemp(name);
  const std::string text = "nameserver 127.0.0.78\noptions timeout:20 attempts:2\n";
  if (made < 0 || write(made, text.data(), text.size()) < 0) return kNoNamespace;
  close(made);
  const bool mounted =
      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 && mount(name, "/etc/resolv.conf", nullptr, MS_BIND, nullptr) == 0;
  const int server = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(53);
  inet_pton(AF_INET, "127.0.0.78", &at.sin_addr);
  unlink(name);
  if (!mounted || (bind(server, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 && uid == 0)) return kNoNamespace;
  for (int i = 0; i < 30; ++i) {  // more than glibc has threads for
    const auto began = steady_clock::now();
    int error = 0;
    const auto none = common::Lookup("nobody" + std::to_string(i) + ".thalweg.test", "80", 0, 100ms, &error);
    if (none || error != EAI_AGAIN) return 1;
    if (steady_clock::now() - began > 5s) return 2;
  }
  int error = 0;
  if (!common::Lookup("127.0.0.1", "80", 0, 0s, &error)) return 3;  // needs no server
  return 0;
}

TEST(LookupTest, ServersThatSayNothingAreWaitedForUntilTheDeadline) {
  const pid_t pid = fork();
  if (pid == 0) _exit(LookUpInVain());
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "no mount namespace may be made here, or nobody may listen at port 53";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(LookupTest, NumbersAndNamesAreFoundAndWhatIsNeitherIsNot) {
  int error = 0;
  EXPECT_TRUE(common::Lookup("::1", "80", 0, 1s, &error) != nullptr);
  EXPECT_TRUE(common::Lookup("localhost", "80", 0, 10s, &error) != nullptr) << gai_strerror(error);
  EXPECT_TRUE(common::Lookup("no such host", "80", 0, 10s, &error) == nullptr);
  EXPECT_NE(error, 0);
}

}  // namespace
}  // namespace thalweg
