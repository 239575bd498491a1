// A test plugin with one op that tries to escape from a sandbox. It stands for a graph that has
// found a way to run its own code. The op returns 0 if the attempt succeeded, else errno (or -1 if
// there is none).
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "thalweg/cpp/plugin.hpp"

namespace {

int Result(bool good) { return good ? 0 : errno ? errno : -1; }

int TryOpen(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  const int result = Result(fd >= 0);
  if (fd >= 0) close(fd);
  return result;
}

int TryConnect(int64_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(uint16_t(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int result = Result(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  close(fd);
  return result;
}

int TryUnixSocket() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return errno;
  close(ends[0]), close(ends[1]);
  return 0;
}

// Tries fork, and vfork by its own number, with an existing program.
int TryFork() {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

// Tries exec by name only: if allowed, it returns ENOENT.
int TryExec() {
  execl("/no/such/program", "program", nullptr);
  return errno == ENOENT ? 0 : errno;
}

int TryTrace(pid_t whom) {
  if (ptrace(PTRACE_ATTACH, whom, nullptr, nullptr) != 0) return errno;
  waitpid(whom, nullptr, 0);
  ptrace(PTRACE_DETACH, whom, nullptr, nullptr);
  return 0;
}

int TryPeek(pid_t whom) {
  char byte;
  iovec here = {&byte, 1}, there = {const_cast<char*>("x"), 1};
  const ssize_t n = process_vm_readv(whom, &here, 1, &there, 1, 0);
  return Result(n == 1 || errno == EFAULT);  // EFAULT: the call was allowed, and the address is not mapped
}

int TryMemory(int64_t bytes) {
  void* all = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return errno;
  for (int64_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(all)[i] = 1;
  munmap(all, size_t(bytes));
  return 0;
}

int TrySharedMemory(int64_t bytes) {
  // 5: the descriptor that a sandbox may map, if it is one
  for (int fd : {-1, 5}) {
    void* all = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, fd, 0);
    if (all == MAP_FAILED) continue;
    munmap(all, size_t(bytes));
    return 0;
  }
  return errno;
}

int TryThreads(int64_t n) {
  static pthread_mutex_t stay = PTHREAD_MUTEX_INITIALIZER;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  pthread_mutex_lock(&stay);
  std::vector<pthread_t> all;
  int result = 0;
  while (result == 0 && int64_t(all.size()) < n) {
    const auto wait = [](void*) -> void* { return pthread_mutex_lock(&stay), pthread_mutex_unlock(&stay), nullptr; };
    all.emplace_back();
    result = pthread_create(&all.back(), &small, wait, nullptr);
    if (result != 0) all.pop_back();
  }
  pthread_mutex_unlock(&stay);
  for (pthread_t t : all) pthread_join(t, nullptr);
  pthread_attr_destroy(&small);
  return result;
}

int TryDescriptors(int64_t n) {
  std::vector<int> all;
  int result = 0;
  while (result == 0 && int64_t(all.size()) < n) {
    const int fd = eventfd(0, EFD_CLOEXEC);
    if (fd >= 0) all.push_back(fd);
    result = Result(fd >= 0);
  }
  for (int fd : all) close(fd);
  return result;
}

int TryIoctl(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int n;
  if (fd < 0) return errno;
  const int result = Result(ioctl(fd, FIONREAD, &n) == 0 || errno == ENOTTY);
  close(fd);
  return result;
}

int SpendTime(int64_t ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < until) continue;
  return 0;
}

// Makes a call with harmless arguments: a refused call returns EPERM (or ENOSYS), an allowed call
// anything else.
int TryCall(int64_t nr) {
  errno = 0;
  const long result = syscall(nr, -1L, 0L, 0L, 0L, 0L, 0L);
  return result >= 0 || (errno != EPERM && errno != ENOSYS && errno != EROFS) ? 0 : errno;
}

int Try(std::string_view what, const std::string& path, int64_t n) {
  errno = 0;
  if (what == "read") return TryOpen(path, O_RDONLY);
  if (what == "write") return TryOpen(path, O_WRONLY | O_CREAT);
  if (what == "make folder") return Result(mkdir(path.c_str(), 0700) == 0);
  if (what == "connect") return TryConnect(n);
  if (what == "unix socket") return TryUnixSocket();
  if (what == "fork") return TryFork();
  if (what == "exec") return TryExec();
  if (what == "trace") return TryTrace(pid_t(n));
  if (what == "peek") return TryPeek(pid_t(n));
  if (what == "signal") return Result(kill(pid_t(n), SIGUSR1) == 0);
  if (what == "memory") return TryMemory(n);
  if (what == "shared memory") return TrySharedMemory(n);
  if (what == "threads") return TryThreads(n);
  if (what == "descriptors") return TryDescriptors(n);
  if (what == "device") return TryIoctl(path);
  if (what == "time") return SpendTime(n);
  if (what == "call") return TryCall(n);
  if (what == "pid") return getpid();
  if (what == "crash") raise(SIGSEGV);
  return -2;
}

struct Escape {
  std::string what, path;
  explicit Escape(const tw::Node& n) : what(n.s("what")), path(n.s("path")) {}
  void operator()(tw::In<int64_t> n, tw::Out<int64_t> y) const { y[0] = Try(what, path, n[0]); }
};

}  // namespace

TW_CPP_PLUGIN("org.example.escape", "1.0", p) {
  p.op("Escape(n: int64[]) -> (y: int64[]); what: string; path: string = \"\"; stateful; no_gradient \"it is no function\"");
  p.kernel<Escape>("Escape @CPU");
}
