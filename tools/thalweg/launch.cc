// thalweg launch: a cluster on this machine, and a program for each of its workers.
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
#include <sys/stat.h>
#include <sys/wait.h>

#include "command.h"
#include "handles.h"
#include "json.h"

extern char** environ;

namespace thalweg::cli {
namespace {

constexpr int kPatience = 5000;  // milliseconds between a polite end and a hard one

constexpr int kPause = 200;  // milliseconds before a task that died is started again

using Clock = std::chrono::steady_clock;

struct Child {
  std::string name;  // before each line of its output
  pid_t pid = -1;    // -1: it has ended
  pid_t group = -1;  // of it and what it has started
  int output = -1;
  std::string line;  // so far
  bool server = false;
  std::vector<std::string> words, environment;  // what it is started with
  int64_t starts = 0;
  Clock::time_point again = {};  // when it is started again; the clock's beginning: it is not
};

// The program that runs here, also once another file stands in its place.
class OwnProgram {
 public:
  OwnProgram() : file_(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) {
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (file_ < 0 || n <= 0) throw std::runtime_error(std::string("cannot open this program: ") + std::strerror(errno));
    path_.assign(path, size_t(n));
  }
  ~OwnProgram() { close(file_); }
  OwnProgram(const OwnProgram&) = delete;
  OwnProgram& operator=(const OwnProgram&) = delete;

  const std::string& path() const { return path_; }
  // What a child executes: the path while it leads here, because `top` shows its last part.
  std::string Executable() const {
    struct stat here, there;
    const bool in_place =
        fstat(file_, &here) == 0 && stat(path_.c_str(), &there) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino;
    return in_place ? path_ : "/proc/self/fd/" + std::to_string(file_);
  }

 private:
  int file_;
  std::string path_;
};

class Launcher {
 public:
  explicit Launcher(const Args& args)
      : args_(args),
        n_ps_(args.integer("--ps", 0, 0)),
        n_workers_(args.integer("-n", 1, 1)),
        ports_(args.get("--scheme", "grpc") == "grpc" ? FreePorts(n_ps_ + n_workers_) : std::vector<int>()) {
    sigset_t all;
    sigemptyset(&all);
    for (int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&all, s);
    sigprocmask(SIG_BLOCK, &all, &before_);
    signals_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) throw std::runtime_error(std::string("signalfd: ") + std::strerror(errno));
  }
  ~Launcher() {
    for (Child& c : children_) {
      if (c.pid > 0) kill(-c.group, SIGKILL), waitpid(c.pid, nullptr, 0);
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

  // Free ones, all bound at once, so that no two are the same. Whoever takes one before its server does makes that server fail.
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
    Child c{name, -1, -1, -1, "", server, words, more};
    for (char** e = environ; *e; ++e) {
      if (std::strncmp(*e, "TF_CONFIG=", 10) != 0 && std::strncmp(*e, "THALWEG_TARGET=", 15) != 0) c.environment.push_back(*e);
    }
    children_.push_back(std::move(c));
    Spawn(&children_.back());
  }

  // By fork rather than posix_spawn, which cannot let the child end with us, however we do.
  void Spawn(Child* c) {
    int ends[2], failure[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const std::string file = c->server ? own_.Executable() : c->words[0];
    const std::vector<char*> words = Pointers(c->words), environment = Pointers(c->environment);
    const pid_t self = getpid();
    int error = pipe2(failure, O_CLOEXEC) == 0 ? 0 : errno;
    const pid_t pid = error ? -1 : fork();
    if (pid == 0) {
      setpgid(0, 0);  // the terminal's Ctrl-C comes to us, and we pass it on
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
    if (pid > 0) {
      setpgid(pid, pid);  // whoever of us is first
      close(failure[1]);
      if (read(failure[0], &error, sizeof error) != sizeof error) error = 0;  // the file that it executes closes it
      close(failure[0]);
    }
    if (error) {
      close(ends[0]);
      if (pid > 0) waitpid(pid, nullptr, 0);
      throw std::runtime_error("cannot start '" + c->words[0] + "': " + std::strerror(error));
    }
    c->pid = c->group = pid;
    c->output = ends[0];
    c->again = {};
    ++c->starts;
  }

  static std::vector<char*> Pointers(const std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
  }

  bool Running() const {
    for (const Child& c : children_) {
      if (c.pid > 0 || c.output >= 0 || IsToStart(c)) return true;
    }
    return false;
  }

  static bool IsToStart(const Child& c) { return c.again != Clock::time_point(); }

  // Milliseconds until there is something to do of ourselves; -1: there is nothing.
  int Patience() const {
    const auto left = [](Clock::time_point until) {
      return int(std::max<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count(), 0));
    };
    int least = ending_ ? left(hard_at_) : -1;
    for (const Child& c : children_) {
      if (!IsToStart(c)) continue;
      least = least < 0 ? left(c.again) : std::min(least, left(c.again));
    }
    return least;
  }

  void StartAgain() {
    for (Child& c : children_) {
      if (!IsToStart(c) || Clock::now() < c.again) continue;
      if (c.output >= 0) Read(&c);
      if (c.output >= 0) close(c.output);  // somebody it started has it still
      Spawn(&c);
    }
  }

  // Waits for output, signals and ends of processes, and sees to them.
  void Turn() {
    std::vector<pollfd> all = {{signals_, POLLIN, 0}};
    for (const Child& c : children_) all.push_back({c.output, POLLIN, 0});
    poll(all.data(), all.size(), Patience());
    StartAgain();
    for (size_t i = 0; i < children_.size(); ++i) {
      if (all[i + 1].revents) Read(&children_[i]);
    }
    signalfd_siginfo s;
    while (read(signals_, &s, sizeof s) == sizeof s) {
      if (s.ssi_signo == SIGCHLD) continue;
      const bool ends = s.ssi_signo == SIGTERM || s.ssi_signo == SIGINT || s.ssi_signo == SIGHUP;
      if (ends) failed_ = true;
      if (ends) End(int(s.ssi_signo));
      for (const Child& c : children_) {
        if (!ends && c.pid > 0 && !c.server) kill(c.pid, int(s.ssi_signo));
      }
    }
    Reap();
    if (ending_ && Clock::now() >= hard_at_) EndHard();
  }

  void Read(Child* c) {
    char bytes[4096];
    ssize_t n;
    while ((n = read(c->output, bytes, sizeof bytes)) > 0) {
      for (char b : std::string_view(bytes, size_t(n))) {
        if (b == '\n') {
          Show(c);
        } else {
          c->line += b;
        }
      }
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
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
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      for (Child& c : children_) {
        if (c.pid != pid) continue;
        c.pid = -1;
        const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (good || ending_) continue;
        const std::string how = WIFSIGNALED(status) ? std::string("was killed by signal ") + strsignal(WTERMSIG(status))
                                                    : "ended with status " + std::to_string(WEXITSTATUS(status));
        if (c.starts <= args_.integer("--restart", 0, 0)) {
          std::fprintf(stderr, "thalweg launch: %s %s; starting it again\n", c.name.c_str(), how.c_str());
          c.again = Clock::now() + std::chrono::milliseconds(kPause);
          continue;
        }
        std::fprintf(stderr, "thalweg launch: %s %s; ending all\n", c.name.c_str(), how.c_str());
        failed_ = true;
        End(SIGTERM);
      }
    }
    bool clients = false;
    for (const Child& c : children_) clients = clients || (!c.server && (c.pid > 0 || IsToStart(c)));
    if (!clients && !ending_) End(SIGTERM);
  }

  void End(int signal) {
    if (!ending_) hard_at_ = Clock::now() + std::chrono::milliseconds(kPatience);
    ending_ = true;
    for (Child& c : children_) {
      c.again = {};
      if (c.pid > 0) kill(-c.group, signal);  // a shell would not pass it on to what it waits for
    }
  }

  // Who has not ended by now is made to, and what still holds output is not waited for; after a failure it ends, too.
  void EndHard() {
    hard_at_ = Clock::now() + std::chrono::milliseconds(kPatience);
    for (Child& c : children_) {
      if (c.pid > 0 || (failed_ && c.output >= 0)) kill(-c.group, SIGKILL);
      if (c.pid > 0 || c.output < 0) continue;
      Read(&c);
      if (c.output < 0) continue;
      if (!c.line.empty()) Show(&c);
      close(c.output);
      c.output = -1;
    }
  }

  const Args& args_;
  const int64_t n_ps_, n_workers_;
  const std::vector<int> ports_;  // of the parameter servers, then of the workers
  const OwnProgram own_;          // of the servers
  sigset_t before_;
  int signals_ = -1;
  bool ending_ = false, failed_ = false;
  Clock::time_point hard_at_;  // if it is ending
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
      "memory.\n",
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
