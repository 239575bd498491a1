#include "tools/conformance/run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace thalweg::conformance {
namespace {

constexpr int kAgain = 3;  // exit status of a child that could not report
constexpr int kMostChildren = 1000;

// The child's latest position, readable after its death.
char* Board() {
  static char* board = [] {
    void* p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
  }();
  return board;
}

void WriteAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) _exit(kAgain);
    if (n > 0) done += size_t(n);
  }
}

std::string SignalText(int signal) {
  const char* name = sigabbrev_np(signal);
  return StrCat("SIG", name ? name : std::to_string(signal).c_str(), " (", strsignal(signal), ")");
}

// Describes the end of a child that did not finish its check.
std::string DeathText(int status) {
  std::string at = Board() && *Board() ? StrCat(", at ", static_cast<const char*>(Board())) : std::string();
  if (WIFSIGNALED(status)) return StrCat("the process died of ", SignalText(WTERMSIG(status)), at);
  return StrCat("the process ended with status ", WEXITSTATUS(status), " in the middle of the check", at);
}

// One message of a child: a letter, then two texts.
struct Told {
  char what = 0;
  std::string a, b;
};

// Reads messages until the child is silent for too long, or gone.
class Listener {
 public:
  Listener(int fd, pid_t child, double limit) : fd_(fd), child_(child), limit_(limit) {}
  enum State { kMessage, kEnd, kSilent };
  State Next(Told* out) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_);
    while (!Take(out)) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
      if (left <= 0) return kSilent;
      constexpr int64_t kLook = 200;  // ms between looks for an ended child, because another process may hold the pipe open
      pollfd p{fd_, POLLIN, 0};
      if (poll(&p, 1, int(std::min(left, kLook))) <= 0) {
        if (Gone()) return kEnd;
        continue;
      }
      char bytes[4096];
      const ssize_t n = read(fd_, bytes, sizeof bytes);
      if (n == 0) return kEnd;
      if (n > 0) buffer_.append(bytes, size_t(n));
    }
    return kMessage;
  }

 private:
  bool Gone() const {
    siginfo_t info{};
    return waitid(P_PID, id_t(child_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child_;
  }
  bool Take(Told* out) {
    size_t first = buffer_.find('\0');
    size_t second = first == buffer_.npos ? first : buffer_.find('\0', first + 1);
    if (second == buffer_.npos) return false;
    out->what = buffer_[0];
    out->a = buffer_.substr(1, first - 1);
    out->b = buffer_.substr(first + 1, second - first - 1);
    buffer_.erase(0, second + 1);
    return true;
  }
  int fd_;
  pid_t child_;
  double limit_;
  std::string buffer_;
};

// Kills processes that a plugin forked and left behind; they become children of this process when
// their parent ends.
void EndStrays() {
  for (int tries = 0; tries < 10000; ++tries) {
    std::ifstream children(StrCat("/proc/self/task/", getpid(), "/children"));
    pid_t stray = 0;
    if (!(children >> stray)) return;
    kill(stray, SIGKILL);
    waitpid(stray, nullptr, 0);
  }
}

[[noreturn]] void BeChild(Run* run, const std::function<void(Run&)>& checks) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  dup2(2, 1);  // output of a plugin is no part of the report
  if (!run->options().folder.empty() && chdir(run->options().folder.c_str()) != 0) _exit(kAgain);
  checks(*run);
  run->End();
}

}  // namespace

void At(const std::string& what) {
  if (!Board()) return;
  const size_t n = std::min<size_t>(what.size(), 4000);
  std::memcpy(Board(), what.data(), n);
  Board()[n] = 0;
}

namespace {

// Cases that the current check requested, by op.
std::map<std::string, std::string>& CasesWanted() {
  static std::map<std::string, std::string> wants;
  return wants;
}

}  // namespace

void WantCase(const std::string& op, const std::string& json) { CasesWanted()[op] = json; }

Run::Run(const Options& options, int pipe, int from, bool one_each)
    : options_(options), pipe_(pipe), from_(from), process_(getpid()), one_each_(one_each) {}

void Run::EndCopies() const {
  if (getpid() != process_) _exit(kAgain);
}

void Run::End() const {
  EndCopies();
  Tell('d', "", "");
  _exit(0);
}

bool Run::Wants(int rule) const {
  if (rule / 100 > options_.level) return false;
  return options_.rules.empty() || std::find(options_.rules.begin(), options_.rules.end(), rule) != options_.rules.end();
}

void Run::Tell(char what, const std::string& a, const std::string& b) const {
  std::string text(1, what);
  text += a;
  text += '\0';
  text += b;
  text += '\0';
  WriteAll(pipe_, text);
}

namespace {

std::string Plain(std::string text) {
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

}  // namespace

void Run::Check(int rule, const std::string& subject, const Body& body) {
  EndCopies();
  if (!Wants(rule) || next_++ < from_) return;
  At("");
  CasesWanted().clear();
  Tell('b', std::to_string(rule), subject);
  Outcome o;
  try {
    o = body();
  } catch (const std::exception& e) {
    o = Fail("a C++ exception came out of the plugin: ", e.what());
  }
  EndCopies();
  for (const Missed& m : o.missed) Tell('m', Plain(m.what), Plain(m.why));
  if (o.kind == Outcome::kSkip) {
    for (const auto& [op, json] : CasesWanted()) Tell('w', Plain(op), Plain(json));
  }
  if (o.of) Tell('c', StrCat(o.ran, " ", o.of), o.unit);
  Tell('e', std::to_string(int(o.kind)), Plain(o.why));
  if (!one_each_ && o.kind != Outcome::kFail) return;
  Tell('n', "", "");
  _exit(0);
}

namespace {

// The end of one child.
struct Ended {
  Listener::State state = Listener::kEnd;
  char last = 0;      // 'd': all checks are done; 'n': the next child continues
  bool open = false;  // a check has begun and not ended
  int status = 0;     // of the child, as waitpid returns it
};

Ended Listen(int fd, pid_t child, double limit, const std::string& host, int* from, std::vector<Result>* results) {
  Ended e;
  Listener listener(fd, child, limit);
  for (Told told; e.last == 0 && (e.state = listener.Next(&told)) == Listener::kMessage;) {
    if (told.what == 'b') {
      results->push_back({std::stoi(told.a), host, told.b, {}, {}});
      e.open = true;
    } else if (told.what == 'm') {
      results->back().outcome.missed.push_back({told.a, told.b});
    } else if (told.what == 'w') {
      results->back().wanted[told.a] = told.b;
    } else if (told.what == 'c') {
      Outcome& o = results->back().outcome;
      o.unit = told.b;
      o.ran = std::stoll(told.a);
      o.of = std::stoll(told.a.substr(told.a.find(' ')));
    } else if (told.what == 'e') {
      results->back().outcome.kind = Outcome::Kind(std::stoi(told.a));
      results->back().outcome.why = told.b;
      e.open = false;
      ++*from;
    } else {
      e.last = told.what;
    }
  }
  if (e.state == Listener::kSilent) kill(-child, SIGKILL);
  while (waitpid(child, &e.status, 0) < 0 && errno == EINTR) {
  }
  kill(-child, SIGKILL);  // processes that the child left behind
  EndStrays();
  return e;
}

Outcome HowItEnded(const Ended& e, double limit) {
  if (e.state != Listener::kSilent) return Fail(DeathText(e.status));
  return Fail("no end within ", limit, " seconds", Board() && *Board() ? StrCat(", at ", static_cast<const char*>(Board())) : "");
}

}  // namespace

std::vector<Result> RunChildren(const Options& options, const std::string& host, bool one_each, const std::function<void(Run&)>& checks) {
  std::vector<Result> results;
  constexpr int kPatience = 2;  // number of hanging checks after which the rest is not tried
  int from = 0, hung = 0;
  (void)Board();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int children = 0; children < kMostChildren; ++children) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    const pid_t child = fork();
    if (child < 0) std::abort();
    if (child == 0) {
      close(ends[0]);
      Run run(options, ends[1], from, one_each);
      BeChild(&run, checks);
    }
    close(ends[1]);
    setpgid(child, child);
    const Ended e = Listen(ends[0], child, options.limit, host, &from, &results);
    close(ends[0]);
    if (access(options.path.c_str(), R_OK) != 0) {
      results.push_back({1, host, "", Fail("the file is gone: the plugin, or somebody else, has removed it"), {}});
      return results;
    }
    if (e.last == 'd') return results;
    if (e.last == 'n') continue;
    if (!e.open) {  // between two checks, while the plugin was loaded or shut down
      results.push_back({7, host, "", HowItEnded(e, options.limit), {}});
      return results;
    }
    results.back().outcome = HowItEnded(e, options.limit);
    ++from;
    if (e.state == Listener::kSilent && ++hung == kPatience) {
      results.back().outcome.why += "; what follows is not tried";
      return results;
    }
  }
  return results;
}

}  // namespace thalweg::conformance
