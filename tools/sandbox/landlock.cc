#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "confine.h"

namespace thalweg::sandbox {
namespace {

// The struct of later kernels, which these headers may lack.
struct Ruleset {
  uint64_t files, net, scoped;
};
constexpr uint64_t kFirstFiles = (1u << 13) - 1, kRefer = 1u << 13, kTruncate = 1u << 14, kIoctl = 1u << 15;
constexpr uint64_t kTcp = 3, kScopes = 3;  // bind and connect; abstract sockets and signals

}  // namespace

int LimitFiles(const std::vector<std::string>& read) {
  const int version = int(syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
  if (version < 1) return 0;
  Ruleset all = {kFirstFiles, 0, 0};
  if (version >= 2) all.files |= kRefer;
  if (version >= 3) all.files |= kTruncate;
  if (version >= 5) all.files |= kIoctl;
  if (version >= 4) all.net = kTcp;
  if (version >= 6) all.scoped = kScopes;
  const size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const int rules = int(syscall(SYS_landlock_create_ruleset, &all, size, 0));
  if (rules < 0) return 0;
  for (const std::string& path : read) {
    landlock_path_beneath_attr beneath = {};
    beneath.parent_fd = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (beneath.parent_fd < 0) continue;  // this machine lacks that folder of libraries
    struct stat st;
    const bool folder = fstat(beneath.parent_fd, &st) == 0 && S_ISDIR(st.st_mode);
    beneath.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | (folder ? uint64_t{LANDLOCK_ACCESS_FS_READ_DIR} : 0);
    const bool added = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0;
    close(beneath.parent_fd);
    if (!added) {
      close(rules);
      return 0;
    }
  }
  const bool in_force = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  close(rules);
  return in_force ? version : 0;
}

}  // namespace thalweg::sandbox
