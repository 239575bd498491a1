#include <grp.h>
#include <unistd.h>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "confine.h"

namespace thalweg::sandbox {
namespace {

constexpr uid_t kNobody = 65534;

bool SetLimit(__rlimit_resource what, uint64_t most) {
  const rlimit limit = {most, most};
  return setrlimit(what, &limit) == 0;
}

}  // namespace

bool DropRights(int proc, bool* own_users) {
  // A root that may not change its user has no capabilities (as in a container), and stays root.
  const bool root = getuid() == 0 || geteuid() == 0;
  if (root && setgroups(0, nullptr) == 0) {
    if (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0) return false;
    *own_users = SeparateUsers(proc);
  }
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  const bool without = syscall(SYS_capset, &header, none) == 0;
  return without && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

// own_users: no other process counts towards this user's thread limit.
Limited Limit(const Settings& s, bool own_users) {
  Limited l;
  SetLimit(RLIMIT_CORE, 0);
  SetLimit(RLIMIT_FSIZE, 0);
  SetLimit(RLIMIT_MSGQUEUE, 0);
  SetLimit(RLIMIT_MEMLOCK, 0);
  SetLimit(RLIMIT_SIGPENDING, 256);
  // RLIMIT_DATA counts private writable memory; the filter forbids shared mappings.
  l.memory = s.memory > 0 && SetLimit(RLIMIT_DATA, s.memory);
  l.threads = s.threads > 0 && own_users && SetLimit(RLIMIT_NPROC, s.threads);
  l.descriptors = s.descriptors > 0 && SetLimit(RLIMIT_NOFILE, s.descriptors);
  return l;
}

}  // namespace thalweg::sandbox
