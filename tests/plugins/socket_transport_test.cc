// The example of a transport as a runtime uses it: within a process, between two, with peers that die, dawdle or talk nonsense.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "framework/base/strings.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/timeline.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;
using Bytes = std::vector<char>;
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

std::string TakeText(const void* bytes, uint64_t n) { return n ? std::string(static_cast<const char*>(bytes), n) : std::string(); }
tw_status* Append(tw_sink* s, const void* bytes, uint64_t n) {
  *static_cast<std::string*>(s->user) += TakeText(bytes, n);
  return nullptr;
}

// One message on its way, sent or received.
class Transfer {
 public:
  explicit Transfer(Bytes b = {}) : bytes(std::move(b)) {}
  Transfer(const Transfer&) = delete;
  ~Transfer() { line->Release(); }
  Status Wait() { return line->Wait(1); }
  bool over() const { return line->value() >= 1; }
  static tw_status* Place(void* arg, const void* head, uint64_t head_bytes, uint64_t bytes, void** out_data, void**) {
    auto* t = static_cast<Transfer*>(arg);
    t->head = TakeText(head, head_bytes);
    t->bytes.resize(bytes);
    *out_data = t->bytes.data();
    return t->refusal.ok() ? nullptr : ToC(t->refusal);
  }
  Bytes bytes;
  std::string head;
  Status refusal;
  tw_timeline* line = new tw_timeline;
};
using Transfers = std::vector<std::shared_ptr<Transfer>>;

struct Answer {
  Status status;
  std::string body;
};

// An endpoint of a runtime, and its peers by address.
class Endpoint {
 public:
  explicit Endpoint(std::shared_ptr<Runtime> runtime, std::string_view at = "", uint64_t largest = 0) : runtime_(std::move(runtime)) {
    auto roles = runtime_->registry().RolesOf<TransportRole>("unix");
    EXPECT_EQ(roles.size(), 1u);
    role_ = roles[0];
    tw_sink sink = {TW_SIZED(tw_sink), &address, Append};
    tw_endpoint_config c = {TW_SIZED(tw_endpoint_config), at.data(), at.size(), nullptr, 0, 0, largest, this, Serve};
    opened = FromC(role_->def.listen(role_->host, role_->def.user, &c, &sink, &endpoint_));
  }
  ~Endpoint() {
    closing_ = true;
    Later({});
    while (!peers_.empty()) ClosePeer(peers_.begin()->first);
    if (endpoint_) role_->def.close(role_->host, endpoint_);
  }
  Status Connect(const std::string& to) {
    void* peer = nullptr;
    RETURN_IF_ERROR(FromC(role_->def.connect(role_->host, endpoint_, to.data(), to.size(), &peer)));
    peers_[to] = peer;
    return Status();
  }
  void ClosePeer(const std::string& to) {
    role_->def.close_peer(role_->host, peers_.at(to));
    peers_.erase(to);
  }
  std::shared_ptr<Transfer> Send(const std::string& to, uint64_t step, std::string_view key, Bytes bytes, std::string_view head = "") {
    auto t = Keep(std::make_shared<Transfer>(std::move(bytes)));
    tw_message m = {TW_SIZED(tw_message), step, key.data(),      key.size(), head.data(), head.size(),
                    t->bytes.data(),      0,    t->bytes.size(), nullptr,    t->line,     1};
    Status s = FromC(role_->def.send(role_->host, peers_.at(to), &m));
    if (!s.ok()) Over(t.get(), s);
    return t;
  }
  std::shared_ptr<Transfer> Receive(const std::string& from, uint64_t step, std::string_view key, std::chrono::nanoseconds within = 0s,
                                    Status refusal = {}) {
    auto t = Keep(std::make_shared<Transfer>());
    t->refusal = refusal;
    tw_receipt r = {TW_SIZED(tw_receipt), step, key.data(), key.size(), t.get(), Transfer::Place, t->line, 1, Deadline(within)};
    Status s = FromC(role_->def.receive(role_->host, peers_.at(from), &r));
    if (!s.ok()) Over(t.get(), s);
    return t;
  }
  std::future<Answer> Call(const std::string& to, std::string_view method, std::string_view body, std::chrono::nanoseconds within = 0s) {
    auto* p = new std::promise<Answer>;
    auto future = p->get_future();
    auto done = [](void* arg, tw_status* s, const void* answer, uint64_t n) {
      auto* promise = static_cast<std::promise<Answer>*>(arg);
      promise->set_value({FromC(s), TakeText(answer, n)});
      delete promise;
    };
    Status s = FromC(
        role_->def.call(role_->host, peers_.at(to), method.data(), method.size(), body.data(), body.size(), Deadline(within), done, p));
    if (!s.ok()) done(p, ToC(s), nullptr, 0);
    return future;
  }
  void Abort(uint64_t step, const Status& why) {
    tw_status* s = ToC(why);
    role_->def.abort(role_->host, endpoint_, step, s);
    (void)FromC(s);
  }
  void Forget(uint64_t step) { role_->def.forget(role_->host, endpoint_, step); }
  // Answers what was asked to be answered later.
  void Later(const Status& s) {
    std::vector<const tw_incoming*> calls;
    {
      std::lock_guard lock(mu_);
      calls.swap(later_);
    }
    for (const tw_incoming* c : calls) c->answer(role_->host, c->self, ToC(s), nullptr, 0);
  }

  std::string address;
  Status opened;

 private:
  std::shared_ptr<Transfer> Keep(std::shared_ptr<Transfer> t) {
    std::lock_guard lock(mu_);
    return made_.emplace_back(std::move(t));
  }
  int64_t Deadline(std::chrono::nanoseconds within) const {
    return within.count() ? role_->host->run->now(role_->host) + within.count() : 0;
  }
  static void Over(Transfer* t, const Status& s) {
    t->line->Fail(s);
    t->line->Signal(1);
  }
  static void Serve(void* arg, const tw_incoming* c) {
    auto* e = static_cast<Endpoint*>(arg);
    const tw_host* h = e->role_->host;
    const std::string method(c->method, c->method_len);
    if (method == "refuse") return c->answer(h, c->self, ToC(FailedPrecondition("not today")), nullptr, 0);
    std::lock_guard lock(e->mu_);
    if (method == "late" && !e->closing_) return e->later_.push_back(c);
    std::string body = method == "peer"       ? std::string(c->peer, c->peer_len)
                       : method == "deadline" ? StrCat(c->deadline > h->run->now(h))
                                              : TakeText(c->body, c->bytes) + "!";
    c->answer(h, c->self, nullptr, body.data(), body.size());
  }
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<const TransportRole> role_;
  void* endpoint_ = nullptr;
  std::map<std::string, void*> peers_;
  Transfers made_;  // whatever the transport may still work on; under mu_
  std::mutex mu_;
  std::atomic<bool> closing_{false};
  std::vector<const tw_incoming*> later_;
};

Bytes Pattern(uint64_t n, uint32_t seed) {
  Bytes b(n);
  for (uint64_t i = 0; i < n; ++i) b[i] = char((i * 31 + seed * 97 + i / 4096) & 0xff);
  return b;
}
uint64_t SizeOf(uint32_t i) {
  const uint64_t sizes[] = {0, 1, 100, 4096, 65535, 65536, 65537, 300000};
  return i % 200 == 7 ? 4 << 20 : sizes[i % 8];
}

class SocketTransportTest : public testing::Test {
 protected:
  std::shared_ptr<Runtime> runtime_ = NewRuntime();
  Endpoint a_{runtime_}, b_{runtime_};
  void Meet() {
    ASSERT_TRUE(a_.opened.ok()) << a_.opened;
    ASSERT_TRUE(a_.Connect(b_.address).ok());
    ASSERT_TRUE(b_.Connect(a_.address).ok());
  }
};

TEST_F(SocketTransportTest, AMessageMeetsItsReceiveInEitherOrder) {
  Meet();
  for (uint64_t n : {0, 1, 65535, 65536, 65537, 4 << 20}) {
    for (bool receive_first : {true, false}) {
      std::shared_ptr<Transfer> in, out;
      if (receive_first) in = b_.Receive(a_.address, n, "x");
      out = a_.Send(b_.address, n, "x", Pattern(n, 3), "float [2, 3]");
      if (!receive_first) in = b_.Receive(a_.address, n, "x");
      EXPECT_TRUE(out->Wait().ok());
      EXPECT_TRUE(in->Wait().ok());
      EXPECT_EQ(in->bytes, Pattern(n, 3));
      EXPECT_EQ(in->head, "float [2, 3]");
    }
  }
}

TEST_F(SocketTransportTest, StepsAndKeysAreToldApart) {
  Meet();
  auto one = a_.Send(b_.address, 1, "x", {1}), two = a_.Send(b_.address, 2, "x", {2}), other = a_.Send(b_.address, 1, "xy", {3});
  auto in_other = b_.Receive(a_.address, 1, "xy"), in_two = b_.Receive(a_.address, 2, "x"), in_one = b_.Receive(a_.address, 1, "x");
  for (Transfer* t : {in_other.get(), in_two.get(), in_one.get()}) ASSERT_TRUE(t->Wait().ok());
  EXPECT_EQ(in_one->bytes, Bytes{1});
  EXPECT_EQ(in_two->bytes, Bytes{2});
  EXPECT_EQ(in_other->bytes, Bytes{3});
}

TEST_F(SocketTransportTest, AnEndpointReachesItself) {
  ASSERT_TRUE(a_.Connect(a_.address).ok());
  auto out = a_.Send(a_.address, 1, "x", Pattern(100000, 1));
  auto in = a_.Receive(a_.address, 1, "x");
  EXPECT_TRUE(in->Wait().ok());
  EXPECT_EQ(in->bytes, Pattern(100000, 1));
  EXPECT_EQ(a_.Call(a_.address, "echo", "me").get().body, "me!");
}

TEST_F(SocketTransportTest, CallsAreAnsweredOnce) {
  Meet();
  EXPECT_EQ(a_.Call(b_.address, "echo", "hello").get().body, "hello!");
  EXPECT_EQ(a_.Call(b_.address, "echo", "").get().body, "!");
  EXPECT_EQ(a_.Call(b_.address, "peer", "").get().body, a_.address);
  EXPECT_EQ(a_.Call(b_.address, "deadline", "", 60s).get().body, "1");
  std::string body(3 << 20, 'x');
  Answer echoed = a_.Call(b_.address, "echo", body).get();
  body.push_back('!');
  EXPECT_TRUE(echoed.body == body);
  Answer refused = a_.Call(b_.address, "refuse", "").get();
  EXPECT_EQ(refused.status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status.message()), HasSubstr("not today"));
  auto late = a_.Call(b_.address, "late", "");
  EXPECT_EQ(a_.Call(b_.address, "echo", "meanwhile").get().body, "meanwhile!");
  EXPECT_EQ(late.wait_for(0s), std::future_status::timeout);
  b_.Later({});
  EXPECT_TRUE(late.get().status.ok());
}

TEST_F(SocketTransportTest, WaitsEndByTheirDeadlines) {
  Meet();
  auto in = b_.Receive(a_.address, 1, "never", 50ms);
  auto call = a_.Call(b_.address, "late", "", 50ms);
  EXPECT_EQ(in->Wait().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(call.get().status.code(), Code::kDeadlineExceeded);
  b_.Later({});  // too late: nobody waits, and nothing breaks
  EXPECT_EQ(a_.Call(b_.address, "echo", "x").get().body, "x!");
}

TEST_F(SocketTransportTest, ARefusedPlaceFailsTheReceiveAlone) {
  Meet();
  auto out = a_.Send(b_.address, 1, "x", Pattern(200000, 1));
  auto in = b_.Receive(a_.address, 1, "x", 0s, InvalidArgument("no room for it"));
  EXPECT_EQ(in->Wait().code(), Code::kInvalidArgument);
  EXPECT_TRUE(out->Wait().ok());
  auto next = a_.Send(b_.address, 1, "y", {7});
  auto got = b_.Receive(a_.address, 1, "y");
  EXPECT_TRUE(got->Wait().ok());
  EXPECT_EQ(got->bytes, Bytes{7});
}

TEST_F(SocketTransportTest, NothingAboveTheLargestIsTaken) {
  Endpoint small(runtime_, "", 1000);
  ASSERT_TRUE(small.Connect(a_.address).ok());
  ASSERT_TRUE(a_.Connect(small.address).ok());
  auto out = a_.Send(small.address, 1, "x", Bytes(1001));
  auto in = small.Receive(a_.address, 1, "x");
  EXPECT_EQ(in->Wait().code(), Code::kResourceExhausted);
  EXPECT_EQ(a_.Call(small.address, "echo", std::string(1001, 'x')).get().status.code(), Code::kResourceExhausted);
  EXPECT_EQ(a_.Call(small.address, "echo", std::string(1000, 'x')).get().body.size(), 1001u);
}

TEST_F(SocketTransportTest, AnAbortEndsTheStepOnBothSides) {
  Meet();
  auto in_a = a_.Receive(b_.address, 5, "never"), in_b = b_.Receive(a_.address, 5, "never"), out_b = b_.Send(a_.address, 5, "y", {1});
  auto other = b_.Receive(a_.address, 6, "x");
  EXPECT_EQ(a_.Call(b_.address, "echo", "").get().body, "!");  // what was asked before has arrived
  EXPECT_EQ(b_.Call(a_.address, "echo", "").get().body, "!");
  a_.Abort(5, absl::AbortedError("the loss is NaN"));
  for (Transfer* t : {in_a.get(), in_b.get(), out_b.get()}) {
    Status s = t->Wait();
    EXPECT_EQ(s.code(), Code::kAborted);
    EXPECT_THAT(std::string(s.message()), HasSubstr("the loss is NaN"));
  }
  EXPECT_EQ(b_.Send(a_.address, 5, "z", {1})->Wait().code(), Code::kAborted);
  EXPECT_EQ(b_.Receive(a_.address, 5, "z")->Wait().code(), Code::kAborted);
  auto out = a_.Send(b_.address, 6, "x", {9});
  EXPECT_TRUE(other->Wait().ok());
}

// Whatever part of the message is on its way: memory is free when the line is reached, and the connection goes on.
TEST_F(SocketTransportTest, AnAbortHalfWayHarmsNoOtherStep) {
  Meet();
  for (uint64_t step = 1; step <= 40; ++step) {
    auto in = b_.Receive(a_.address, step, "big");
    auto out = a_.Send(b_.address, step, "big", Pattern(2 << 20, 1));
    std::this_thread::sleep_for(std::chrono::microseconds(step * 50));
    (step % 2 ? a_ : b_).Abort(step, absl::CancelledError("enough"));
    Status sent = out->Wait(), received = in->Wait();
    EXPECT_TRUE(sent.ok() || sent.code() == Code::kCancelled) << sent;
    EXPECT_TRUE(!received.ok() || in->bytes == Pattern(2 << 20, 1));
    Bytes().swap(out->bytes);
    Bytes().swap(in->bytes);
    auto next = a_.Send(b_.address, 1000 + step, "x", Pattern(1000, 1));
    auto got = b_.Receive(a_.address, 1000 + step, "x");
    ASSERT_TRUE(got->Wait().ok());
    EXPECT_EQ(got->bytes, Pattern(1000, 1));
  }
}

TEST_F(SocketTransportTest, ForgettingDropsWhatNobodyAskedFor) {
  Meet();
  auto out = a_.Send(b_.address, 1, "x", {1});
  EXPECT_FALSE(out->over());
  a_.Forget(1);
  EXPECT_EQ(out->Wait().code(), Code::kCancelled);
  EXPECT_FALSE(b_.Receive(a_.address, 1, "x")->Wait().ok());
}

TEST_F(SocketTransportTest, ConnectingToNobodyIsUnavailable) {
  EXPECT_EQ(a_.Connect("/tmp/thalweg-nobody/s").code(), Code::kUnavailable);
  const std::string there = b_.address;
  EXPECT_EQ(a_.Connect(std::string(200, 'x')).code(), Code::kInvalidArgument);
  std::string gone;
  {
    Endpoint c(runtime_);
    gone = c.address;
    EXPECT_TRUE(std::filesystem::exists(gone));
  }
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(gone).parent_path()));
  EXPECT_EQ(a_.Connect(gone).code(), Code::kUnavailable);
}

TEST_F(SocketTransportTest, OnlyFoldersOfTheUserAloneAreTaken) {
  const std::string folder = testing::TempDir() + StrCat("transport-", getpid());
  std::filesystem::create_directory(folder);
  chmod(folder.c_str(), 0755);
  EXPECT_EQ(Endpoint(runtime_, folder + "/s").opened.code(), Code::kPermissionDenied);
  chmod(folder.c_str(), 0700);
  {
    Endpoint first(runtime_, folder + "/s");
    EXPECT_TRUE(first.opened.ok()) << first.opened;
    EXPECT_EQ(Endpoint(runtime_, folder + "/s").opened.code(), Code::kUnavailable) << "somebody listens there";
  }
  // A socket left by a process that died is no hindrance.
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  strcpy(at.sun_path, (folder + "/s").c_str());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  close(fd);
  EXPECT_TRUE(Endpoint(runtime_, folder + "/s").opened.ok());
  std::filesystem::remove_all(folder);
}

TEST_F(SocketTransportTest, ClosingAPeerCancelsWhatIsUnderWay) {
  Meet();
  auto in = a_.Receive(b_.address, 1, "never"), out = a_.Send(b_.address, 1, "x", {1});
  auto call = a_.Call(b_.address, "late", "");
  auto of_b = b_.Receive(a_.address, 2, "never");
  EXPECT_EQ(a_.Call(b_.address, "echo", "").get().body, "!");
  a_.ClosePeer(b_.address);
  EXPECT_TRUE(in->over() && out->over());
  EXPECT_EQ(in->Wait().code(), Code::kCancelled);
  EXPECT_EQ(out->Wait().code(), Code::kCancelled);
  EXPECT_EQ(call.get().status.code(), Code::kCancelled);
  EXPECT_FALSE(of_b->over());  // its connection is another one
}

TEST_F(SocketTransportTest, AClosedEndpointIsLostToItsPeers) {
  auto c = std::make_unique<Endpoint>(runtime_);
  const std::string address = c->address;
  ASSERT_TRUE(a_.Connect(address).ok());
  auto in = a_.Receive(address, 1, "x"), out = a_.Send(address, 1, "y", {1});
  auto call = a_.Call(address, "late", "");
  c.reset();
  EXPECT_EQ(in->Wait().code(), Code::kUnavailable);
  EXPECT_THAT(std::string(in->Wait().message()), HasSubstr(address));
  EXPECT_EQ(out->Wait().code(), Code::kUnavailable);
  call.get();  // it ended: answered while the endpoint was closed, or not
  EXPECT_EQ(a_.Send(address, 2, "y", {1})->Wait().code(), Code::kUnavailable);
  EXPECT_EQ(a_.Receive(address, 2, "y")->Wait().code(), Code::kUnavailable);
  EXPECT_EQ(a_.Call(address, "echo", "").get().status.code(), Code::kUnavailable);
}

TEST_F(SocketTransportTest, TwoRuntimesInOneProcessTalk) {
  Endpoint other(NewRuntime());
  ASSERT_TRUE(other.Connect(a_.address).ok());
  ASSERT_TRUE(a_.Connect(other.address).ok());
  auto out = other.Send(a_.address, 1, "x", Pattern(70000, 2));
  auto in = a_.Receive(other.address, 1, "x");
  EXPECT_TRUE(in->Wait().ok());
  EXPECT_EQ(in->bytes, Pattern(70000, 2));
}

TEST_F(SocketTransportTest, ManyThreadsUseOneEndpoint) {
  Meet();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 200; ++i) {
        const std::string key = StrCat(t, "/", i);
        auto out = a_.Send(b_.address, i, key, Pattern(i * 10, t));
        auto in = b_.Receive(a_.address, i, key);
        EXPECT_EQ(b_.Call(a_.address, "echo", key).get().body, key + "!");
        EXPECT_TRUE(in->Wait().ok());
        EXPECT_EQ(in->bytes, Pattern(i * 10, t));
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

uint64_t Resident() {
  std::ifstream in("/proc/self/statm");
  uint64_t pages, resident;
  in >> pages >> resident;
  return resident * uint64_t(sysconf(_SC_PAGESIZE));
}

TEST_F(SocketTransportTest, WhatNobodyAsksForWaitsAtItsSender) {
  Meet();
  Transfers out;
  for (uint32_t i = 0; i < 64; ++i) out.push_back(a_.Send(b_.address, 1, StrCat(i), Bytes(1 << 20)));
  const uint64_t before = Resident();
  EXPECT_EQ(b_.Call(a_.address, "echo", "x").get().body, "x!");  // calls pass by
  std::this_thread::sleep_for(50ms);
  EXPECT_LT(Resident(), before + (16 << 20));
  EXPECT_TRUE(std::none_of(out.begin(), out.end(), [](auto& t) { return t->over(); }));
  for (uint32_t i = 64; i-- > 0;) {
    auto in = b_.Receive(a_.address, 1, StrCat(i));
    EXPECT_TRUE(in->Wait().ok());
    EXPECT_TRUE(out[i]->Wait().ok());
  }
}

// What a stranger of the same user may send.
int Stranger(const std::string& address) {
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  strcpy(at.sun_path, address.c_str());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  return fd;
}
struct Frame {
  uint32_t kind = 0, code = 0;
  uint64_t id = 0, step = 0, text = 0, head = 0, bytes = 0;
  int64_t left = 0;
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
  auto in = b_.Receive(a_.address, 77, "x");
  enum { kHello, kCall, kTake, kAnswer, kAbort };
  const Frame hello = {.kind = kHello, .text = 4};
  std::mt19937 random(1);
  std::string noise(300, 0);
  for (int i = 0; i < 40; ++i) {
    const int fd = Stranger(a_.address);
    std::generate(noise.begin(), noise.end(), [&] { return char(random()); });
    if (i % 8) Put(fd, hello, "/x/y");
    switch (i % 8) {
      case 0: Put(fd, {.kind = kCall, .text = 4}, "echo"); break;  // without a greeting
      case 1: Put(fd, hello, "/x/y"); break;
      case 2: Put(fd, {.kind = kCall, .text = 4, .bytes = ~uint64_t{0}}, "echo"); break;
      case 3: Put(fd, {.kind = kTake, .text = ~uint64_t{0}, .head = 1}, "x"); break;
      case 4: Put(fd, {.kind = kAnswer, .id = 1}); break;
      case 5: Put(fd, {.kind = 1000}); break;
      case 6: (void)send(fd, noise.data(), size_t(i) % 56, MSG_NOSIGNAL); break;
      case 7: Put(fd, {.kind = kTake, .text = 5}, "x"); break;
    }
    EXPECT_TRUE(IsClosed(fd)) << i;
    close(fd);
  }
  // Half a call, and takes of what is not theirs: they may wait.
  const int half = Stranger(a_.address), thief = Stranger(a_.address);
  Put(half, hello, "/x/y");
  Put(half, {.kind = kCall, .text = 4, .bytes = 1 << 30}, "echo");
  Put(thief, hello, "/x/y");
  Put(thief, {.kind = kTake, .id = 9, .step = 77, .text = 1}, "x");
  auto out = a_.Send(b_.address, 77, "x", {5});
  EXPECT_TRUE(in->Wait().ok());
  EXPECT_EQ(a_.Call(b_.address, "echo", "x").get().body, "x!");
  EXPECT_EQ(b_.Call(a_.address, "echo", "x").get().body, "x!");
  close(half);
  close(thief);
}

size_t Entries(const char* folder) {
  return size_t(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST_F(SocketTransportTest, AHundredEndpointsLeaveNothingBehind) {
  const size_t files = Entries("/proc/self/fd"), threads = Entries("/proc/self/task");
  for (int i = 0; i < 100; ++i) {
    Endpoint c(runtime_), d(runtime_);
    ASSERT_TRUE(c.Connect(d.address).ok());
    ASSERT_TRUE(d.Connect(c.address).ok());
    auto out = c.Send(d.address, 1, "x", {1});
    EXPECT_TRUE(i % 2 || d.Receive(c.address, 1, "x")->Wait().ok());
    auto never = d.Receive(c.address, 1, "never");
    auto late = c.Call(d.address, "late", "x");
  }
  EXPECT_EQ(Entries("/proc/self/fd"), files);
  EXPECT_EQ(Entries("/proc/self/task"), threads);
}

// The other process: sends and receives `n` messages, or only waits, with whoever connects first.
int Peer(const std::string& address, uint32_t n) {
  Endpoint e(NewRuntime());
  if (!e.opened.ok() || !e.Connect(address).ok()) return 1;
  if (e.Call(address, "echo", e.address).get().body != e.address + "!") return 2;
  std::cout << e.address << std::endl;
  Transfers out, in;
  std::vector<uint32_t> order(n);
  for (uint32_t i = 0; i < n; ++i) order[i] = i, out.push_back(e.Send(address, i % 3, StrCat("to parent ", i), Pattern(SizeOf(i), i)));
  std::shuffle(order.begin(), order.end(), std::mt19937(2));
  for (uint32_t i : order) {
    in.push_back(e.Receive(address, i % 3, StrCat("to child ", i)));
    if (i % 5 == 0 && !in.back()->Wait().ok()) return 3;
  }
  for (uint32_t k = 0; k < n; ++k) {
    if (!in[k]->Wait().ok() || in[k]->bytes != Pattern(SizeOf(order[k]), order[k])) return 4;
  }
  for (auto& t : out) {
    if (!t->Wait().ok()) return 5;
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
  Transfers out, in;
  for (uint32_t i = 0; i < kMessages; ++i) {
    order[i] = i;
    out.push_back(a_.Send(peer.address, i % 3, StrCat("to child ", i), Pattern(SizeOf(i), i)));
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
  auto end = a_.Send(peer.address, 9, "the end", {1});
  EXPECT_EQ(peer.Wait(), 0);
}

TEST_F(SocketTransportTest, AKilledPeerFailsWhatWaitsForIt) {
  for (auto wait : {0ms, 1ms, 20ms}) {
    Process peer(a_.address, 100);
    ASSERT_TRUE(a_.Connect(peer.address).ok()) << peer.address;
    Transfers out, in;
    for (uint32_t i = 0; i < 50; ++i) {
      out.push_back(a_.Send(peer.address, i % 3, StrCat("to child ", i), Pattern(1 << 20, i)));
      in.push_back(a_.Receive(peer.address, i % 3, StrCat("to parent ", i)));
    }
    auto never = a_.Receive(peer.address, 1, "never");
    auto call = a_.Call(peer.address, "late", "");
    std::this_thread::sleep_for(wait);
    peer.Kill();
    EXPECT_EQ(never->Wait().code(), Code::kUnavailable);
    EXPECT_THAT(std::string(never->Wait().message()), HasSubstr(peer.address));
    EXPECT_EQ(call.get().status.code(), Code::kUnavailable);
    for (auto& t : out) (void)t->Wait();  // each ends
    for (auto& t : in) (void)t->Wait();
    peer.Wait();
    EXPECT_EQ(a_.Connect(peer.address).code(), Code::kUnavailable);
    std::filesystem::remove_all(std::filesystem::path(peer.address).parent_path());
  }
}

}  // namespace
}  // namespace thalweg

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--peer") return thalweg::Peer(argv[2], uint32_t(std::stoul(argv[3])));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
