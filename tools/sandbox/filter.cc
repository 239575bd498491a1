#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <initializer_list>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "confine.h"

namespace thalweg::sandbox {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArch = 0;  // unknown: the filter then lets nothing through, and the sandbox is refused
#endif

// Calls for computing, waiting, memory, the process's own threads and descriptors, and reading
// files. The most frequent come first.
constexpr int kAllowed[] = {
    SYS_futex,
    SYS_ppoll,
    SYS_recvfrom,
    SYS_sendmsg,
    SYS_read,
    SYS_write,
    SYS_madvise,
    SYS_munmap,
    SYS_clock_gettime,
    SYS_sched_yield,
    SYS_brk,
    SYS_mprotect,
    SYS_mremap,
    SYS_mincore,
    SYS_membarrier,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getcpu,
    SYS_getrandom,
    SYS_getrusage,
    SYS_uname,
    SYS_sysinfo,
    SYS_times,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_set_tid_address,
    SYS_exit,
    SYS_exit_group,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_preadv,
    SYS_lseek,
    SYS_close,
    SYS_close_range,
    SYS_dup,
    SYS_dup3,
    SYS_eventfd2,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_pselect6,
    SYS_recvmsg,
    SYS_shutdown,
    SYS_getsockopt,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_fadvise64,
    SYS_readahead,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef __x86_64__
    SYS_poll,
    SYS_select,
    SYS_epoll_wait,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_time,
    SYS_dup2,
    SYS_arch_prctl,
#endif
};

class Program {
 public:
  Program() {
    Load(offsetof(seccomp_data, arch));
    Unless(BPF_JEQ, kArch, Kill());
    Load(offsetof(seccomp_data, nr));
#ifdef __x86_64__
    If(BPF_JGE, 0x40000000, Fail(ENOSYS));  // the same calls under other numbers (x32)
#endif
  }
  void Allow(int nr) { If(BPF_JEQ, uint32_t(nr), kAllow); }
  void Refuse(int nr, int error) { If(BPF_JEQ, uint32_t(nr), Fail(error)); }
  // Adds rules for one system call; `body` tests its arguments. Within another body, tests whether
  // the argument loaded last equals this number. A call that no rule of `body` decides is allowed.
  template <class F>
  void Judge(int nr, F&& body) {
    const size_t jump = code_.size();
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(nr), 0, 0));
    body();
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, kAllow));
    code_[jump].jf = uint8_t(code_.size() - jump - 1);
  }
  // Loads the low or the high half of an argument.
  void Argument(int i, bool high = false) { Load(uint32_t(offsetof(seccomp_data, args) + size_t(i) * 8 + (high ? 4 : 0))); }
  void And(uint32_t bits) { code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits)); }
  void RefuseIf(uint32_t value, int error) { If(BPF_JEQ, value, Fail(error)); }
  void RefuseUnless(uint32_t value, int error) { Unless(BPF_JEQ, value, Fail(error)); }
  void RefuseIfAny(uint32_t bits, int error) { If(BPF_JSET, bits, Fail(error)); }
  void RefuseUnlessOneOf(std::initializer_list<uint32_t> values, int error) {
    for (uint32_t v : values) If(BPF_JEQ, v, kAllow);
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, Fail(error)));
  }
  bool Install() {
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, Fail(EPERM)));
    const sock_fprog program = {static_cast<unsigned short>(code_.size()), code_.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
  }

 private:
  static constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
  static constexpr uint32_t Fail(int error) { return SECCOMP_RET_ERRNO | uint32_t(error); }
  static constexpr uint32_t Kill() { return SECCOMP_RET_KILL_PROCESS; }
  void Load(uint32_t at) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)); }
  void If(uint16_t test, uint32_t k, uint32_t verdict) {
    code_.push_back(BPF_JUMP(uint16_t(BPF_JMP | test | BPF_K), k, 0, 1));
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
  }
  void Unless(uint16_t test, uint32_t k, uint32_t verdict) {
    code_.push_back(BPF_JUMP(uint16_t(BPF_JMP | test | BPF_K), k, 1, 0));
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
  }
  std::vector<sock_filter> code_;
};

constexpr uint32_t kOther = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr uint32_t kThread = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;

}  // namespace

bool FilterCalls() {
  Program p;
  for (int nr : kAllowed) p.Allow(nr);
  // Shared memory counts towards no limit of this process. The only descriptor that may be mapped
  // shared is the pipe's; any other file put at that number later is one that the process may read.
  // MAP_ANONYMOUS has no descriptor and would pass the check.
  p.Judge(SYS_mmap, [&] {
    p.Argument(4);
    p.Judge(kMemory, [&] {
      p.Argument(3);
      p.RefuseIfAny(MAP_ANONYMOUS, EPERM);
    });
    p.Argument(3);
    p.RefuseIfAny(MAP_SHARED, EPERM);
  });
  // Allows threads and forbids processes. glibc tries clone3 first, whose flags a filter cannot
  // see, and then clone.
  p.Refuse(SYS_clone3, ENOSYS);
  p.Judge(SYS_clone, [&] {
    p.Argument(0);
    p.RefuseIfAny(kOther, EPERM);
    p.And(kThread);
    p.RefuseUnless(kThread, EPERM);
  });
  // Allows files to be opened for reading only. openat2 passes its flags in memory, where a filter
  // cannot see them; a caller without openat2 opens a path part by part.
  constexpr uint32_t kWrite = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);
  p.Refuse(SYS_openat2, ENOSYS);
  p.Judge(SYS_openat, [&] {
    p.Argument(2);
    p.RefuseIfAny(kWrite, EROFS);
  });
#ifdef __x86_64__
  p.Judge(SYS_open, [&] {
    p.Argument(1);
    p.RefuseIfAny(kWrite, EROFS);
  });
#endif
  for (int nr : {SYS_mkdirat, SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_ftruncate, SYS_fallocate}) {
    p.Refuse(nr, EROFS);
  }
  p.Refuse(SYS_ioctl, ENOTTY);
  // Forbids F_SETOWN and similar commands, by which the kernel sends signals to other processes.
  p.Judge(SYS_fcntl, [&] {
    p.Argument(1);
    p.RefuseUnlessOneOf({F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_DUPFD_CLOEXEC}, EPERM);
  });
  // Allows signals to its own threads only, as abort and raise send them.
  p.Judge(SYS_tgkill, [&] {
    p.Argument(0);
    p.RefuseUnless(uint32_t(getpid()), EPERM);
  });
  p.Judge(SYS_prctl, [&] {
    p.Argument(0);
    p.RefuseUnlessOneOf({PR_SET_NAME, PR_GET_NAME, 0x53564d41 /* PR_SET_VMA */}, EPERM);
  });
  // Allows the process to read its own limits.
  p.Judge(SYS_prlimit64, [&] {
    p.Argument(0);
    p.RefuseUnless(0, EPERM);
    p.Argument(2);
    p.RefuseUnless(0, EPERM);
    p.Argument(2, true);
    p.RefuseUnless(0, EPERM);
  });
  return p.Install();
}

}  // namespace thalweg::sandbox
