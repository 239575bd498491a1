// thalweg launch: starts a cluster on this machine, and a program for each of its workers.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "command.h"
#include "groups.h"
#include "handles.h"
#include "json.h"
#include "own_program.h"

extern char** environ;

namespace thalweg::cli {
namespace {

constexpr int kPatience = 5000;  // milliseconds from the first signal to SIGKILL

constexpr int kPause = 200;  // milliseconds before a task that died is restarted

constexpr int kLook = 50;  // milliseconds between polls of groups whose leaders have ended; no event reports the end of the other members

constexpr size_t kLongestLine = 65536;  // bytes of output; a longer line is shown in parts

using Clock = std::chrono::steady_clock;

struct Child {
  std::string name;    // prefix of each line of its output
  pid_t pid = -1;      // also the id of the process group that it leads; -1: no process and no group
  bool ended = false;  // true: the process is kept as a zombie, so that its group id is not reused
  int output = -1;
  std::string line;  // output since the last complete line
  bool server = false;
  std::vector<std::string> words, environment;  // arguments and environment of each start
  int64_t starts = 0;
  Clock::time_point again = {};  // time of the next start; the clock's epoch: none is due
};

class Launcher {
 public:
  explicit Launcher(const Args& args)
      : args_(args),
        n_ps_(args.integer("--ps", 0, 0)),
        n_workers_(args.integer("-n", 1, 1)),
        ports_(args.get("--scheme", "grpc") == "grpc" ? FreePorts(n_ps_ + n_workers_) : std::vector<int>()) {
    signal(SIGCHLD, SIG_DFL);  // if the parent had set SIG_IGN, waitpid could not report a child's end
    sigset_t all;
    sigemptyset(&all);
    for (int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&all, s);
    sigprocmask(SIG_BLOCK, &all, &before_);
    signals_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) throw std::runtime_error(std::string("signalfd: ") + std::strerror(errno));
  }
  ~Launcher() {
    for (Child& c : children_) {
      if (c.pid > 0 && (!c.ended || failed_)) kill(-c.pid, SIGKILL);
      if (c.pid > 0) waitpid(c.pid, nullptr, 0);
      if (c.output >= 0) close(c.output);
    }
    close(signals_);
  }

  int Run() {
    for (int64_t i = 0; i < n_ps_; ++i) StartServer("ps", i);
    for (int64_t i = 0; i < n_workers_; ++i) StartServer("worker", i);
    const int64_t clients = args_.integer("--clients", n_workers_, 1);
    for (int64_t i = 0; i < clients; ++i) StartClient(i);
    while (Running()) Turn();
    return failed_ ? kFailed : kGood;
  }

 private:
  std::string Address(const std::string& job, int64_t i) const {
    const std::string scheme = args_.get("--scheme", "grpc");
    if (scheme != "grpc") return scheme + ":thalweg-" + std::to_string(getpid()) + "-" + job + "-" + std::to_string(i);
    return "127.0.0.1:" + std::to_string(ports_[size_t(job == "ps" ? i : n_ps_ + i)]);
  }

  // Returns free ports. All are bound at the same time, so no two are equal. If another process
  // takes a port before its server does, that server fails.
  static std::vector<int> FreePorts(int64_t n) {
    std::vector<int> sockets, ports;
    for (int64_t i = 0; i < n; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in at = {};
      socklen_t size = sizeof at;
      at.sin_family = AF_INET;
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      const bool good =
          fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0 && getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0;
      if (fd >= 0) sockets.push_back(fd);
      if (!good) throw std::runtime_error(std::string("cannot find a free port: ") + std::strerror(errno));
      ports.push_back(ntohs(at.sin_port));
    }
    for (int fd : sockets) close(fd);
    return ports;
  }

  std::string Config(const std::string& job, int64_t i) const {
    Json json;
    json.Object().Object("cluster");
    for (const auto& [name, n] : {std::pair("ps", n_ps_), std::pair("worker", n_workers_)}) {
      if (n == 0) continue;
      json.Array(name);
      for (int64_t k = 0; k < n; ++k) json.Text("", Address(name, k));
      json.End();
    }
    json.End().Object("task").Text("type", job).Number("index", i).End().End();
    return json.text();
  }

  void StartServer(const std::string& job, int64_t i) {
    std::vector<std::string> words = {own_.path(), "worker"};
    for (const char* option : {"--plugin", "--option", "--threads", "--server-option", "--allow"}) {
      for (const std::string& value : args_.all(option)) words.insert(words.end(), {option, value});
    }
    Start(job + "/" + std::to_string(i), words, {"TF_CONFIG=" + Config(job, i)}, true);
  }

  void StartClient(int64_t i) {
    const int64_t worker = i % n_workers_;
    Start("client/" + std::to_string(i), args_.positional(),
          {"TF_CONFIG=" + Config("worker", worker), "THALWEG_TARGET=" + Address("worker", worker)}, false);
  }

  void Start(const std::string& name, const std::vector<std::string>& words, const std::vector<std::string>& more, bool server) {
    Child c{name, -1, false, -1, "", server, words, more};
    for (char** e = environ; *e; ++e) {
      if (std::strncmp(*e, "TF_CONFIG=", 10) != 0 && std::strncmp(*e, "THALWEG_TARGET=", 15) != 0) c.environment.push_back(*e);
    }
    children_.push_back(std::move(c));
    Spawn(&children_.back());
  }

  // Uses fork, because posix_spawn cannot tie the child's life to ours with PR_SET_PDEATHSIG.
  void Spawn(Child* c) {
    int ends[2], failure[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) CannotStart(*c, errno);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const std::string file = c->server ? own_.Executable() : c->words[0];
    const std::vector<char*> words = Pointers(c->words), environment = Pointers(c->environment);
    const pid_t self = getpid();
    int error = pipe2(failure, O_CLOEXEC) == 0 ? 0 : errno;
    const pid_t pid = error ? -1 : fork();
    if (pid == 0) {
      setpgid(0, 0);  // the terminal's Ctrl-C reaches only us, and we forward it
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self) _exit(kFailed);
      sigprocmask(SIG_SETMASK, &before_, nullptr);
      if (dup2(ends[1], 1) == 1 && dup2(ends[1], 2) == 2) execvpe(file.c_str(), words.data(), environment.data());
      error = errno;
      (void)!write(failure[1], &error, sizeof error);
      _exit(kFailed);
    }
    if (pid < 0 && !error) error = errno;
    close(ends[1]);
    if (failure[1] >= 0) close(failure[1]);
    if (pid > 0) {
      setpgid(pid, pid);                                                      // parent and child both call it, since either may run first
      if (read(failure[0], &error, sizeof error) != sizeof error) error = 0;  // a successful exec closes the pipe
    }
    if (failure[0] >= 0) close(failure[0]);
    if (error) {
      close(ends[0]);
      if (pid > 0) waitpid(pid, nullptr, 0);
      CannotStart(*c, error);
    }
    c->pid = pid;
    c->ended = false;
    c->output = ends[0];
    c->again = {};
    ++c->starts;
  }

  [[noreturn]] void CannotStart(const Child& c, int error) {
    failed_ = true;
    throw std::runtime_error("cannot start '" + c.words[0] + "': " + std::strerror(error));
  }

  static std::vector<char*> Pointers(const std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
  }

  bool Running() const {
    for (const Child& c : children_) {
      if (Lives(c) || c.output >= 0 || IsToStart(c)) return true;
    }
    if (!failed_) return false;  // processes left by a program that succeeded may stay
    const std::set<pid_t> groups = LivingGroups();
    return std::any_of(children_.begin(), children_.end(), [&](const Child& c) { return c.pid > 0 && groups.count(c.pid) > 0; });
  }

  static bool Lives(const Child& c) { return c.pid > 0 && !c.ended; }

  static bool IsToStart(const Child& c) { return c.again != Clock::time_point(); }

  // Returns the milliseconds until the next timed action; -1 if there is none.
  int Patience() const {
    const auto left = [](Clock::time_point until) {
      return int(std::max<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count(), 0));
    };
    int least = ending_ ? left(hard_at_) : -1;
    if (failed_) least = std::min(least, kLook);
    for (const Child& c : children_) {
      if (!IsToStart(c)) continue;
      least = least < 0 ? left(c.again) : std::min(least, left(c.again));
    }
    return least;
  }

  void StartAgain() {
    for (Child& c : children_) {
      if (!IsToStart(c) || Clock::now() < c.again) continue;
      LetGo(&c);
      Spawn(&c);
    }
  }

  // Waits for output, signals and process ends, and handles them.
  void Turn() {
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
      if (ends) failed_ = true;
      if (ends) End(int(s.ssi_signo));
      for (const Child& c : children_) {
        if (!ends && Lives(c) && !c.server) kill(c.pid, int(s.ssi_signo));
      }
    }
    if (died) Reap();
    if (ending_ && Clock::now() >= hard_at_) EndHard();
  }

  // Reads no more than a pipe holds, so that a program that writes quickly cannot block the loop.
  void Read(Child* c) {
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
  void LetGo(Child* c) {
    if (c->output >= 0) Read(c);
    if (c->output >= 0) Close(c);
  }

  static void Close(Child* c) {
    if (!c->line.empty()) Show(c);
    close(c->output);
    c->output = -1;
  }

  static void Show(Child* c) {
    std::printf("[%s] %s\n", c->name.c_str(), c->line.c_str());
    std::fflush(stdout);
    c->line.clear();
  }

  void Reap() {
    for (Child& c : children_) {
      siginfo_t how = {};
      if (Lives(c) && waitid(P_PID, id_t(c.pid), &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid == c.pid) Ended(&c, how);
    }
    bool clients = false;
    for (const Child& c : children_) clients = clients || (!c.server && (Lives(c) || IsToStart(c)));
    if (!clients && !ending_) End(SIGTERM);
  }

  void Ended(Child* c, const siginfo_t& how) {
    c->ended = true;
    if (ending_ || (how.si_code == CLD_EXITED && how.si_status == 0)) return;
    const std::string text = how.si_code == CLD_EXITED ? "ended with status " + std::to_string(how.si_status)
                                                       : std::string("was killed by signal ") + strsignal(how.si_status);
    const bool again = c->starts <= args_.integer("--restart", 0, 0);
    std::fprintf(stderr, "thalweg launch: %s %s; %s\n", c->name.c_str(), text.c_str(), again ? "starting it again" : "ending all");
    if (again) {
      Finish(c);  // descendants must not run beside the restarted process
      c->again = Clock::now() + std::chrono::milliseconds(kPause);
    } else {
      failed_ = true;
      End(SIGTERM);
    }
  }

  // Kills the remaining processes of a group whose leader has ended, then reaps the leader, which
  // frees the group id.
  static void Finish(Child* c) {
    kill(-c->pid, SIGKILL);
    waitpid(c->pid, nullptr, 0);
    c->pid = -1;
  }

  void End(int signal) {
    if (!ending_) hard_at_ = Clock::now() + std::chrono::milliseconds(kPatience);
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
  void EndHard() {
    hard_at_ = Clock::now() + std::chrono::milliseconds(kPatience);
    for (Child& c : children_) {
      if (Lives(c)) {
        kill(-c.pid, SIGKILL);
      } else {
        if (failed_ && c.pid > 0) Finish(&c);
        LetGo(&c);
      }
    }
  }

  const Args& args_;
  const int64_t n_ps_, n_workers_;
  const std::vector<int> ports_;  // of the parameter servers, then of the workers
  const OwnProgram own_;          // the servers' executable
  sigset_t before_;
  int signals_ = -1;
  bool ending_ = false, failed_ = false;
  Clock::time_point hard_at_;  // the time of SIGKILL, once the launcher is ending
  std::vector<Child> children_;
};

int Run(const Args& args) { return Launcher(args).Run(); }

}  // namespace

const Command& LaunchCommand() {
  static const Command command = {
      "launch",
      "-- PROGRAM [ARGUMENTS]",
      "Starts a cluster on this machine and a program for each of its workers; ends all when one ends badly.",
      "Each program gets TF_CONFIG (the cluster, and which worker it is) and THALWEG_TARGET (that worker's address, for the session\n"
      "option `target`). Lines of output begin with who wrote them. When all programs are done, the servers are ended.\n"
      "With --restart, what ends badly is started again instead: the same program, the same address, with nothing of what it had in "
      "memory.\n"
      "What programs have started is ended after a failure or a signal, and before they are started again. Should launch itself be killed\n"
      "by SIGKILL, its servers and programs end with it, but not what those have started.\n",
      {{"-n", "N", "workers (1)"},
       {"--ps", "N", "parameter servers (0)"},
       {"--clients", "N", "programs, given to the workers in turn (one for each)"},
       {"--restart", "N", "how often each server and program that ends badly is started again (0)"},
       {"--scheme", "SCHEME", "the transport between them: grpc, within this machine, or another whose addresses are names (grpc)"},
       {"--allow", "DIR", "a folder beneath which the servers may read and write files for the programs"},
       {"--server-option", "KEY=VALUE", "an option of all servers, see thalweg worker --help; may be repeated"},
       kThreadsOption,
       kPluginOption,
       kRuntimeOption},
      1,
      1000,
      Run};
  return command;
}

}  // namespace thalweg::cli
