#include "tools/conformance/run.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace thalweg::conformance {
namespace {

constexpr int kAgain = 3;  // exit status of a child that leaves what is left to the next one
constexpr int kMostChildren = 1000;

// What the child was last at, readable after its death.
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

// How a child ended that did not finish its check.
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

// Reads messages until the child is silent for too long or its end of the pipe is closed.
class Listener {
 public:
  Listener(int fd, double limit) : fd_(fd), limit_(limit) {}
  enum State { kMessage, kEnd, kSilent };
  State Next(Told* out) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_);
    for (;;) {
      if (Take(out)) return kMessage;
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
      if (left <= 0) return kSilent;
      pollfd p{fd_, POLLIN, 0};
      if (poll(&p, 1, int(std::min<int64_t>(left, 1 << 30))) <= 0) continue;
      char bytes[4096];
      ssize_t n = read(fd_, bytes, sizeof bytes);
      if (n == 0) return kEnd;
      if (n > 0) buffer_.append(bytes, size_t(n));
    }
  }

 private:
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
  double limit_;
  std::string buffer_;
};

[[noreturn]] void BeChild(Run* run, const std::function<void(Run&)>& checks) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  dup2(2, 1);  // what a plugin prints is no part of the report
  checks(*run);
  _exit(0);
}

}  // namespace

void At(const std::string& what) {
  if (!Board()) return;
  const size_t n = std::min<size_t>(what.size(), 4000);
  std::memcpy(Board(), what.data(), n);
  Board()[n] = 0;
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

void Run::Check(int rule, const std::string& subject, const Body& body) {
  if (!Wants(rule) || next_++ < from_) return;
  At("");
  Tell('b', std::to_string(rule), subject);
  Outcome o;
  try {
    o = body();
  } catch (const std::exception& e) {
    o = Fail("a C++ exception came out of the plugin: ", e.what());
  }
  std::replace(o.why.begin(), o.why.end(), '\0', ' ');
  Tell('e', std::to_string(int(o.kind)), o.why);
  if (one_each_ || o.kind == Outcome::kFail) _exit(kAgain);
}

std::vector<Result> RunChildren(const Options& options, const std::string& host, bool one_each, const std::function<void(Run&)>& checks) {
  std::vector<Result> results;
  int from = 0;
  (void)Board();
  for (int children = 0; children < kMostChildren; ++children) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    const pid_t child = fork();
    if (child < 0) std::abort();
    if (child == 0) {
      close(ends[0]);
      Run run(options, ends[1], from, one_each);
      BeChild(&run, checks);
    }
    close(ends[1]);
    setpgid(child, child);
    Listener listener(ends[0], options.limit);
    bool open = false;  // a check has begun and not ended
    Listener::State state;
    for (Told told; (state = listener.Next(&told)) == Listener::kMessage;) {
      if (told.what == 'b') {
        results.push_back({std::stoi(told.a), host, told.b, {}});
        open = true;
      } else {
        results.back().outcome = {Outcome::Kind(std::stoi(told.a)), told.b};
        open = false;
        ++from;
      }
    }
    if (state == Listener::kSilent) kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    kill(-child, SIGKILL);  // what it may have left behind
    close(ends[0]);
    if (open) {
      std::string at = Board() && *Board() ? StrCat(", at ", static_cast<const char*>(Board())) : std::string();
      results.back().outcome =
          state == Listener::kSilent ? Fail("no end within ", options.limit, " seconds", at) : Outcome(Outcome::kFail, DeathText(status));
      ++from;
    } else if (state == Listener::kSilent || !(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kAgain))) {
      // Between two checks: while the plugin was brought in or sent away.
      results.push_back({7, host, "", Outcome(Outcome::kFail, DeathText(status))});
      return results;
    } else if (WEXITSTATUS(status) == 0) {
      return results;
    }
  }
  return results;
}

}  // namespace thalweg::conformance
