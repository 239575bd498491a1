#include "supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "command.h"
#include "groups.h"

extern char** environ;

namespace thalweg::cli {
namespace {

constexpr int kPause = 200;  // milliseconds before a process that died is restarted

constexpr int kLook = 50;  // milliseconds between polls of groups whose leaders have ended; no event reports the end of the other members

constexpr int kAsk = 200;  // milliseconds between questions to elsewhere

constexpr size_t kLongestLine = 65536;  // bytes of output; a longer line is shown in parts

// Returns our environment without the names that `more` sets, and then `more`.
std::vector<std::string> Environment(const std::vector<std::string>& more) {
  std::vector<std::string> all;
  for (char** e = environ; *e; ++e) {
    const std::string_view name(*e, std::strcspn(*e, "="));
    const auto same = [&](const std::string& m) { return m.substr(0, m.find('=')) == name; };
    if (std::none_of(more.begin(), more.end(), same)) all.emplace_back(*e);
  }
  // NAME alone only takes away.
  for (const std::string& m : more) {
    if (m.find('=') != m.npos) all.push_back(m);
  }
  return all;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace

Supervisor::Supervisor(const Options& options) : options_(options) {
  signal(SIGCHLD, SIG_DFL);  // if the parent had set SIG_IGN, waitpid could not report a child's end
  sigset_t all;
  sigemptyset(&all);
  for (int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&all, s);
  sigprocmask(SIG_BLOCK, &all, &before_);
  signals_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw std::runtime_error(std::string("signalfd: ") + std::strerror(errno));
}

Supervisor::~Supervisor() {
  for (Child& c : children_) {
    if (c.pid > 0 && (!c.ended || failed_)) kill(-c.pid, SIGKILL);
    if (c.pid > 0) waitpid(c.pid, nullptr, 0);
    if (c.output >= 0) close(c.output);
  }
  close(signals_);
}

int Supervisor::Run(const std::vector<Process>& processes) {
  children_.reserve(processes.size());
  for (const Process& p : processes) {
    children_.push_back({p, Environment(p.environment)});
    Spawn(&children_.back());
  }
  if (options_.elsewhere) ask_at_ = Clock::now();
  Reap();  // without a program, servers alone
  while (Running()) Turn();
  return failed_ ? (status_ ? status_ : kFailed) : kGood;
}

// Uses fork, because posix_spawn cannot tie the child's life to ours with PR_SET_PDEATHSIG.
void Supervisor::Spawn(Child* c) {
  int ends[2] = {-1, -1}, failure[2] = {-1, -1};
  const bool shown = !c->is.name.empty();
  if (shown && pipe2(ends, O_CLOEXEC) != 0) CannotStart(*c, errno);
  if (shown) fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const std::string file = c->is.own ? own_.Executable() : c->is.words[0];
  const std::vector<char*> words = Pointers(c->is.words), environment = Pointers(c->environment);
  const pid_t self = getpid();
  int error = pipe2(failure, O_CLOEXEC) == 0 ? 0 : errno;
  const pid_t pid = error ? -1 : fork();
  if (pid == 0) {
    setpgid(0, 0);  // the terminal's Ctrl-C reaches only us, and we forward it
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(kFailed);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    if (!shown || (dup2(ends[1], 1) == 1 && dup2(ends[1], 2) == 2)) execvpe(file.c_str(), words.data(), environment.data());
    error = errno;
    (void)!write(failure[1], &error, sizeof error);
    _exit(kFailed);
  }
  if (pid < 0 && !error) error = errno;
  if (shown) close(ends[1]);
  if (failure[1] >= 0) close(failure[1]);
  if (pid > 0) {
    setpgid(pid, pid);                                                      // parent and child both call it, since either may run first
    if (read(failure[0], &error, sizeof error) != sizeof error) error = 0;  // a successful exec closes the pipe
  }
  if (failure[0] >= 0) close(failure[0]);
  if (error) {
    if (shown) close(ends[0]);
    if (pid > 0) waitpid(pid, nullptr, 0);
    CannotStart(*c, error);
  }
  c->pid = pid;
  c->ended = false;
  c->output = ends[0];
  c->again = {};
  ++c->starts;
}

void Supervisor::CannotStart(const Child& c, int error) {
  const std::string what = "cannot start '" + c.is.words[0] + "': " + std::strerror(error);
  Fail(kFailed, what);
  throw std::runtime_error(what);
}

bool Supervisor::Running() const {
  for (const Child& c : children_) {
    if (Lives(c) || c.output >= 0 || IsToStart(c)) return true;
  }
  if (!failed_) return false;  // processes left by a program that succeeded may stay
  const std::set<pid_t> groups = LivingGroups();
  return std::any_of(children_.begin(), children_.end(), [&](const Child& c) { return c.pid > 0 && groups.count(c.pid) > 0; });
}

// Returns the milliseconds until the next timed action; -1 if there is none.
int Supervisor::Patience() const {
  const auto left = [](Clock::time_point until) {
    return int(std::max<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count(), 0));
  };
  int least = ending_ ? left(hard_at_) : -1;
  const auto sooner = [&least](int ms) { least = least < 0 ? ms : std::min(least, ms); };
  if (failed_) sooner(kLook);
  if (options_.elsewhere && !ending_) sooner(left(ask_at_));
  for (const Child& c : children_) {
    if (IsToStart(c)) sooner(left(c.again));
  }
  return least;
}

void Supervisor::StartAgain() {
  for (Child& c : children_) {
    if (!IsToStart(c) || Clock::now() < c.again) continue;
    LetGo(&c);
    Spawn(&c);
  }
}

// Waits for output, signals and process ends, and handles them.
void Supervisor::Turn() {
  std::vector<pollfd> all = {{signals_, POLLIN, 0}};
  for (const Child& c : children_) all.push_back({c.output, POLLIN, 0});
  poll(all.data(), all.size(), Patience());
  StartAgain();
  for (size_t i = 0; i < children_.size(); ++i) {
    if (all[i + 1].revents) Read(&children_[i]);
  }
  signalfd_siginfo s;
  bool died = false;
  while (read(signals_, &s, sizeof s) == sizeof s) {
    died = died || s.ssi_signo == SIGCHLD;
    if (s.ssi_signo == SIGCHLD) continue;
    const bool ends = s.ssi_signo == SIGTERM || s.ssi_signo == SIGINT || s.ssi_signo == SIGHUP;
    told_to_end_ = told_to_end_ || ends;
    if (ends) Fail(kFailed, std::string("was told to end: ") + strsignal(int(s.ssi_signo)));
    if (ends) End(int(s.ssi_signo));
    for (const Child& c : children_) {
      if (!ends && Lives(c) && !c.is.server) kill(c.pid, int(s.ssi_signo));
    }
  }
  if (died) Reap();
  if (options_.elsewhere && !ending_ && Clock::now() >= ask_at_) AskElsewhere();
  if (ending_ && Clock::now() >= hard_at_) EndHard();
}

void Supervisor::AskElsewhere() {
  ask_at_ = Clock::now() + std::chrono::milliseconds(kAsk);
  int status = 0;
  std::string what;
  const bool done = options_.elsewhere->Done(&status, &what);
  if (status != 0) {
    std::fprintf(stderr, "thalweg launch: %s; ending all\n", what.c_str());
    failed_ = told_failure_ = true;
    status_ = status;
    End(SIGTERM);
  } else if (done && succeeded_) {
    End(SIGTERM);
  }
}

// Reads no more than a pipe holds, so that a program that writes quickly cannot block the loop.
void Supervisor::Read(Child* c) {
  char bytes[65536];
  const ssize_t n = read(c->output, bytes, sizeof bytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  for (char b : std::string_view(bytes, size_t(std::max<ssize_t>(n, 0)))) {
    if (b == '\n' || c->line.size() == kLongestLine) Show(c);
    if (b != '\n') c->line += b;
  }
  if (n <= 0) Close(c);
}

// Shows the remaining output and closes our end; a descendant may still hold the other end.
void Supervisor::LetGo(Child* c) {
  if (c->output >= 0) Read(c);
  if (c->output >= 0) Close(c);
}

void Supervisor::Close(Child* c) {
  if (!c->line.empty()) Show(c);
  close(c->output);
  c->output = -1;
}

void Supervisor::Show(Child* c) {
  std::printf("[%s] %s\n", c->is.name.c_str(), c->line.c_str());
  std::fflush(stdout);
  c->line.clear();
}

void Supervisor::Reap() {
  for (Child& c : children_) {
    siginfo_t how = {};
    if (Lives(c) && waitid(P_PID, id_t(c.pid), &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid == c.pid) Ended(&c, how);
  }
  const auto works = [](const Child& c) { return !c.is.server && (Lives(c) || IsToStart(c)); };
  if (ending_ || std::any_of(children_.begin(), children_.end(), works)) return;
  if (!options_.elsewhere) return End(SIGTERM);
  if (succeeded_) return;
  succeeded_ = true;
  options_.elsewhere->Succeeded();
}

void Supervisor::Ended(Child* c, const siginfo_t& how) {
  c->ended = true;
  if (ending_ || (how.si_code == CLD_EXITED && how.si_status == 0 && !(c->is.server && options_.elsewhere))) return;
  const std::string text = how.si_code == CLD_EXITED ? "ended with status " + std::to_string(how.si_status)
                                                     : std::string("was killed by signal ") + strsignal(how.si_status);
  const bool again = c->starts <= options_.restarts;
  const std::string name = c->is.name.empty() ? c->is.words[0] : c->is.name;
  std::fprintf(stderr, "thalweg launch: %s %s; %s\n", name.c_str(), text.c_str(), again ? "starting it again" : "ending all");
  if (again) {
    Finish(c);  // descendants must not run beside the restarted process
    c->again = Clock::now() + std::chrono::milliseconds(kPause);
  } else {
    Fail(how.si_code == CLD_EXITED ? std::max(how.si_status, int(kFailed)) : 128 + how.si_status, name + " " + text);
    End(SIGTERM);
  }
}

void Supervisor::Fail(int status, const std::string& what) {
  failed_ = true;
  if (status_ == 0) status_ = status;
  if (options_.elsewhere && !told_failure_) options_.elsewhere->Failed(status_, what);
  told_failure_ = true;
}

// Kills the remaining processes of a group whose leader has ended, then reaps the leader, which
// frees the group id.
void Supervisor::Finish(Child* c) {
  kill(-c->pid, SIGKILL);
  waitpid(c->pid, nullptr, 0);
  c->pid = -1;
}

void Supervisor::End(int signal) {
  if (!ending_) hard_at_ = Clock::now() + std::chrono::milliseconds(options_.patience);
  ending_ = true;
  for (Child& c : children_) {
    c.again = {};
    // Signals the whole group, since a shell would not forward the signal. After a failure, also
    // signals the leftovers of finished programs.
    if (Lives(c) || (failed_ && c.pid > 0)) kill(-c.pid, signal);
  }
}

// Kills every process that has not ended, and stops waiting for output; after a failure, also
// kills leftover processes.
void Supervisor::EndHard() {
  hard_at_ = Clock::now() + std::chrono::milliseconds(options_.patience);
  for (Child& c : children_) {
    if (Lives(c)) {
      kill(-c.pid, SIGKILL);
    } else {
      if (failed_ && c.pid > 0) Finish(&c);
      LetGo(&c);
    }
  }
}

}  // namespace thalweg::cli
