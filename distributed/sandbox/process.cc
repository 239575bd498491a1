#include "distributed/sandbox/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>

#include "distributed/sandbox/packet_ring.h"
#include "framework/base/machine_memory.h"
#include "framework/files/file_system.h"
#include "framework/registry/own_file.h"

namespace thalweg::distributed {
namespace {

constexpr std::chrono::seconds kPatience{10};  // in all, from its start until it serves
constexpr size_t kMostText = 1 << 20;
constexpr int kConnection = 3, kConversation = 4, kMemory = 5;  // fixed numbers that the helper expects
constexpr uint64_t kDescriptors = 256;
constexpr uint64_t kOwnMemory = 64 << 20;  // of the group, beyond the limit: code, which is shared, and kernel memory

std::string SystemText(int error) { return std::generic_category().message(error); }

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

// Passes on only the variables that locate libraries and configure sanitizers: the others may be
// secret.
std::vector<std::string> Environment() {
  std::vector<std::string> all = {"THALWEG_PLUGIN_PATH=only:"};
  for (char** v = environ; *v; ++v) {
    const std::string_view text = *v;
    for (std::string_view name : {"LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS=", "OMP_NUM_THREADS="}) {
      if (text.starts_with(name)) all.emplace_back(text);
    }
  }
  return all;
}

void AddFolders(std::string_view list, std::vector<std::string>* to) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(':'), list.size());
    if (list[0] == '/') to->emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

// Returns the plugins for the host device that this runtime has accepted. Other devices need files
// and system calls that a sandbox does not have, and a sandbox has one transport.
std::vector<std::string> UsablePlugins(Runtime* runtime) {
  const auto host = runtime->host_device();
  std::vector<std::string> files;
  for (const PluginRecord& r : runtime->plugins()) {
    if ((r.state != PluginRecord::kLoaded && r.state != PluginRecord::kKnown) || !r.path.ends_with(".so")) continue;
    const bool other_device =
        std::any_of(r.devices.begin(), r.devices.end(), [&](const std::string& kind) { return !host.ok() || (*host)->kind() != kind; });
    const bool talks = std::any_of(r.roles.begin(), r.roles.end(), [](const std::string& role) {
      return role.starts_with("transport") || role.starts_with("membership") || role.starts_with("collective");
    });
    if (!other_device && !talks) files.push_back(r.path);
  }
  return files;
}

class SettingsText {
 public:
  void Add(std::string_view key, std::string_view value) { text += StrCat(key, "=", value) + '\0'; }
  std::string text;
};

std::string SettingsFor(const SandboxSettings& settings, Runtime* runtime) {
  namespace fs = std::filesystem;
  SettingsText s;
#ifndef THALWEG_SANITIZED  // whose own memory is more than any limit
  s.Add("memory", StrCat(settings.memory));
#endif
  s.Add("threads", StrCat(settings.threads));
  s.Add("descriptors", StrCat(kDescriptors));
  std::vector<std::string> read = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"};
  if (const char* more = secure_getenv("LD_LIBRARY_PATH")) AddFolders(more, &read);
  read.push_back(fs::path(OwnFile()).parent_path().string());
  std::string plugins;
  for (const std::string& file : UsablePlugins(runtime)) {
    std::error_code error;
    const fs::path real = fs::canonical(file, error);
    if (error) continue;
    plugins += StrCat(plugins.empty() ? "" : ":", real.string());
    read.push_back(real.parent_path().string());
  }
  if (!settings.allow_files.empty()) {
    std::error_code error;
    const fs::path real = fs::canonical(settings.allow_files, error);
    const std::string folder = error ? settings.allow_files : real.string();
    read.push_back(folder);
    s.Add("allow_files", folder);
  }
  for (const std::string& path : read) s.Add("read", path);
  const RuntimeOptions& o = runtime->options();
  s.Add("option", StrCat("threads=", o.threads));
  s.Add("option", StrCat("plugin_path=", plugins));
  // The runtime that made the list has checked their owners and contents.
  for (const char* fixed : {"plugin_probe=trust", "plugin_cache=off", "trust_plugin_folders=true"}) s.Add("option", fixed);
  for (const auto& [key, value] : o.plugin_settings) s.Add("option", StrCat(key, "=", value));
  return s.text;
}

void SendAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // the process is gone already; its own message tells why
    text.remove_prefix(size_t(n));
  }
  shutdown(fd, SHUT_WR);
}

std::string HelperBesideUs() {
  const std::filesystem::path self = OwnFile();
  return self.empty() ? "" : (self.parent_path() / "thalweg" / "thalweg-sandbox").string();
}

}  // namespace

SandboxSettings Complete(SandboxSettings s) {
  if (s.memory == 0) s.memory = MachineMemory() / 4;
  return s;
}

StatusOr<std::unique_ptr<SandboxProcess>> SandboxProcess::Start(const SandboxSettings& settings, Runtime* runtime) {
  const std::string helper = HelperBesideUs();
  if (helper.empty() || access(helper.c_str(), X_OK) != 0) {
    return NotFound("sandbox: the helper '", helper.empty() ? "thalweg-sandbox" : helper,
                    "' is not there; install it beside libthalweg.so, in the folder thalweg");
  }
  const std::string text = SettingsFor(settings, runtime);
  std::unique_ptr<SandboxProcess> p(new SandboxProcess);
  Descriptor conversation;
  RETURN_IF_ERROR(p->Spawn(helper, &conversation.fd));
  // The process joins its group before it is told anything, so that all its memory counts.
  p->group_.Take(p->pid_, settings.memory + kOwnMemory, settings.threads);
  SendAll(conversation.fd, text);
  RETURN_IF_ERROR(p->Listen(conversation.fd, settings));
  return p;
}

Status SandboxProcess::Spawn(const std::string& helper, int* conversation) {
  int pipe_ends[2], talk_ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pipe_ends) != 0) {
    return ResourceExhausted("sandbox: no socket: ", SystemText(errno), "; raise the limit on open files");
  }
  Descriptor far{pipe_ends[1]};
  socket_ = pipe_ends[0];
  ASSIGN_OR_RETURN(memory_, RingPair::Make());
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk_ends) != 0) {
    return ResourceExhausted("sandbox: no socket: ", SystemText(errno), "; raise the limit on open files");
  }
  Descriptor far_talk{talk_ends[1]};
  *conversation = talk_ends[0];
  // Moves the descriptors away from the numbers that the helper expects, and from each other.
  Descriptor a{fcntl(far.fd, F_DUPFD_CLOEXEC, 10)}, b{fcntl(far_talk.fd, F_DUPFD_CLOEXEC, 10)};
  Descriptor c{fcntl(memory_, F_DUPFD_CLOEXEC, 10)};
  if (a.fd < 0 || b.fd < 0 || c.fd < 0)
    return ResourceExhausted("sandbox: no descriptor: ", SystemText(errno), "; raise the limit on open files");
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, a.fd, kConnection);
  posix_spawn_file_actions_adddup2(&actions, b.fd, kConversation);
  posix_spawn_file_actions_adddup2(&actions, c.fd, kMemory);
  for (int fd : {0, 1, 2}) posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, kMemory + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  std::vector<std::string> environment = Environment();
  std::vector<char*> variables;
  for (std::string& v : environment) variables.push_back(v.data());
  variables.push_back(nullptr);
  char* argv[] = {const_cast<char*>(helper.c_str()), nullptr};
  const int error = posix_spawn(&pid_, helper.c_str(), &actions, &attributes, argv, variables.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return Status();
  pid_ = -1;
  return Internal("sandbox: the helper '", helper, "' cannot be started: ", SystemText(error));
}

Status SandboxProcess::Listen(int conversation, const SandboxSettings& settings) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::map<std::string, bool> has;
  for (std::string text;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd ready = {conversation, POLLIN, 0};
    const int n = left.count() > 0 ? poll(&ready, 1, int(left.count())) : 0;
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) {
      Reap();
      return Error(absl::StatusCode::kDeadlineExceeded, "sandbox: its process was not ready after ", kPatience.count(),
                   " s, and was ended");
    }
    char block[4096];
    const ssize_t got = read(conversation, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || text.size() > kMostText) return Internal("sandbox: its process ", Reap(), " before it was ready");
    text.append(block, size_t(got));
    for (size_t end; (end = text.find('\n')) != text.npos; text.erase(0, end + 1)) {
      const std::string line = text.substr(0, end);
      if (line.starts_with("has ")) has[line.substr(4)] = true;
      if (line.starts_with("failed ")) return FailedPrecondition("sandbox: ", line.substr(7));
      if (line == "ready") return Judge(has, settings);
    }
  }
}

// Fails closed: without a system call filter, or with all files visible, it is no sandbox.
Status SandboxProcess::Judge(const std::map<std::string, bool>& has, const SandboxSettings& settings) {
  const auto in = [&](const char* what) { return has.contains(what); };
  std::string missing;
  const auto part = [&](std::string_view what, std::initializer_list<std::pair<bool, std::string_view>> by) {
    std::string how;
    for (const auto& [is, name] : by) {
      if (is) how += StrCat(how.empty() ? "" : ", ", name);
    }
    if (how.empty()) missing += StrCat(missing.empty() ? "" : ", ", what);
    in_force_ += StrCat(in_force_.empty() ? "" : "; ", what, ": ", how.empty() ? "not limited" : how);
    return !how.empty();
  };
  const bool calls = part("system calls, processes, signals", {{in("filter"), "filter"}});
  const bool network = part("network", {{in("network"), "namespace"}, {in("filter"), "filter"}});
  const bool files = part("files", {{in("view"), "own view"}, {in("landlock"), "Landlock"}});
  const bool memory = part("memory", {{group_.memory(), "control group"}, {in("memory"), "limit of the process"}});
  const bool threads = part("threads", {{group_.threads(), "control group"}, {in("threads"), "limit of the user"}});
  part("descriptors", {{in("descriptors"), "limit of the process"}});
  if (calls && network && files && (!settings.strict || (memory && threads))) return Status();
  return FailedPrecondition("sandbox: this machine does not let it limit ", missing, "; in force would be: ", in_force_,
                            "; allow user namespaces, Landlock, seccomp and control groups, as far as they are missing");
}

SandboxProcess::~SandboxProcess() {
  Reap();
  for (int fd : {socket_, memory_}) {
    if (fd >= 0) close(fd);
  }
}

bool SandboxProcess::alive() {
  std::lock_guard lock(mu_);
  siginfo_t info = {};
  return pid_ > 0 && waitid(P_PID, id_t(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

void SandboxProcess::Kill() {
  std::lock_guard lock(mu_);
  if (pid_ > 0) kill(pid_, SIGKILL);
}

std::string SandboxProcess::Reap() {
  std::lock_guard lock(mu_);
  if (pid_ <= 0) return end_;
  kill(pid_, SIGKILL);  // has no effect on a process that has ended
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno == EINTR) continue;
    status = -1;  // the program reaps all its children itself
    break;
  }
  pid_ = -1;
  if (status == -1) {
    end_ = "has ended";
  } else if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    end_ = StrCat("was ended by signal ", WTERMSIG(status), name ? StrCat(" (SIG", name, ")") : std::string());
  } else {
    end_ = StrCat("has ended with exit status ", WEXITSTATUS(status));
  }
  return end_;
}

}  // namespace thalweg::distributed
