// The example transport as a runtime uses it: within a process, between two, and with peers that
// die, are slow, or send invalid data.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/plugins/transport_host.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;
using namespace std::chrono_literals;

std::shared_ptr<Runtime> NewRuntime() {
  RuntimeOptions options;
  options.threads = 1;
  options.disabled_plugins = {"*opencl*"};
  auto runtime = Runtime::Create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  Status loaded = (*runtime)->LoadPlugin(SOCKET_TRANSPORT);
  EXPECT_TRUE(loaded.ok()) << loaded;
  return *runtime;
}

Bytes Pattern(uint64_t n, uint32_t seed) {
  Bytes b(n);
  for (uint64_t i = 0; i < n; ++i) b[i] = char((i * 31 + seed * 97 + i / 4096) & 0xff);
  return b;
}
uint64_t SizeOf(uint32_t i) {
  const uint64_t sizes[] = {0, 1, 100, 4096, 65535, 65536, 65537, 300000};
  return i % 200 == 7 ? 4 << 20 : sizes[i % 8];
}
void WaitFor(const std::function<bool()>& what) {
  for (int i = 0; i < 4000 && !what(); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(what());
}

class SocketTransportTest : public testing::Test {
 protected:
  std::shared_ptr<Runtime> runtime_ = NewRuntime();
  Host a_{runtime_}, b_{runtime_};
  void Meet() {
    ASSERT_TRUE(a_.opened.ok()) << a_.opened;
    ASSERT_TRUE(a_.Connect(b_.address).ok());
    ASSERT_TRUE(b_.Connect(a_.address).ok());
  }
};

TEST_F(SocketTransportTest, CallsAreAnsweredWithHeadsAndBodiesOfAllSizes) {
  Meet();
  for (uint64_t n : {0, 1, 65535, 65536, 65537, 4 << 20}) {
    for (uint64_t head : {1, 4096}) {
      auto c = a_.Ask(b_.address, "e" + std::string(head - 1, 'x'), Pattern(n, 3));
      ASSERT_TRUE(c->Wait().ok());
      EXPECT_EQ(c->bytes, Pattern(n, 3));
      EXPECT_EQ(c->head, c->question);
    }
  }
  EXPECT_EQ(a_.Answer(b_.address, "p"), "a process of this user");
}

TEST_F(SocketTransportTest, AnEndpointReachesItself) {
  ASSERT_TRUE(a_.Connect(a_.address).ok());
  auto c = a_.Ask(a_.address, "e", Pattern(100000, 1));
  EXPECT_TRUE(c->Wait().ok());
  EXPECT_EQ(c->bytes, Pattern(100000, 1));
}

TEST_F(SocketTransportTest, AnswersComeInAnyOrder) {
  Meet();
  Calls kept;
  for (uint32_t i = 0; i < 1000; ++i) kept.push_back(a_.Ask(b_.address, "k", Pattern(i, i)));
  EXPECT_EQ(a_.Answer(b_.address, "e"), "e");
  WaitFor([&] { return b_.kept() == 1000; });
  EXPECT_TRUE(std::none_of(kept.begin(), kept.end(), [](auto& c) { return c->over(); }));
  b_.Release();
  for (uint32_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(kept[i]->Wait().ok());
    EXPECT_EQ(kept[i]->bytes, Pattern(i, i));
  }
}

TEST_F(SocketTransportTest, SmallCallsPassLargeOnes) {
  Meet();
  Calls large;
  for (uint32_t i = 0; i < 4; ++i) large.push_back(a_.Ask(b_.address, "e", Bytes(64 << 20)));
  auto small = a_.Ask(b_.address, "e");
  EXPECT_TRUE(small->Wait().ok());
  for (auto& c : large) EXPECT_TRUE(c->Wait().ok());
  EXPECT_LT(small->ended, large.back()->ended);
}

TEST_F(SocketTransportTest, ACancelledCallEndsAndThePeerIsTold) {
  Meet();
  auto kept = a_.Ask(b_.address, "k");
  WaitFor([&] { return b_.kept() == 1; });
  a_.Cancel(b_.address, *kept);
  EXPECT_EQ(kept->Wait().code(), Code::kCancelled);
  WaitFor([&] { return b_.gone == 1; });
  a_.Cancel(b_.address, *kept);  // the call is over, so this does nothing
  Call unknown;
  unknown.id = 999;
  a_.Cancel(b_.address, unknown);
  EXPECT_EQ(a_.Answer(b_.address, "e"), "e");
}

// Whichever part of a body is in transit, the memory is free when the call is over, and the
// connection stays usable.
TEST_F(SocketTransportTest, ACallMayBeCancelledAtAnyMoment) {
  Meet();
  int cancelled = 0;
  for (int i = 0; i < 120; ++i) {
    auto c = a_.Ask(b_.address, "e", Pattern(2 << 20, 1));
    std::this_thread::sleep_for(std::chrono::microseconds(i * 25));
    a_.Cancel(b_.address, *c);
    Status s = c->Wait();
    EXPECT_TRUE(s.ok() || s.code() == Code::kCancelled) << s;
    EXPECT_TRUE(!s.ok() || c->bytes == Pattern(2 << 20, 1));
    cancelled += !s.ok();
    Bytes().swap(c->body);
    Bytes().swap(c->bytes);
    ASSERT_EQ(a_.Answer(b_.address, "e"), "e");
  }
  EXPECT_GT(cancelled, 0);  // the number depends on the machine
}

TEST_F(SocketTransportTest, ABodyThatNobodyWantsIsDropped) {
  Meet();
  auto refused = a_.Ask(b_.address, "n", Bytes(8 << 20));
  EXPECT_TRUE(refused->Wait().ok());
  EXPECT_EQ(refused->head, StrCat(8 << 20, false));
  auto unwanted = a_.Ask(b_.address, "e", Bytes(8 << 20), false);
  EXPECT_TRUE(unwanted->Wait().ok());
  EXPECT_EQ(unwanted->head, "e");
  EXPECT_EQ(a_.Answer(b_.address, "e"), "e");
}

TEST_F(SocketTransportTest, ConnectingToNobodyIsUnavailable) {
  EXPECT_EQ(a_.Connect("thalweg-nobody").code(), Code::kUnavailable);
  EXPECT_EQ(a_.Connect("").code(), Code::kInvalidArgument);
  EXPECT_EQ(a_.Connect(std::string(107, 'x')).code(), Code::kInvalidArgument);
  std::string gone;
  {
    Host c(runtime_);
    gone = c.address;
  }
  EXPECT_EQ(a_.Connect(gone).code(), Code::kUnavailable);
}

TEST_F(SocketTransportTest, AnAddressIsOneEndpoints) {
  const std::string name = StrCat("thalweg-test-", getpid(), std::string(80, 'x'));
  {
    Host first(runtime_, name);
    EXPECT_TRUE(first.opened.ok()) << first.opened;
    EXPECT_EQ(first.address, name);
    Host second(runtime_, name);
    EXPECT_EQ(second.opened.code(), Code::kUnavailable);
    EXPECT_THAT(std::string(second.opened.message()), HasSubstr(name));
    EXPECT_TRUE(a_.Connect(name).ok());
    EXPECT_EQ(a_.Answer(name, "e"), "e");
  }
  EXPECT_TRUE(Host(runtime_, name).opened.ok());
  EXPECT_EQ(Host(runtime_, std::string(107, 'x')).opened.code(), Code::kInvalidArgument);
}

TEST_F(SocketTransportTest, ClosingAPeerCancelsWhatIsUnderWay) {
  Meet();
  auto kept = a_.Ask(b_.address, "k");
  auto of_b = b_.Ask(a_.address, "k");
  WaitFor([&] { return b_.kept() == 1 && a_.kept() == 1; });
  a_.ClosePeer(b_.address);
  EXPECT_EQ(kept->Wait().code(), Code::kCancelled);
  WaitFor([&] { return b_.gone == 1; });
  EXPECT_FALSE(of_b->over());  // another connection
  EXPECT_EQ(b_.Answer(a_.address, "e"), "e");
}

TEST_F(SocketTransportTest, AClosedEndpointIsLostToItsPeers) {
  auto c = std::make_unique<Host>(runtime_);
  const std::string address = c->address;
  ASSERT_TRUE(a_.Connect(address).ok());
  auto kept = a_.Ask(address, "k");
  WaitFor([&] { return c->kept() == 1; });
  c.reset();
  EXPECT_EQ(kept->Wait().code(), Code::kUnavailable);
  EXPECT_THAT(std::string(kept->Wait().message()), HasSubstr(address));
  EXPECT_EQ(a_.Ask(address, "e")->Wait().code(), Code::kUnavailable);
}

TEST_F(SocketTransportTest, TwoRuntimesInOneProcessTalk) {
  Host other(NewRuntime());
  ASSERT_TRUE(other.Connect(a_.address).ok());
  EXPECT_EQ(other.Answer(a_.address, "e"), "e");
}

TEST_F(SocketTransportTest, ManyThreadsUseOneEndpoint) {
  Meet();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 200; ++i) {
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

// ---- A host over it ----

TEST_F(SocketTransportTest, AMessageMeetsItsReceiveInEitherOrder) {
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

TEST_F(SocketTransportTest, AnAbortEndsTheStepOnBothSides) {
  Meet();
  auto in_a = a_.Receive(b_.address, 5, "never"), in_b = b_.Receive(a_.address, 5, "never"), other = b_.Receive(a_.address, 6, "x");
  auto out_b = b_.Send(5, "y", {1});
  EXPECT_EQ(a_.Answer(b_.address, "e"), "e");
  a_.Abort(5, "the loss is NaN", b_.address);
  for (Call* in : {in_a.get(), in_b.get(), b_.Receive(a_.address, 5, "z").get()}) {
    ASSERT_TRUE(in->Wait().ok());
    Status s = Mailbox::Result(&in->head);
    EXPECT_EQ(s.code(), Code::kAborted);
    EXPECT_THAT(std::string(s.message()), HasSubstr("the loss is NaN"));
  }
  EXPECT_EQ(out_b->Wait().code(), Code::kAborted);
  EXPECT_EQ(b_.Send(5, "z", {1})->Wait().code(), Code::kAborted);
  auto out = a_.Send(6, "x", {9});
  EXPECT_TRUE(other->Wait().ok());
}

uint64_t Resident() {
  std::ifstream in("/proc/self/statm");
  uint64_t pages, resident;
  in >> pages >> resident;
  return resident * uint64_t(sysconf(_SC_PAGESIZE));
}

TEST_F(SocketTransportTest, WhatNobodyAsksForWaitsAtItsSender) {
  Meet();
  std::vector<std::shared_ptr<Delivery>> out;
  for (uint32_t i = 0; i < 64; ++i) out.push_back(a_.Send(1, StrCat(i), Bytes(1 << 20)));
  const uint64_t before = Resident();
  EXPECT_EQ(b_.Answer(a_.address, "e"), "e");
  std::this_thread::sleep_for(50ms);
  EXPECT_LT(Resident(), before + (16 << 20));
  EXPECT_TRUE(std::none_of(out.begin(), out.end(), [](auto& d) { return d->over(); }));
  for (uint32_t i = 64; i-- > 0;) {
    auto in = b_.Receive(a_.address, 1, StrCat(i));
    EXPECT_TRUE(in->Wait().ok());
    EXPECT_TRUE(out[i]->Wait().ok());
  }
}

TEST_F(SocketTransportTest, AReceiveThatIsCancelledLeavesTheMessageToTheNext) {
  Meet();
  auto late = b_.Receive(a_.address, 1, "x");
  EXPECT_EQ(b_.Answer(a_.address, "e"), "e");
  b_.Cancel(a_.address, *late);
  EXPECT_EQ(late->Wait().code(), Code::kCancelled);
  WaitFor([&] { return a_.gone == 1; });
  auto out = a_.Send(1, "x", {7});
  auto in = b_.Receive(a_.address, 1, "x");
  EXPECT_TRUE(in->Wait().ok());
  EXPECT_EQ(in->bytes, Bytes{7});
  EXPECT_TRUE(out->Wait().ok());
}

// ---- Invalid peers ----

int Stranger(const std::string& address) {
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  memcpy(at.sun_path + 1, address.data(), address.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&at), socklen_t(sizeof at.sun_family + 1 + address.size())), 0);
  return fd;
}
struct Frame {
  uint64_t kind = 0, id = 0, head = 0, bytes = 0;
};
void Put(int fd, const Frame& f, const std::string& rest = "") {
  std::string packet(reinterpret_cast<const char*>(&f), sizeof f);
  packet += rest;
  (void)send(fd, packet.data(), packet.size(), MSG_NOSIGNAL);
}
bool IsClosed(int fd) {
  const timeval most = {5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  char c[1000];
  return recv(fd, c, sizeof c, 0) <= 0 && errno != EAGAIN;
}

TEST_F(SocketTransportTest, StrangersWhoTalkNonsenseLoseOnlyTheirConnection) {
  Meet();
  enum { kRequest, kAnswer, kPiece, kCancel };
  std::mt19937 random(1);
  std::string noise(300, 0);
  for (int i = 0; i < 70; ++i) {
    const int fd = Stranger(a_.address);
    std::generate(noise.begin(), noise.end(), [&] { return char(random()); });
    switch (i % 7) {
      case 0: Put(fd, {.kind = kRequest, .id = 1, .head = 1}, "k"), Put(fd, {.kind = kRequest, .id = 1, .head = 1}, "k"); break;
      case 1: Put(fd, {.kind = kRequest, .head = 5}, "echo"); break;
      case 2: Put(fd, {.kind = kRequest, .head = ~uint64_t{0}}, "e"); break;
      case 3: Put(fd, {.kind = kRequest, .head = 5000}, std::string(5000, 'e')); break;
      case 4: Put(fd, {.kind = kAnswer, .id = 1}); break;
      case 5: Put(fd, {.kind = 1000}); break;
      case 6: (void)send(fd, noise.data(), 1 + size_t(i) % 31, MSG_NOSIGNAL); break;
    }
    EXPECT_TRUE(IsClosed(fd)) << i;
    close(fd);
  }
  const int fd = Stranger(a_.address);
  Put(fd, {.kind = kRequest, .id = 1, .head = 1, .bytes = 10}, "e");
  Put(fd, {.kind = kPiece, .id = 1}, std::string(11, 'x'));  // more bytes than announced
  EXPECT_TRUE(IsClosed(fd));
  close(fd);
  // Bodies of impossible sizes, pieces and cancellations of unknown calls, and half a request: none
  // harms other peers.
  const int half = Stranger(a_.address), huge = Stranger(a_.address);
  Put(half, {.kind = kRequest, .id = 7, .head = 1, .bytes = 1 << 20}, "e");
  Put(half, {.kind = kPiece, .id = 7}, std::string(1000, 'x'));
  Put(huge, {.kind = kRequest, .id = 1, .head = 1, .bytes = ~uint64_t{0}}, "n");
  Put(huge, {.kind = kPiece, .id = 1}, std::string(1000, 'x'));
  Put(huge, {.kind = kPiece, .id = 55}, std::string(1000, 'x'));
  Put(huge, {.kind = kCancel, .id = 56});
  Frame answer;
  EXPECT_GE(recv(huge, &answer, sizeof answer, 0), ssize_t(sizeof answer));
  EXPECT_EQ(answer.kind, uint64_t(kAnswer));
  EXPECT_EQ(a_.Answer(b_.address, "e"), "e");
  EXPECT_EQ(b_.Answer(a_.address, "e"), "e");
  const int before = a_.gone;
  close(half);
  close(huge);
  WaitFor([&] { return a_.gone == before + 1; });  // its body never came
}

// A peer that answers invalid data is lost, and its pending calls fail.
TEST_F(SocketTransportTest, APeerThatAnswersNonsenseIsLost) {
  const Frame answers[] = {{.kind = 0, .id = 1}, {.kind = 1, .id = 1, .head = 9}, {.kind = 1, .id = 1, .head = ~uint64_t{0}},
                           {.kind = 3, .id = 1}, {.kind = 77, .id = 1},           {.kind = 1, .id = 1, .bytes = 100}};
  for (const Frame& f : answers) {
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    socklen_t n = sizeof at.sun_family;
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&at), n), 0);
    ASSERT_EQ(listen(listener, 1), 0);
    n = sizeof at;
    getsockname(listener, reinterpret_cast<sockaddr*>(&at), &n);
    const std::string name(at.sun_path + 1, n - sizeof at.sun_family - 1);
    Host c(runtime_);
    ASSERT_TRUE(c.Connect(name).ok());
    auto call = c.Ask(name, "e", Bytes(1 << 20));
    const int fd = accept(listener, nullptr, nullptr);
    Put(fd, f);
    Put(fd, f);  // a second answer is invalid, too
    EXPECT_EQ(call->Wait().code(), Code::kUnavailable) << f.kind;
    close(fd);
    close(listener);
  }
}

TEST_F(SocketTransportTest, OtherUsersAreNotLetIn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string address = a_.address;
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(2);
    const int fd = Stranger(address);
    Put(fd, {.kind = 0, .id = 1, .head = 1}, "e");
    _exit(IsClosed(fd) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

size_t Entries(const char* folder) {
  return size_t(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST_F(SocketTransportTest, AHundredEndpointsLeaveNothingBehind) {
  const size_t files = Entries("/proc/self/fd"), threads = Entries("/proc/self/task");
  for (int i = 0; i < 100; ++i) {
    Host c(runtime_), d(runtime_);
    ASSERT_TRUE(c.Connect(d.address).ok());
    ASSERT_TRUE(d.Connect(c.address).ok());
    EXPECT_EQ(c.Answer(d.address, "e"), "e");
    (void)d.Receive(c.address, 1, "never");
    (void)c.Ask(d.address, "k", Bytes(100000));
  }
  EXPECT_EQ(Entries("/proc/self/fd"), files);
  EXPECT_EQ(Entries("/proc/self/task"), threads);
}

// ---- two processes ----

// The other process: exchanges `n` messages with the first peer that connects, or only waits.
int Peer(const std::string& address, uint32_t n) {
  Host e(NewRuntime());
  if (!e.opened.ok() || !e.Connect(address).ok()) return 1;
  if (e.Answer(address, "e") != "e") return 2;
  std::cout << e.address << std::endl;
  std::vector<std::shared_ptr<Delivery>> out;
  Calls in;
  std::vector<uint32_t> order(n);
  for (uint32_t i = 0; i < n; ++i) order[i] = i, out.push_back(e.Send(i % 3, StrCat("to parent ", i), Pattern(SizeOf(i), i)));
  std::shuffle(order.begin(), order.end(), std::mt19937(2));
  for (uint32_t i : order) {
    in.push_back(e.Receive(address, i % 3, StrCat("to child ", i)));
    if (i % 5 == 0 && !in.back()->Wait().ok()) return 3;
  }
  for (uint32_t k = 0; k < n; ++k) {
    if (!in[k]->Wait().ok() || in[k]->bytes != Pattern(SizeOf(order[k]), order[k])) return 4;
  }
  for (auto& d : out) {
    if (!d->Wait().ok()) return 5;
  }
  return e.Receive(address, 9, "the end")->Wait().ok() ? 0 : 6;
}

class Process {
 public:
  Process(const std::string& parent, uint32_t n) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const std::string self = std::filesystem::read_symlink("/proc/self/exe"), count = StrCat(n);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], 1);
      execl(self.c_str(), self.c_str(), "--peer", parent.c_str(), count.c_str(), nullptr);
      _exit(99);
    }
    close(ends[1]);
    for (char c; read(ends[0], &c, 1) == 1 && c != '\n';) address += c;
    close(ends[0]);
  }
  void Kill() { kill(pid_, SIGKILL); }
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return status;
  }
  std::string address;

 private:
  pid_t pid_;
};

TEST_F(SocketTransportTest, TwoProcessesExchangeAThousandMessagesInAnyOrder) {
  constexpr uint32_t kMessages = 1000;
  Process peer(a_.address, kMessages);
  ASSERT_TRUE(a_.Connect(peer.address).ok()) << peer.address;
  std::vector<uint32_t> order(kMessages);
  std::vector<std::shared_ptr<Delivery>> out;
  Calls in;
  for (uint32_t i = 0; i < kMessages; ++i) {
    order[i] = i;
    out.push_back(a_.Send(i % 3, StrCat("to child ", i), Pattern(SizeOf(i), i)));
  }
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (uint32_t i : order) {
    in.push_back(a_.Receive(peer.address, i % 3, StrCat("to parent ", i)));
    ASSERT_TRUE(i % 7 || in.back()->Wait().ok());
  }
  for (uint32_t k = 0; k < kMessages; ++k) {
    ASSERT_TRUE(in[k]->Wait().ok());
    ASSERT_EQ(in[k]->bytes, Pattern(SizeOf(order[k]), order[k]));
    ASSERT_TRUE(out[k]->Wait().ok());
  }
  auto end = a_.Send(9, "the end", {1});
  EXPECT_EQ(peer.Wait(), 0);
}

TEST_F(SocketTransportTest, AKilledPeerFailsWhatWaitsForIt) {
  for (auto wait : {0ms, 1ms, 20ms}) {
    Process peer(a_.address, 100);
    ASSERT_TRUE(a_.Connect(peer.address).ok()) << peer.address;
    Calls calls;
    for (uint32_t i = 0; i < 50; ++i) {
      a_.Send(i % 3, StrCat("to child ", i), Pattern(1 << 20, i));
      calls.push_back(a_.Receive(peer.address, i % 3, StrCat("to parent ", i)));
      calls.push_back(a_.Ask(peer.address, "e", Bytes(1 << 20)));
    }
    auto never = a_.Ask(peer.address, "k");
    std::this_thread::sleep_for(wait);
    peer.Kill();
    EXPECT_EQ(never->Wait().code(), Code::kUnavailable);
    EXPECT_THAT(std::string(never->Wait().message()), HasSubstr(peer.address));
    for (auto& c : calls) {
      Status s = c->Wait();
      EXPECT_TRUE(s.ok() || s.code() == Code::kUnavailable) << s;
    }
    peer.Wait();
    EXPECT_EQ(a_.Connect(peer.address).code(), Code::kUnavailable);
  }
}

}  // namespace
}  // namespace thalweg

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--peer") return thalweg::Peer(argv[2], uint32_t(std::stoul(argv[3])));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
