// The transport over UCX as a runtime uses it: within this machine, and as on a trusted network; who
// is let in; peers that say what no peer says.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/plugins/transport_host.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;
using namespace std::chrono_literals;

std::shared_ptr<Runtime> NewRuntime(bool trusted = false, bool shares = true, bool spins = false) {
  RuntimeOptions options;
  options.threads = 1;
  options.disabled_plugins = {"*opencl*", "*libucx.so"};  // of the plugins that are found; the test loads its own by name
  if (!shares) options.plugin_settings["plugin.org.thalweg.ucx.shared_memory"] = "0";
  if (trusted) options.plugin_settings["plugin.org.thalweg.ucx.trusted_network"] = "1";
  if (spins) options.plugin_settings["plugin.org.thalweg.ucx.spin_us"] = "1000000";
  auto runtime = Runtime::Create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  const Status loaded = (*runtime)->LoadPlugin(UCX_TRANSPORT);
  EXPECT_TRUE(loaded.ok()) << loaded;
  return *runtime;
}

Bytes Pattern(uint64_t n, uint32_t seed) {
  Bytes b(n);
  for (uint64_t i = 0; i < n; ++i) b[i] = char((i * 31 + seed * 97 + i / 4096) & 0xff);
  return b;
}
void WaitFor(const std::function<bool()>& what) {
  for (int i = 0; i < 4000 && !what(); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(what());
}
size_t Entries(const char* folder) {
  return size_t(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

// A folder with a token, as members of a cluster have one.
std::string TokenFolder(const std::string& name, const std::string& token, mode_t mode = 0600) {
  const std::string folder = testing::TempDir() + "ucx-" + std::to_string(getpid()) + name;
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/token") << token << "\n";
  EXPECT_EQ(chmod((folder + "/token").c_str(), mode), 0);
  return folder;
}

// `true`: at a TCP socket, by TCP, as between machines.
class UcxTest : public testing::TestWithParam<bool> {
 protected:
  uint32_t flags() const { return GetParam() ? uint32_t{TW_ENDPOINT_OPEN} : 0; }
  const char* place() const { return GetParam() ? "127.0.0.1:0" : ""; }
  void Meet() {
    ASSERT_TRUE(a_.opened.ok()) << a_.opened;
    const Status met = a_.Connect(b_.address), back = b_.Connect(a_.address);
    ASSERT_TRUE(met.ok()) << met;
    ASSERT_TRUE(back.ok()) << back;
  }
  std::shared_ptr<Runtime> runtime_ = NewRuntime(false, !GetParam());
  Host a_{runtime_, place(), "ucx", "", flags()}, b_{runtime_, place(), "ucx", "", flags()};
};
INSTANTIATE_TEST_SUITE_P(Ways, UcxTest, testing::Bool(), [](const auto& way) { return way.param ? "Network" : "SharedMemory"; });

TEST_P(UcxTest, CallsAreAnsweredWithHeadsAndBodiesOfAllSizes) {
  Meet();
  for (uint64_t n : {0, 1, 65535, 65536, 65537, 4 << 20}) {
    for (uint64_t head : {1, 4096}) {
      auto c = a_.Ask(b_.address, "e" + std::string(head - 1, 'x'), Pattern(n, 3));
      const Status s = c->Wait();
      ASSERT_TRUE(s.ok()) << s << " " << n;
      EXPECT_EQ(c->bytes, Pattern(n, 3));
      EXPECT_EQ(c->head, c->question);
    }
  }
  EXPECT_EQ(a_.Answer(b_.address, "p"), GetParam() ? "somebody on the network" : "a process of this user");
}

TEST_P(UcxTest, AnEndpointReachesItself) {
  ASSERT_TRUE(a_.Connect(a_.address).ok());
  auto c = a_.Ask(a_.address, "e", Pattern(100000, 1));
  EXPECT_TRUE(c->Wait().ok());
  EXPECT_EQ(c->bytes, Pattern(100000, 1));
}

TEST_P(UcxTest, SmallCallsPassLargeOnes) {
  Meet();
  Calls large;
  for (uint32_t i = 0; i < 4; ++i) large.push_back(a_.Ask(b_.address, "e", Bytes(24 << 20)));
  auto small = a_.Ask(b_.address, "e");
  EXPECT_TRUE(small->Wait().ok());
  for (auto& c : large) EXPECT_TRUE(c->Wait().ok());
  EXPECT_LT(small->ended, large.back()->ended);
}

// Whichever part of a body is in transit, the memory is free when the call is over, and the
// connection stays usable.
TEST_P(UcxTest, ACallMayBeCancelledAtAnyMoment) {
  Meet();
  int cancelled = 0;
  for (int i = 0; i < 40; ++i) {
    auto c = a_.Ask(b_.address, "e", Pattern(2 << 20, 1));
    std::this_thread::sleep_for(std::chrono::microseconds(i * 75));
    a_.Cancel(b_.address, *c);
    const Status s = c->Wait();
    EXPECT_TRUE(s.ok() || s.code() == Code::kCancelled) << s;
    EXPECT_TRUE(!s.ok() || c->bytes == Pattern(2 << 20, 1));
    cancelled += !s.ok();
    Bytes().swap(c->body);
    Bytes().swap(c->bytes);
    ASSERT_EQ(a_.Answer(b_.address, "e"), "e");
  }
  EXPECT_GT(cancelled, 0);  // the number depends on the machine
}

TEST_P(UcxTest, ABodyThatNobodyWantsIsDropped) {
  Meet();
  auto refused = a_.Ask(b_.address, "n", Bytes(8 << 20));
  EXPECT_TRUE(refused->Wait().ok());
  EXPECT_EQ(refused->head, StrCat(8 << 20, false));
  auto unwanted = a_.Ask(b_.address, "e", Bytes(8 << 20), false);
  EXPECT_TRUE(unwanted->Wait().ok());
  EXPECT_EQ(unwanted->head, "e");
  EXPECT_EQ(a_.Answer(b_.address, "e"), "e");
}

TEST_P(UcxTest, AClosedEndpointIsLostToItsPeers) {
  auto c = std::make_unique<Host>(runtime_, place(), "ucx", "", flags());
  const std::string address = c->address;
  ASSERT_TRUE(a_.Connect(address).ok());
  auto kept = a_.Ask(address, "k");
  WaitFor([&] { return c->kept() == 1; });
  c.reset();
  EXPECT_EQ(kept->Wait().code(), Code::kUnavailable);
  EXPECT_THAT(std::string(kept->Wait().message()), HasSubstr(address));
  EXPECT_EQ(a_.Ask(address, "e")->Wait().code(), Code::kUnavailable);
}

TEST_P(UcxTest, ManyThreadsUseOneEndpoint) {
  Meet();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 100; ++i) {
        auto c = a_.Ask(b_.address, StrCat("e", t, "/", i), Pattern(i * 500, t));
        auto cancelled = b_.Ask(a_.address, i % 2 ? "k" : "e", Pattern(i * 500, t));
        b_.Cancel(a_.address, *cancelled);
        EXPECT_TRUE(c->Wait().ok());
        EXPECT_EQ(c->head, c->question);
        EXPECT_EQ(c->bytes, Pattern(i * 500, t));
        (void)cancelled->Wait();
        EXPECT_TRUE(cancelled->over());
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

// A receiver may ask before or after the value is there.
TEST_P(UcxTest, AMessageMeetsItsReceiveInEitherOrder) {
  Meet();
  for (uint64_t n : {0, 1, 65537, 4 << 20}) {
    for (bool receive_first : {true, false}) {
      const std::string key = receive_first ? "x" : "y";
      std::shared_ptr<Call> in;
      if (receive_first) in = b_.Receive(a_.address, n, key);
      auto out = a_.Send(n, key, Pattern(n, 3), "float [2, 3]");
      if (!receive_first) in = b_.Receive(a_.address, n, key);
      EXPECT_TRUE(out->Wait().ok());
      EXPECT_TRUE(in->Wait().ok());
      EXPECT_EQ(in->bytes, Pattern(n, 3));
      EXPECT_TRUE(Mailbox::Result(&in->head).ok());
      EXPECT_EQ(in->head, "float [2, 3]");
    }
  }
}

// The threads sleep while nothing happens.
TEST_P(UcxTest, AnIdleConnectionTakesNoProcessor) {
  Meet();
  auto kept = a_.Ask(b_.address, "k");
  WaitFor([&] { return b_.kept() == 1; });
  std::this_thread::sleep_for(200ms);
  timespec before, after;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(1s);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  EXPECT_LT(double(after.tv_sec - before.tv_sec) + double(after.tv_nsec - before.tv_nsec) / 1e9, 0.1);
  b_.Release();
  EXPECT_TRUE(kept->Wait().ok());
}

TEST_P(UcxTest, EndpointsLeaveNothingBehind) {
  {
    Host c(runtime_, place(), "ucx", "", flags()), d(runtime_, place(), "ucx", "", flags());
    ASSERT_TRUE(c.Connect(d.address).ok());
    EXPECT_EQ(c.Answer(d.address, "e"), "e");  // UCX opens what it keeps for the process
  }
  const size_t files = Entries("/proc/self/fd"), threads = Entries("/proc/self/task");
  for (int i = 0; i < 10; ++i) {
    Host c(runtime_, place(), "ucx", "", flags()), d(runtime_, place(), "ucx", "", flags());
    ASSERT_TRUE(c.Connect(d.address).ok());
    ASSERT_TRUE(d.Connect(c.address).ok());
    EXPECT_EQ(c.Answer(d.address, "e"), "e");
    (void)d.Receive(c.address, 1, "never");
    (void)c.Ask(d.address, "k", Bytes(100000));
  }
  EXPECT_EQ(Entries("/proc/self/fd"), files);
  EXPECT_EQ(Entries("/proc/self/task"), threads);
}

// A thread that is lent does not sleep through a wake that came after its look at `over`.
TEST_P(UcxTest, AWakeBeforeTheSleepIsNotLost) {
  struct Asked {
    Host* host;
    bool once = false;
    static uint32_t Over(void* arg) {
      auto* asked = static_cast<Asked*>(arg);
      if (asked->once) return 1;
      asked->once = true;
      asked->host->Wake();
      return 0;
    }
  };
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 8; ++i) {
    Asked asked{&a_};
    EXPECT_EQ(a_.Poll(20'000'000'000, Asked::Over, &asked), 1u);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);  // a lost one takes a second
}

// A driver that always has work does not forget the sockets.
TEST_P(UcxTest, ABusyEndpointLetsOthersIn) {
  auto runtime = NewRuntime(false, !GetParam(), true);
  Host busy(runtime, place(), "ucx", "", flags());
  ASSERT_TRUE(a_.Connect(busy.address).ok());
  std::atomic<bool> over{false};
  std::thread asks([&] {
    while (!over) (void)a_.Ask(busy.address, "e")->Wait();
  });
  EXPECT_TRUE(b_.Connect(busy.address).ok());
  EXPECT_EQ(b_.Answer(busy.address, "e"), "e");
  over = true;
  asks.join();
}

// A forked child has copies of the sockets. They do not keep a connection that its parent ends.
TEST_P(UcxTest, ACloseIsSeenAlthoughAChildHasTheSockets) {
  auto c = std::make_unique<Host>(runtime_, place(), "ucx", "", flags());
  ASSERT_TRUE(a_.Connect(c->address).ok());
  auto kept = a_.Ask(c->address, "k");
  WaitFor([&] { return c->kept() == 1; });
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  c.reset();
  EXPECT_EQ(kept->Wait().code(), Code::kUnavailable);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// UCX handles signals from the time when it is loaded; the program gets its own handlers back.
TEST_P(UcxTest, SignalsAreLeftToTheProgram) {
  for (int signal : {SIGHUP, SIGTERM, SIGINT, SIGUSR1}) {
    struct sigaction now;
    ASSERT_EQ(sigaction(signal, nullptr, &now), 0);
    EXPECT_TRUE(now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) << signal;
  }
}

// ---- who is let in ----

TEST(UcxAdmission, OtherMachinesAreRefusedUnlessTheNetworkIsTrusted) {
  auto runtime = NewRuntime();
  for (const char* address : {"0.0.0.0:0", "10.1.2.3:4000", "[::]:0", "ps.example.org:4000"}) {
    const Host h(runtime, address, "ucx");
    EXPECT_EQ(h.opened.code(), Code::kPermissionDenied) << address;
    EXPECT_THAT(std::string(h.opened.message()), HasSubstr("neither encrypts nor authenticates"));
  }
  Host here(runtime, "", "ucx");
  EXPECT_EQ(here.Connect("10.1.2.3:4000").code(), Code::kPermissionDenied);
  const std::string folder = TokenFolder("a", std::string(64, 'a'));
  EXPECT_EQ(Host(runtime, "127.0.0.1:0", "ucx", folder).opened.code(), Code::kPermissionDenied);
  std::filesystem::remove_all(folder);
}

TEST(UcxAdmission, ATrustedNetworkNeedsTheTokenOfTheCluster) {
  auto runtime = NewRuntime(true);
  EXPECT_EQ(Host(runtime, "127.0.0.1:0", "ucx").opened.code(), Code::kPermissionDenied);
  const std::string one = TokenFolder("one", std::string(64, 'a')), other = TokenFolder("other", std::string(64, 'b')),
                    seen = TokenFolder("seen", std::string(64, 'a'), 0644), bad = TokenFolder("bad", "hello");
  for (const std::string& folder : {seen, bad, one + "/none"}) {
    const Host h(runtime, "127.0.0.1:0", "ucx", folder);
    EXPECT_EQ(h.opened.code(), Code::kInvalidArgument) << h.opened;
    EXPECT_THAT(std::string(h.opened.message()), HasSubstr(folder));
  }
  Host a(runtime, "127.0.0.1:0", "ucx", one), b(runtime, "127.0.0.1:0", "ucx", one), c(runtime, "127.0.0.1:0", "ucx", other);
  ASSERT_TRUE(a.opened.ok()) << a.opened;
  ASSERT_TRUE(a.Connect(b.address).ok());
  EXPECT_EQ(a.Answer(b.address, "e"), "e");
  ASSERT_TRUE(c.Connect(b.address).ok());
  EXPECT_EQ(c.Ask(b.address, "e")->Wait().code(), Code::kPermissionDenied);
  Host anybody(runtime, "127.0.0.1:0", "ucx", "", TW_ENDPOINT_OPEN);
  ASSERT_TRUE(anybody.Connect(b.address).ok());
  EXPECT_EQ(anybody.Ask(b.address, "e")->Wait().code(), Code::kPermissionDenied);
  EXPECT_EQ(a.Answer(b.address, "e"), "e");
  for (const std::string& folder : {one, other, seen, bad}) std::filesystem::remove_all(folder);
}

// A peer names the process whose memory this one reads. A stranger must not.
TEST(UcxAdmission, InTheOpenNoMemoryIsShared) {
  const auto segments = [] {
    std::ifstream maps("/proc/self/maps");
    int n = 0;
    for (std::string line; std::getline(maps, line);) n += line.find("ucx_shm") != line.npos;
    return n;
  };
  auto runtime = NewRuntime();
  for (bool open : {true, false}) {
    const int before = segments();
    Host a(runtime, open ? "127.0.0.1:0" : "", "ucx", "", open ? uint32_t{TW_ENDPOINT_OPEN} : 0),
        b(runtime, "", "ucx", "", open ? uint32_t{TW_ENDPOINT_OPEN} : 0);
    ASSERT_TRUE(b.Connect(a.address).ok());
    auto c = b.Ask(a.address, "e", Pattern(100000, 1));
    EXPECT_TRUE(c->Wait().ok());
    EXPECT_EQ(c->bytes, Pattern(100000, 1));
    EXPECT_EQ(segments() > before, !open);
  }
}

// Returns how many TCP sockets of this process listen where other machines reach them.
int ReachablePorts() {
  std::set<std::string> mine;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string to = std::filesystem::read_symlink(fd.path(), error).string();
    if (to.starts_with("socket:[")) mine.insert(to.substr(8, to.size() - 9));
  }
  int n = 0;
  std::ifstream sockets("/proc/self/net/tcp");
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream words(line);
    const std::vector<std::string> w{std::istream_iterator<std::string>(words), {}};
    if (w.size() > 9 && w[3] == "0A" && w[1].substr(6, 2) != "7F") n += int(mine.count(w[9]));
  }
  return n;
}

TEST(UcxAdmission, AnEndpointAtALoopbackAddressOpensNoPortToTheNetwork) {
  auto runtime = NewRuntime();
  Host a(runtime, "127.0.0.1:0", "ucx", "", TW_ENDPOINT_OPEN), calls(runtime, "", "ucx", "", TW_ENDPOINT_OPEN | TW_ENDPOINT_CALLS);
  Host b(runtime, "127.0.0.1:0", "ucx", "", TW_ENDPOINT_OPEN);
  ASSERT_TRUE(b.Connect(a.address).ok());
  EXPECT_EQ(b.Answer(a.address, "e"), "e");
  EXPECT_EQ(ReachablePorts(), 0);
  ASSERT_TRUE(calls.Connect(a.address).ok());  // it may use every interface, and finds this one
  EXPECT_EQ(calls.Answer(a.address, "e"), "e");
}

// Stands between a caller and the listener, and changes the last byte of the caller's second record or of the
// listener's. Its end is a UCX address.
class Relay {
 public:
  Relay(const std::string& listener, bool of_caller) : to_(listener), of_caller_(of_caller) {
    listens_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(listens_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(listen(listens_, 1), 0);
    EXPECT_EQ(getsockname(listens_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this] { Carry(); });
  }
  ~Relay() {
    thread_.join();
    close(listens_);
  }
  std::string address;

 private:
  static bool Pass(int from, int to, bool changes) {
    std::string all;
    for (size_t wanted = 8; all.size() < wanted;) {
      char c;
      if (recv(from, &c, 1, 0) != 1) return false;
      all += c;
      uint32_t bytes = 0;
      if (all.size() == 8) std::memcpy(&bytes, all.data(), sizeof bytes);
      wanted += bytes;
    }
    if (changes) all.back() = char(all.back() ^ 1);
    return send(to, all.data(), all.size(), MSG_NOSIGNAL) == ssize_t(all.size());
  }
  void Carry() {
    const int caller = accept(listens_, nullptr, nullptr), listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(uint16_t(std::stoi(to_.substr(to_.find(':') + 1))));
    EXPECT_EQ(connect(listener, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_TRUE(Pass(caller, listener, false));
    EXPECT_TRUE(Pass(listener, caller, false));
    EXPECT_TRUE(Pass(caller, listener, of_caller_));
    EXPECT_TRUE(Pass(listener, caller, !of_caller_));
    char c;
    (void)!recv(caller, &c, 1, 0);
    close(caller);
    close(listener);
  }
  const std::string to_;
  const bool of_caller_;
  int listens_ = -1;
  std::thread thread_;
};

TEST(UcxAdmission, NobodyPutsHisOwnAddressIntoAMeeting) {
  auto runtime = NewRuntime(true);
  const std::string folder = TokenFolder("relay", std::string(64, 'a'));
  for (bool of_caller : {true, false}) {
    Host a(runtime, "127.0.0.1:0", "ucx", folder), b(runtime, "127.0.0.1:0", "ucx", folder);
    Relay relay(b.address, of_caller);
    ASSERT_TRUE(a.Connect(relay.address).ok());
    const Status s = a.Ask(relay.address, "e")->Wait();
    EXPECT_EQ(s.code(), Code::kPermissionDenied) << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr("token"));
    a.ClosePeer(relay.address);
  }
  std::filesystem::remove_all(folder);
}

int Stranger(const std::string& address) {
  const std::string name = "thalweg.ucx." + address;
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  name.copy(at.sun_path + 1, sizeof at.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&at), socklen_t(sizeof at.sun_family + 1 + name.size())), 0);
  return fd;
}
bool IsClosed(int fd) {
  const timeval most = {5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  char c[1000];
  ssize_t n;
  while ((n = recv(fd, c, sizeof c, 0)) > 0) continue;
  return n == 0 || errno != EAGAIN;
}
std::string Record(uint32_t kind, const std::string& text, int64_t claims = -1) {
  const uint32_t head[] = {uint32_t(claims < 0 ? int64_t(text.size()) : claims), kind};
  return std::string(reinterpret_cast<const char*>(head), sizeof head) + text;
}

TEST(UcxAdmission, WhatNoPeerSaysEndsTheMeetingAndHurtsNobody) {
  auto runtime = NewRuntime();
  Host a(runtime, "", "ucx"), b(runtime, "", "ucx");
  ASSERT_TRUE(a.Connect(b.address).ok());
  const std::string hello = std::string("TWUCX001") + std::string(32, 'n');
  for (const std::string& said :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100000, '\xff'), Record(1, "", 0xffffffff), Record(1, hello.substr(0, 39)),
        Record(1, hello + "x"), Record(1, "TWUCX999" + std::string(32, 'n')), Record(2, std::string(100, 'j')), Record(7, ""),
        Record(1, hello) + Record(1, hello), Record(1, hello) + Record(2, std::string(48, 'p') + "no address"),
        Record(1, hello) + Record(2, "short"), Record(3, "no")}) {
    const int fd = Stranger(b.address);
    (void)send(fd, said.data(), said.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(IsClosed(fd)) << said.substr(0, 60);
    close(fd);
    EXPECT_EQ(a.Answer(b.address, "e"), "e");
  }
  // Those that wait do not keep others out for longer than the time of a meeting.
  std::vector<int> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(Stranger(b.address));
  Host c(runtime, "", "ucx");
  ASSERT_TRUE(c.Connect(b.address).ok());
  EXPECT_EQ(c.Answer(b.address, "e"), "e");
  for (int fd : silent) close(fd);
}

TEST(UcxAdmission, OtherUsersAreNotLetIn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  auto runtime = NewRuntime();
  Host a(runtime, "", "ucx");
  const std::string address = a.address;
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(2);
    const int fd = Stranger(address);
    const std::string said = Record(1, "TWUCX001" + std::string(32, 'n'));
    (void)send(fd, said.data(), said.size(), MSG_NOSIGNAL);
    char c;
    _exit(recv(fd, &c, 1, 0) <= 0 ? 0 : 1);  // not even an answer to the hello
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(UcxAdmission, SharedMemoryIsTheOnlyWayWithinAMachine) {
  const Host h(NewRuntime(false, false), "", "ucx");
  EXPECT_EQ(h.opened.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(h.opened.message()), HasSubstr("shared_memory"));
}

TEST(UcxAdmission, AddressesAreNamesOrHostAndPort) {
  auto runtime = NewRuntime();
  Host a(runtime, "", "ucx");
  EXPECT_EQ(a.Connect("thalweg-nobody").code(), Code::kUnavailable);
  EXPECT_EQ(a.Connect("").code(), Code::kInvalidArgument);
  EXPECT_EQ(a.Connect(std::string(107, 'x')).code(), Code::kInvalidArgument);
  const Host numbered(runtime, "127.0.0.1:0", "ucx");
  EXPECT_TRUE(numbered.opened.ok()) << numbered.opened;
  EXPECT_THAT(numbered.address, testing::StartsWith("127.0.0.1:"));
  const std::string port = numbered.address.substr(numbered.address.find(':'));
  ASSERT_TRUE(a.Connect("localhost" + port).ok());
  EXPECT_EQ(a.Answer("localhost" + port, "e"), "e");
  EXPECT_EQ(Host(runtime, numbered.address, "ucx").opened.code(), Code::kUnavailable);
}

}  // namespace
}  // namespace thalweg
