#include "framework/registry/plugin_probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>

namespace thalweg {
namespace {

constexpr size_t kMostText = 64 << 20;  // of a manifest; more is a plugin that writes into the conversation

std::string SystemText(int error) { return std::generic_category().message(error); }

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  ~Socket() { Close(); }
  int fd() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

// The program's own variables. Of a sanitized build without what it was started with: the helper has a sanitizer of its own, and no two fit
// into one process.
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

// How the helper is started: on the far end of the conversation, with nothing else of the program's open, and no signals blocked or
// ignored.
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
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
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

void SendSettings(int fd, const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += EscapeLine(StrCat(key, "=", value)) + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t n = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // it is gone already; what it said tells why
    rest.remove_prefix(size_t(n));
  }
  shutdown(fd, SHUT_WR);
}

enum class Heard { kAll, kSilence, kTooMuch };

// Everything up to the end of the conversation. Each word of the helper's begins the patience anew.
Heard Listen(int fd, std::chrono::milliseconds patience, std::string* text) {
  char block[4096];
  for (;;) {
    pollfd ready = {fd, POLLIN, 0};
    const int n = poll(&ready, 1, int(patience.count()));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) return Heard::kSilence;
    const ssize_t got = read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Heard::kAll;
    text->append(block, size_t(got));
    if (text->size() > kMostText) return Heard::kTooMuch;
  }
}

// How it ended, in words; empty if that cannot be told, where the program reaps all its children itself.
std::string Reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return "";
  }
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return StrCat("was ended by signal ", WTERMSIG(status), name ? StrCat(" (SIG", name, ")") : std::string());
  }
  return StrCat("ended the process with exit status ", WEXITSTATUS(status));
}

struct Answer {
  std::string stage;  // the last that began
  bool manifest = false, refused = false, over = false;
  PluginManifest m;
  uint32_t code = 0;
};

// Takes up to the first thing that is not as it should be.
Answer Parse(std::string_view text, PluginRecord* record) {
  Answer a;
  for (std::string_view word, rest; !a.over && TakeLine(&text, &word, &rest);) {
    if (word == "stage") {
      a.stage = rest;
    } else if (word == "manifest") {
      a.manifest = TakeManifest(&text, &a.m);
      if (!a.manifest) break;
    } else if (word == "refused") {
      a.refused = std::from_chars(rest.data(), rest.data() + rest.size(), a.code).ec == std::errc() && a.code > 0;
    } else if (word == "over") {
      a.over = true;
    } else {
      std::string* field = word == "id"        ? &record->id
                           : word == "version" ? &record->version
                           : word == "build"   ? &record->build
                           : word == "reason"  ? &record->reason
                           : word == "fix"     ? &record->fix
                                               : nullptr;
      if (!field || !UnescapeLine(rest, field)) break;
    }
  }
  return a;
}

std::string StageText(const std::string& stage) {
  if (stage == "dlopen") return "while it was opened (dlopen)";
  if (stage == "query") return "in tw_plugin_query_v0";
  return StrCat("in its ", stage);
}

ProbeResult NoHelper(const Status& why) { return {ProbeOutcome::kNoHelper, {}, why}; }

ProbeResult Judge(const PluginProbeRequest& request, Heard heard, const std::string& text, const std::string& end, PluginRecord* record) {
  Answer a = Parse(text, record);
  if (a.stage.empty()) return NoHelper(Internal("the helper '", request.helper, "' ", end.empty() ? "said nothing" : end));
  if (a.over && a.manifest) {
    record->reason.clear();
    record->fix.clear();
    return {ProbeOutcome::kManifest, std::move(a.m), Status()};
  }
  if (a.over && a.refused) return {ProbeOutcome::kRefused, {}, Status(absl::StatusCode(a.code), AbslView(record->reason))};
  std::string what = heard == Heard::kSilence   ? StrCat("was silent for ", request.patience.count(), " ms")
                     : heard == Heard::kTooMuch ? "wrote into the conversation of the helper"
                     : end.empty()              ? "ended the process"
                                                : end;
  Status why = Error(heard == Heard::kSilence ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kAborted, "it ", what, " ",
                     StageText(a.stage), ", when it was looked at");
  Refuse(record, PluginRecord::kQuarantined, why, "").IgnoreError();
  return {ProbeOutcome::kBroken, {}, why};
}

}  // namespace

ProbeResult ProbePlugin(const PluginProbeRequest& request, PluginRecord* record) {
  if (request.helper.empty() || access(request.helper.c_str(), X_OK) != 0) {
    return NoHelper(
        NotFound("the helper '", request.helper.empty() ? std::string_view("thalweg-probe") : request.helper, "' is not there"));
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return NoHelper(Internal("no socket: ", SystemText(errno)));
  Socket near(ends[0]), far(ends[1]);
  pid_t pid = 0;
  if (int error = SpawnSetting(far.fd()).Start(request.helper, request.path, &pid)) {
    return NoHelper(Internal("the helper '", request.helper, "' cannot be started: ", SystemText(error)));
  }
  far.Close();
  SendSettings(near.fd(), request.settings);
  std::string text;
  Heard heard = Heard::kTooMuch;
  try {
    heard = Listen(near.fd(), request.patience, &text);
  } catch (...) {
    kill(pid, SIGKILL);
    Reap(pid);
    throw;
  }
  if (heard != Heard::kAll) kill(pid, SIGKILL);
  return Judge(request, heard, text, Reap(pid), record);
}

std::string RefusalText(const PluginRecord& record, const Status& why) {
  std::string out;
  const std::pair<const char*, const std::string*> lines[] = {
      {"id", &record.id}, {"version", &record.version}, {"build", &record.build}, {"reason", &record.reason}, {"fix", &record.fix}};
  for (const auto& [word, text] : lines) out += StrCat(word, " ", EscapeLine(*text), "\n");
  return StrCat(out, "refused ", int(why.code()), "\n");
}

}  // namespace thalweg
