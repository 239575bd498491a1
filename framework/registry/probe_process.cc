#include "framework/registry/probe_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "framework/base/descriptor.h"
#include "framework/base/strings.h"
#include "framework/registry/plugin_probe.h"

namespace thalweg {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long a killed process may take to end. A process blocked in the kernel, in a file system that
// does not answer, takes longer; it is then left alone.
constexpr milliseconds kMercy{1000};
// How often to check whether the process has ended, for kernels without process descriptors (before
// 5.3).
constexpr milliseconds kLook{10};

// Returns the program's environment. A sanitized build removes LD_PRELOAD: the helper has a
// sanitizer of its own, and one process cannot hold two.
std::vector<char*> Environment() {
  std::vector<char*> variables;
  for (char** v = environ; *v; ++v) {
#ifdef THALWEG_SANITIZED
    if (std::strncmp(*v, "LD_PRELOAD=", 11) == 0) continue;
#endif
    variables.push_back(*v);
  }
  variables.push_back(nullptr);
  return variables;
}

// The spawn settings of the helper: only the far end of the conversation is open, no signals are
// blocked or ignored, and it has a process group of its own, so that it can be killed with
// everything that a plugin forked.
class SpawnSetting {
 public:
  explicit SpawnSetting(int far_end) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_adddup2(&actions_, far_end, kProbeDescriptor);
    for (int fd : {0, 1, 2}) posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions_, kProbeDescriptor + 1);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  SpawnSetting(const SpawnSetting&) = delete;
  ~SpawnSetting() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  int Start(const std::string& helper, const std::string& path, pid_t* pid) {
    char* argv[] = {const_cast<char*>(helper.c_str()), const_cast<char*>(path.c_str()), nullptr};
    std::vector<char*> variables = Environment();
    return posix_spawn(pid, helper.c_str(), &actions_, &attributes_, argv, variables.data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Waits for the descriptors until the deadline. Returns false if the deadline has passed.
bool PollUntil(pollfd* fds, size_t n, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    const int ready = poll(fds, nfds_t(n), int(std::max<decltype(left)>(left, 0)));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    if (ready == 0 && Clock::now() >= until) return false;
  }
}

// A child and its process group, killed and reaped at the latest by the destructor.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid), ended_(int(syscall(SYS_pidfd_open, pid, 0))) {}
  Child(const Child&) = delete;
  ~Child() { End(); }

  int ended() const { return ended_.get(); }  // readable once the child has ended; -1: not supported by the kernel
  bool HasEnded() const {
    siginfo_t info = {};
    // An error means that the program's own handler has reaped it already.
    return waitid(P_PID, id_t(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
  }
  // Nobody else can have the pid while the child is not reaped. The child may have moved to another
  // group, so it is killed by pid too.
  void Kill() const {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
  }
  std::string End() {
    if (std::exchange(over_, true)) return "";
    Kill();
    const auto until = Clock::now() + kMercy;
    while (!HasEnded()) {
      pollfd fds[] = {{ended(), POLLIN, 0}};
      if (!PollUntil(fds, 1, ended() >= 0 ? until : std::min(until, Clock::now() + kLook)) && Clock::now() >= until) {
        return "cannot be ended: the system holds it";
      }
    }
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return "";
    if (WIFSIGNALED(status)) {
      const char* name = sigabbrev_np(WTERMSIG(status));
      return StrCat("was ended by signal ", WTERMSIG(status), name ? StrCat(" (SIG", name, ")") : std::string());
    }
    return StrCat("ended the process with exit status ", WEXITSTATUS(status));
  }

 private:
  const pid_t pid_;
  const Descriptor ended_;
  bool over_ = false;
};

class Conversation {
 public:
  Conversation(int fd, const Child& child, std::string_view settings, milliseconds patience)
      : fd_(fd), child_(child), to_say_(settings), patience_(patience) {}

  ProbeEnd Hold(std::string* text) {
    Clock::time_point until = Clock::now() + patience_;
    for (;;) {
      const bool began = !text->empty();
      pollfd fds[] = {{fd_, short(POLLIN | (to_say_.empty() ? 0 : POLLOUT)), 0}, {child_.ended(), POLLIN, 0}};
      const bool in_time = PollUntil(fds, 2, child_.ended() >= 0 ? until : std::min(until, Clock::now() + kLook));
      const bool gone = child_.HasEnded();  // everything that it wrote has arrived by then
      if (gone) child_.Kill();              // also kills its group, which could otherwise write on
      if (fds[0].revents & POLLOUT) Say();
      if (fds[0].revents != 0 || gone) Hear(text);
      if (IsOver(*text)) return ProbeEnd::kOver;
      if (text->size() > kMostProbeText) return ProbeEnd::kTooMuch;
      if (gone) return ProbeEnd::kGone;
      if (!in_time && Clock::now() >= until) return ProbeEnd::kLate;
      if (!began && !text->empty()) until = Clock::now() + patience_;
    }
  }

 private:
  void Say() {
    const ssize_t n = send(fd_, to_say_.data(), to_say_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    to_say_.remove_prefix(n < 0 ? to_say_.size() : size_t(n));  // on an error the helper has stopped reading; its output tells why
    if (to_say_.empty()) shutdown(fd_, SHUT_WR);
  }
  void Hear(std::string* text) {
    char block[4096];
    while (fd_ >= 0 && text->size() <= kMostProbeText) {
      const ssize_t got = recv(fd_, block, sizeof block, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      // The helper's end is closed. The process may still run; it has its time.
      if (got <= 0) fd_ = -1;
      if (got > 0) text->append(block, size_t(got));
    }
  }
  static bool IsOver(std::string_view text) { return text == "over\n" || text.ends_with("\nover\n"); }

  int fd_;  // -1: the helper has closed its end
  const Child& child_;
  std::string_view to_say_;
  const milliseconds patience_;
};

}  // namespace

int RunProbe(const std::string& helper, const std::string& path, const std::string& settings, milliseconds patience, ProbeTalk* talk) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  Descriptor near(ends[0]), far(ends[1]);
  pid_t pid = 0;
  if (int error = SpawnSetting(far.get()).Start(helper, path, &pid)) return error;
  far = Descriptor(-1);
  Child child(pid);
  if (settings.empty()) shutdown(near.get(), SHUT_WR);
  talk->end = Conversation(near.get(), child, settings, patience).Hold(&talk->text);
  talk->status = child.End();
  return 0;
}

}  // namespace thalweg
