// Code in a sandbox reaches nothing outside of it: an op with native code tries ten ways out
// (escape.cc), once without a sandbox, in which case each succeeds, and once in each kind of
// sandbox, in which case each is refused. Also tests a client whose process ends.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/distributed/servers.h"

namespace thalweg::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

// THALWEG_TEST_TRUST: in a user namespace, every file seems to belong to another user.
tw::Runtime EscapeRuntime() {
  std::vector<const char*> options = {"threads=2"};
  if (std::getenv("THALWEG_TEST_TRUST")) options.push_back("trust_plugin_folders=true");
  tw::Runtime runtime = NewRuntime(options);
  runtime.load_plugin(ESCAPE);
  return runtime;
}

// Graphs of the plugin's op, one for each session.
class Tries {
 public:
  Tries(const tw::Runtime& runtime, std::vector<const char*> options) : graph_(runtime), session_(graph_, options) {}
  // Returns the op's result, see escape.cc.
  int64_t operator()(const std::string& what, int64_t n = 0, const std::string& path = "") {
    tw::Scope s(graph_);
    const tw_output in = s.placeholder(("n" + std::to_string(++count_)).c_str(), TW_INT64, {});
    const tw_output out = s.op("Escape", {in}, [&](tw_op* op) {
      tw_op_set_string(op, "what", what.data(), what.size());
      tw_op_set_string(op, "path", path.data(), path.size());
    });
    s.finish();
    return session_.run({{in, tw::Tensor(n)}}, {out})[0].values<int64_t>()[0];
  }
  tw::Graph& graph() { return graph_; }
  tw::Session& session() { return session_; }

 private:
  tw::Graph graph_;
  tw::Session session_;
  int count_ = 0;
};

// An idle process that may be signalled, traced and inspected.
pid_t Victim() {
  static const pid_t victim = [] {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::signal(SIGUSR1, SIG_IGN);
      for (;;) pause();
    }
    return child;
  }();
  return victim;
}

class SandboxTest : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    Victim();
#ifndef THALWEG_SANITIZED
    allowed_ = FailureOf([] {
      const tw::Runtime runtime = EscapeRuntime();
      const tw::Graph graph(runtime);
      const tw::Session session(graph, {"sandbox=on"});
    });
#endif
  }
  void SetUp() override {
#ifdef THALWEG_SANITIZED
    GTEST_SKIP() << "a sanitizer needs more of the system than a sandbox leaves";
#else
    if (allowed_.code == TW_FAILED_PRECONDITION) GTEST_SKIP() << allowed_.text;
    ASSERT_EQ(allowed_.code, TW_OK) << allowed_.text;
    const char* tmp = std::getenv("TMPDIR");
    folder_ = (tmp ? std::string(tmp) : std::string("/tmp")) + "/sandbox_test-" + std::to_string(getpid());
    fs::create_directories(folder_ + "/allowed");
    fs::permissions(folder_, fs::perms(0755));
    std::ofstream(folder_ + "/secret") << "secret";
    std::ofstream(folder_ + "/allowed/known") << "known";
    allow_ = "allow_files=" + folder_ + "/allowed";
#endif
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  bool served() const { return std::string(GetParam()) == "server"; }
  void MakeServer(std::vector<const char*> options = {}) {
    std::vector<const char*> all = {"sandbox=on", "sandbox_memory=512M", allow_.c_str()};
    all.insert(all.end(), options.begin(), options.end());
    address_ = NewAddress("sandbox" + std::to_string(getpid()) + "-" + std::to_string(++count_));
    const std::string cluster = "{\"worker\": [\"" + address_ + "\"]}";
    server_ = std::make_unique<tw::Server>(EscapeRuntime(), cluster, "worker", 0, all);
    target_ = "target=" + address_;
  }
  std::unique_ptr<Tries> Inside(std::vector<const char*> server = {}, std::vector<const char*> session = {}) {
    if (served()) {
      if (!server_) MakeServer(server);
      return std::make_unique<Tries>(client_, std::vector<const char*>{target_.c_str()});
    }
    std::vector<const char*> all = {"sandbox=on", "memory_limit=256M", allow_.c_str()};
    all.insert(all.end(), session.begin(), session.end());
    return std::make_unique<Tries>(client_, all);
  }

  static inline Failure allowed_;  // whether this machine allows a sandbox at all
  std::string folder_, allow_, address_, target_;
  int count_ = 0;
  tw::Runtime client_ = EscapeRuntime();
  Tries outside_{client_, {}};
  std::unique_ptr<tw::Server> server_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, SandboxTest, ::testing::Values("server", "session"), [](const auto& i) { return std::string(i.param); });

// ---- The ten ways ---

TEST_P(SandboxTest, FilesOutsideAreNotReadAndNoneIsWritten) {
  const std::string secret = folder_ + "/secret", known = folder_ + "/allowed/known";
  EXPECT_EQ(outside_("read", 0, secret), 0);
  EXPECT_EQ(outside_("write", 0, folder_ + "/allowed/new"), 0);
  EXPECT_EQ(outside_("make folder", 0, folder_ + "/allowed/folder"), 0);
  auto inside = Inside();
  EXPECT_EQ((*inside)("read", 0, known), 0);
  for (const std::string& path : {secret, std::string("/etc/passwd"), std::string("/proc/self/environ"), std::string("/proc/1/cmdline")}) {
    EXPECT_THAT((*inside)("read", 0, path), AnyOf(ENOENT, EACCES, EPERM)) << path;
  }
  for (const std::string& path :
       {known, folder_ + "/allowed/other", folder_ + "/other", std::string("/tmp/other"), std::string("/dev/shm/x")}) {
    EXPECT_THAT((*inside)("write", 0, path), AnyOf(EROFS, ENOENT, EACCES, EPERM)) << path;
  }
  EXPECT_THAT((*inside)("make folder", 0, folder_ + "/allowed/more"), AnyOf(EROFS, EACCES, EPERM));
  EXPECT_FALSE(fs::exists(folder_ + "/allowed/other") || fs::exists(folder_ + "/allowed/more"));
}

TEST_P(SandboxTest, SocketsAreNotMade) {
  const int port = FreePort();
  const int listener = ListenByHand("grpc:127.0.0.1:" + std::to_string(port));
  ASSERT_GE(listener, 0);
  EXPECT_EQ(outside_("connect", port), 0);
  EXPECT_EQ(outside_("unix socket"), 0);
  auto inside = Inside();
  EXPECT_EQ((*inside)("connect", port), EPERM);
  EXPECT_EQ((*inside)("unix socket"), EPERM);
  close(listener);
}

TEST_P(SandboxTest, ProcessesAreNotMade) {
  EXPECT_EQ(outside_("fork"), 0);
  EXPECT_EQ(outside_("exec"), 0);
  auto inside = Inside();
  EXPECT_EQ((*inside)("fork"), EPERM);
  EXPECT_EQ((*inside)("exec"), EPERM);
}

TEST_P(SandboxTest, OtherProcessesAreNotTraced) {
  EXPECT_EQ(outside_("trace", Victim()), 0);
  EXPECT_EQ(outside_("peek", Victim()), 0);
  auto inside = Inside();
  for (pid_t whom : {Victim(), getpid()}) {
    EXPECT_EQ((*inside)("trace", whom), EPERM);
    EXPECT_EQ((*inside)("peek", whom), EPERM);
  }
}

TEST_P(SandboxTest, OtherProcessesAreNotSignalled) {
  EXPECT_EQ(outside_("signal", Victim()), 0);
  auto inside = Inside();
  for (pid_t whom : {Victim(), getpid(), pid_t(0), pid_t(-1)}) EXPECT_EQ((*inside)("signal", whom), EPERM) << whom;
}

TEST_P(SandboxTest, MemoryEnds) {
  constexpr int64_t kMuch = 640 << 20;
  EXPECT_EQ(outside_("memory", kMuch), 0);
  EXPECT_EQ(outside_("shared memory", kMuch), 0);
  auto inside = Inside();
  EXPECT_EQ((*inside)("memory", kMuch), ENOMEM);
  EXPECT_EQ((*inside)("memory", 16 << 20), 0);
  EXPECT_EQ((*inside)("shared memory", 1 << 20), EPERM);
}

TEST_P(SandboxTest, ThreadsEnd) {
  EXPECT_EQ(outside_("threads", 150), 0);
  std::unique_ptr<Tries> inside;
  const Failure strict = FailureOf([&] { inside = Inside({"sandbox=strict"}, {"sandbox=strict"}); });
  if (strict.code == TW_FAILED_PRECONDITION) GTEST_SKIP() << strict.text;
  ASSERT_EQ(strict.code, TW_OK) << strict.text;
  EXPECT_EQ((*inside)("threads", 150), EAGAIN);
  EXPECT_EQ((*inside)("threads", 2), 0);
}

TEST_P(SandboxTest, DescriptorsEnd) {
  EXPECT_EQ(outside_("descriptors", 300), 0);
  auto inside = Inside();
  EXPECT_EQ((*inside)("descriptors", 300), EMFILE);
  EXPECT_EQ((*inside)("descriptors", 10), 0);
}

TEST_P(SandboxTest, DevicesAreNotThere) {
  EXPECT_EQ(outside_("device", 0, "/dev/zero"), 0);
  auto inside = Inside();
  for (const char* path : {"/dev/zero", "/dev/null", "/dev/kmsg", "/dev/mem", "/dev/nvidia0"}) {
    EXPECT_THAT((*inside)("device", 0, path), AnyOf(ENOENT, EACCES, EPERM)) << path;
  }
}

TEST_P(SandboxTest, TimeEnds) {
  EXPECT_EQ(outside_("time", 10), 0);
  auto inside = Inside({"sandbox_step_ms=1000"}, {"step_timeout_ms=1000"});
  EXPECT_EQ((*inside)("time", 10), 0);
  const int64_t process = (*inside)("pid");
  ASSERT_GT(process, 0);
  const Failure f = FailureOf([&] { (*inside)("time", 3'600'000); });
  EXPECT_EQ(f.code, TW_DEADLINE_EXCEEDED) << f.text;
  EXPECT_LT(f.seconds, 20);
  // If the session has a step timeout, that timeout comes first; then the sandbox ends the process.
  for (int i = 0; i < 2000 && kill(pid_t(process), 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_NE(kill(pid_t(process), 0), 0);
  // The next step begins in a new process; errors about the old process may come first.
  Failure after;
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i ? 10 : 0));
    after = FailureOf([&] { EXPECT_NE((*inside)("pid"), process); });
    if (after.code == TW_OK) break;
  }
  EXPECT_EQ(after.code, TW_OK) << after.text;
}

// ---- Other system calls ----

TEST_P(SandboxTest, CallsThatReachOutAreRefused) {
  auto inside = Inside();
  const struct {
    const char* name;
    long nr;
  } calls[] = {{"socket", SYS_socket},
               {"socketpair", SYS_socketpair},
               {"bind", SYS_bind},
               {"connect", SYS_connect},
               {"listen", SYS_listen},
               {"accept4", SYS_accept4},
               {"sendto", SYS_sendto},
               {"execve", SYS_execve},
               {"execveat", SYS_execveat},
               {"clone3", SYS_clone3},
               {"ptrace", SYS_ptrace},
               {"process_vm_readv", SYS_process_vm_readv},
               {"process_vm_writev", SYS_process_vm_writev},
               {"kcmp", SYS_kcmp},
               {"kill", SYS_kill},
               {"tkill", SYS_tkill},
               {"tgkill", SYS_tgkill},
               {"rt_sigqueueinfo", SYS_rt_sigqueueinfo},
               {"rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo},
               {"pidfd_open", SYS_pidfd_open},
               {"pidfd_send_signal", SYS_pidfd_send_signal},
               {"mount", SYS_mount},
               {"umount2", SYS_umount2},
               {"pivot_root", SYS_pivot_root},
               {"chroot", SYS_chroot},
               {"open_tree", SYS_open_tree},
               {"unshare", SYS_unshare},
               {"setns", SYS_setns},
               {"setuid", SYS_setuid},
               {"setresuid", SYS_setresuid},
               {"setgroups", SYS_setgroups},
               {"capset", SYS_capset},
               {"prctl", SYS_prctl},
               {"seccomp", SYS_seccomp},
               {"bpf", SYS_bpf},
               {"perf_event_open", SYS_perf_event_open},
               {"io_uring_setup", SYS_io_uring_setup},
               {"userfaultfd", SYS_userfaultfd},
               {"memfd_create", SYS_memfd_create},
               {"shmget", SYS_shmget},
               {"msgget", SYS_msgget},
               {"semget", SYS_semget},
               {"mq_open", SYS_mq_open},
               {"add_key", SYS_add_key},
               {"keyctl", SYS_keyctl},
               {"open_by_handle_at", SYS_open_by_handle_at},
               {"name_to_handle_at", SYS_name_to_handle_at},
               {"openat2", SYS_openat2},
               {"inotify_init1", SYS_inotify_init1},
               {"fanotify_init", SYS_fanotify_init},
               {"ftruncate", SYS_ftruncate},
               {"unlinkat", SYS_unlinkat},
               {"renameat2", SYS_renameat2},
               {"linkat", SYS_linkat},
               {"symlinkat", SYS_symlinkat},
               {"mknodat", SYS_mknodat},
               {"fchmodat", SYS_fchmodat},
               {"fchownat", SYS_fchownat},
               {"utimensat", SYS_utimensat},
               {"pipe2", SYS_pipe2},
               {"splice", SYS_splice},
               {"vmsplice", SYS_vmsplice},
               {"sendfile", SYS_sendfile},
               {"mlock", SYS_mlock},
               {"setpriority", SYS_setpriority},
               {"sched_setaffinity", SYS_sched_setaffinity},
               {"sched_setscheduler", SYS_sched_setscheduler},
               {"prlimit64", SYS_prlimit64},
               {"setrlimit", SYS_setrlimit},
               {"clock_settime", SYS_clock_settime},
               {"syslog", SYS_syslog},
               {"reboot", SYS_reboot},
               {"swapon", SYS_swapon},
               {"init_module", SYS_init_module},
               {"kexec_load", SYS_kexec_load},
               {"personality", SYS_personality},
               {"sethostname", SYS_sethostname},
               {"acct", SYS_acct},
               {"quotactl", SYS_quotactl}};
  for (const auto& call : calls) EXPECT_THAT((*inside)("call", call.nr), AnyOf(EPERM, ENOSYS, EROFS)) << call.name;
  EXPECT_EQ((*inside)("call", SYS_getpid), 0);  // proves that the test can tell the difference
}

// ---- Honest graphs, and ends ----

TEST_P(SandboxTest, GraphsComputeAsElsewhere) {
  auto inside = Inside();
  for (Tries* tries : {&outside_, inside.get()}) {
    tw::Scope s(tries->graph());
    const tw_output x = s.placeholder("x", TW_FLOAT, {-1, -1});
    const tw_output y = s.op("MatMul", {x, x});
    s.finish();
    std::vector<float> values(size_t(1000) * 1000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = float(i % 13);  // exact sums
    const tw::Tensor feed({1000, 1000}, values);
    static std::vector<float> expected;
    const std::vector<float> found = tries->session().run({{x, feed}}, {y})[0].values<float>();
    if (expected.empty()) expected = found;
    EXPECT_EQ(found, expected);
    if (tries == inside.get()) expected.clear();
  }
}

TEST_P(SandboxTest, ACrashIsToldAndTouchesNobodyElse) {
  auto inside = Inside(), other = Inside();
  const auto count = [](Tries* t) {
    tw::Scope s(t->graph());
    const tw_output v = s.variable("count", s.scalar(TW_FLOAT, 1));
    const tw_operation* begin = s.initializer();
    const tw_output read = s.read(v);
    s.finish();
    return std::pair(begin, read);
  };
  const auto [begin, read] = count(inside.get());
  const auto [other_begin, other_read] = count(other.get());
  inside->session().run({}, {}, {begin});
  other->session().run({}, {}, {other_begin});
  const Failure f = FailureOf([&] { (*inside)("crash"); });
  EXPECT_EQ(f.code, TW_UNAVAILABLE) << f.text;
  EXPECT_THAT(f.text, AllOf(HasSubstr("SIGSEGV"), HasSubstr("what it held is lost")));
  EXPECT_EQ(other->session().run({}, {other_read})[0].values<float>()[0], 1);
  // The variable is new, and has no value yet.
  Failure lost;
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i ? 10 : 0));
    lost = FailureOf([&] { inside->session().run({}, {read}); });
    if (lost.code == TW_FAILED_PRECONDITION) break;
  }
  EXPECT_EQ(lost.code, TW_FAILED_PRECONDITION) << lost.text;
  inside->session().run({}, {}, {begin});
  EXPECT_EQ(inside->session().run({}, {read})[0].values<float>()[0], 1);
}

TEST_P(SandboxTest, SessionsShareNothingAndTheirProcessesEndWithThem) {
  auto a = Inside(), b = Inside();
  const int64_t first = (*a)("pid"), second = (*b)("pid");
  EXPECT_NE(first, second);
  EXPECT_NE(first, getpid());
  EXPECT_EQ(kill(pid_t(first), 0), 0);
  a.reset();
  for (int i = 0; i < 2000 && kill(pid_t(first), 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_NE(kill(pid_t(first), 0), 0);
  EXPECT_EQ((*b)("pid"), second);
}

class SandboxedServer : public SandboxTest {};
INSTANTIATE_TEST_SUITE_P(Kinds, SandboxedServer, ::testing::Values("server"), [](const auto& i) { return std::string(i.param); });

TEST_P(SandboxedServer, NoMoreProcessesThanItMayHave) {
  MakeServer({"sandbox_processes=2"});
  auto a = Inside(), b = Inside();
  (*a)("pid"), (*b)("pid");
  auto c = Inside();
  const Failure f = FailureOf([&] { (*c)("pid"); });
  EXPECT_EQ(f.code, TW_RESOURCE_EXHAUSTED);
  EXPECT_THAT(f.text, HasSubstr("sandbox_processes"));
}

TEST_P(SandboxedServer, WhatConfinesItIsToldWhereItIsLookedFor) {
  MakeServer();
  const std::string status = tw::cluster_status(client_, {target_.c_str()});
  EXPECT_THAT(status, AllOf(HasSubstr("\"sandbox\":"), HasSubstr("system calls, processes, signals: filter"), HasSubstr("network: ")));
}

TEST_P(SandboxedServer, ASessionOverSeveralTasksIsRefused) {
  std::string cluster = "{\"worker\": [";
  for (int i = 0; i < 2; ++i) {
    address_ = NewAddress("several" + std::to_string(getpid()) + "-" + std::to_string(i));
    cluster += (i ? ", \"" : "\"") + address_ + "\"";
  }
  cluster += "]}";
  const tw::Server one(EscapeRuntime(), cluster, "worker", 0, {"sandbox=on"}), two(EscapeRuntime(), cluster, "worker", 1, {"sandbox=on"});
  tw::Graph graph(client_);
  tw::Scope s(graph);
  s.on(Servers::task(0).c_str());
  const tw_output x = s.placeholder("x", TW_FLOAT, {-1});
  const tw_output a = s.op("Sin", {x});
  s.on(Servers::task(1).c_str());
  const tw_output b = s.op("Cos", {a});
  s.finish();
  const std::string target = "target=" + address_;
  tw::Session session(graph, {target.c_str()});
  const Failure f = FailureOf([&] { session.run({{x, tw::Tensor({1}, std::vector<float>{1})}}, {b}); });
  EXPECT_EQ(f.code, TW_FAILED_PRECONDITION) << f.text;
  EXPECT_THAT(f.text, HasSubstr("serves sessions of one task"));
}

TEST_P(SandboxedServer, OptionsThatContradictItAreRefused) {
  const Failure trust = FailureOf([&] { MakeServer({"trust_clients=true"}); });
  EXPECT_EQ(trust.code, TW_INVALID_ARGUMENT) << trust.text;
  const Failure both = FailureOf([&] { Tries(client_, {"sandbox=on", "target=unix:x"}); });
  EXPECT_EQ(both.code, TW_INVALID_ARGUMENT) << both.text;
}

}  // namespace
}  // namespace thalweg::testing
