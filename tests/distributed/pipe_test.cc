// The transport `pipe` between messengers at both ends, and with an end that sends invalid data.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/socket.h>

#include "distributed/clock.h"
#include "distributed/messenger.h"
#include "distributed/sandbox/packet_ring.h"
#include "distributed/sandbox/pipe_transport.h"

namespace thalweg::distributed {
namespace {

using ::testing::HasSubstr;

struct Answered {
  Status status;
  bool reached;
  std::string fields, body;
};

class PipeTest : public testing::Test {
 protected:
  PipeTest() { MakeEnds(); }
  ~PipeTest() override {
    client_.reset();
    server_.reset();
    CloseEnds();
    clock_.Stop();
  }
  void MakeEnds() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_), 0);
    auto memory = RingPair::Make();
    ASSERT_TRUE(memory.ok()) << memory.status();
    memory_ = *memory;
    auto rings = RingPair::Map(memory_);
    ASSERT_TRUE(rings.ok()) << rings.status();
    rings_ = *std::move(rings);
  }
  void CloseEnds() {
    for (int* fd : {&ends_[0], &ends_[1], &memory_}) {
      if (*fd >= 0) close(std::exchange(*fd, -1));
    }
  }
  std::string Address(int end) const { return StrCat("fd", ends_[end], "m", memory_); }
  // Writes a packet like the client's peer, but with any content.
  void SayToClient(const void* packet, size_t bytes) {
    RingWriter writer(rings_->to_caller());
    ASSERT_TRUE(writer.Put({{static_cast<const char*>(packet), bytes}}));
    RingClient();
  }
  // Fails with EPIPE if the client was awake and has already ended the connection.
  void RingClient() { EXPECT_TRUE(send(ends_[1], "", 1, MSG_NOSIGNAL) == 1 || errno == EPIPE) << errno; }
  // Makes the client, which calls at the first end.
  void MakeClient() {
    auto made = Messenger::Create(PipeTransport(), {"", "", 1u << 30, false, true}, &clock_, [](auto request) { request->Fail({}); });
    ASSERT_TRUE(made.ok()) << made.status();
    client_ = *std::move(made);
    address_ = Address(0);
  }
  void MakeServer(Messenger::Serve serve) {
    const std::string address = Address(1);
    auto made = Messenger::Create(PipeTransport(), {address, "", 1u << 30, false, false}, &clock_, std::move(serve));
    ASSERT_TRUE(made.ok()) << made.status();
    server_ = *std::move(made);
  }
  uint64_t Ask(const std::string& fields, std::string body, std::promise<Answered>* to, int64_t deadline = 0) {
    Call call;
    call.to = {address_, "the other end", 0};
    call.method = Method::kRun;
    call.fields.Raw(fields.data(), fields.size());
    call.body = Payload::Of(std::move(body));
    call.deadline = deadline;
    call.done = [to](const Reply& r) { to->set_value({r.outcome.status, r.reached, std::string(r.fields), std::string(r.body)}); };
    return client_->Start(std::move(call));
  }
  Answered Ask(const std::string& fields, std::string body) {
    std::promise<Answered> answered;
    Ask(fields, std::move(body), &answered);
    return answered.get_future().get();
  }

  int ends_[2] = {-1, -1}, memory_ = -1;
  std::unique_ptr<RingPair> rings_;
  SystemClock clock_;
  std::string address_;
  std::unique_ptr<Messenger> client_, server_;
};

void Echo(const std::shared_ptr<Incoming>& request) {
  const auto head = GetRequest(request->head());
  WireWriter fields;
  fields.Raw(head->fields.data(), head->fields.size());
  request->Answer(PutAnswer(fields), Payload::Of(std::string(request->body())));
}

std::string Pattern(size_t n) {
  std::string s(n, '\0');
  for (size_t i = 0; i < n; ++i) s[i] = char(i * 31 + i / 4096);
  return s;
}

TEST_F(PipeTest, CallsAreAnsweredWithHeadsAndBodiesOfAllSizes) {
  MakeClient();
  MakeServer(Echo);
  for (size_t n : {0u, 1u, 65535u, 65536u, 65537u, 5u << 20}) {
    for (size_t head : {0u, 4000u}) {
      const Answered a = Ask(std::string(head, 'x'), Pattern(n));
      ASSERT_TRUE(a.status.ok()) << a.status;
      EXPECT_EQ(a.fields.size(), head);
      EXPECT_TRUE(a.body == Pattern(n)) << n;
    }
  }
}

TEST_F(PipeTest, ManyCallsAtOnceAreEachAnsweredOnce) {
  MakeClient();
  MakeServer(Echo);
  std::vector<std::promise<Answered>> all(500);
  for (size_t i = 0; i < all.size(); ++i) Ask(std::to_string(i), Pattern(i % 7 == 0 ? 300'000 : i * 10), &all[i]);
  for (size_t i = 0; i < all.size(); ++i) {
    const Answered a = all[i].get_future().get();
    EXPECT_TRUE(a.status.ok()) << a.status;
    EXPECT_EQ(a.fields, std::to_string(i));
  }
}

TEST_F(PipeTest, AThreadThatWaitsDoesTheWork) {
  MakeClient();
  MakeServer(Echo);
  for (int i = 0; i < 200; ++i) {
    std::atomic<bool> over = false;
    std::string fields;
    Call call;
    call.to = {address_, "the other end", 0};
    call.fields.Number(uint32_t(i));
    call.done = [&](const Reply& r) {
      fields = r.fields;
      over.store(true, std::memory_order_release);
      client_->Wake();
    };
    client_->Start(std::move(call));
    while (!over.load(std::memory_order_acquire)) client_->Lend(over);
    uint32_t n = 0;
    ASSERT_EQ(fields.size(), sizeof n);
    std::memcpy(&n, fields.data(), sizeof n);
    EXPECT_EQ(n, uint32_t(i));
  }
}

TEST_F(PipeTest, ACallThatIsCancelledIsGoneAtTheOtherEnd) {
  std::promise<void> gone, came;
  std::shared_ptr<Incoming> kept;
  MakeClient();
  MakeServer([&](std::shared_ptr<Incoming> request) {
    request->WhenGone([&] { gone.set_value(); });
    kept = std::move(request);
    came.set_value();
  });
  std::promise<Answered> answered;
  const uint64_t name = Ask("kept", "", &answered);
  came.get_future().get();
  client_->Cancel(name);
  EXPECT_EQ(answered.get_future().get().status.code(), absl::StatusCode::kCancelled);
  gone.get_future().get();
  kept.reset();  // answers to a closed connection
}

TEST_F(PipeTest, AnEndThatIsGoneIsToldToAllWhoWait) {
  MakeClient();
  std::promise<Answered> a, b;
  Ask("1", "", &a);
  Ask("2", Pattern(1 << 20), &b);  // more than the socket holds
  close(std::exchange(ends_[1], -1));
  for (auto* p : {&a, &b}) {
    const Answered answered = p->get_future().get();
    EXPECT_EQ(answered.status.code(), absl::StatusCode::kUnavailable);
    EXPECT_FALSE(answered.reached);
    EXPECT_THAT(std::string(answered.status.message()), HasSubstr("is gone"));
  }
  EXPECT_EQ(Ask("3", "").status.code(), absl::StatusCode::kUnavailable);  // there is no second connection
}

// Messages that a compromised sandbox may send: none gets further than the connection.
TEST_F(PipeTest, WhatMakesNoSenseEndsTheConnection) {
  struct {
    uint32_t kind, head;
    uint64_t id, bytes;
    size_t follow;
    const char* what;
  } const cases[] = {{0, 0, 1, 0, 0, "a request of its own"},
                     {3, 0, 1, 0, 0, "a cancellation"},
                     {9, 0, 1, 0, 0, "no kind at all"},
                     {1, 5000, 1, 0, 5000, "a head that is too long"},
                     {1, 100, 1, 0, 10, "less head than it says"},
                     {1, 0, 1, 4, 8, "more body than it says"},
                     {2, 0, 1, 0, 0, "an empty piece"}};
  for (const auto& c : cases) {
    client_.reset();
    CloseEnds();
    MakeEnds();
    MakeClient();
    std::promise<Answered> answered;
    Ask("1", "", &answered);
    struct {
      uint32_t kind, head;
      uint64_t id, bytes;
      char rest[5000];
    } packet = {c.kind, c.head, c.id, c.bytes, {}};
    SayToClient(&packet, 24 + c.follow);
    EXPECT_EQ(answered.get_future().get().status.code(), absl::StatusCode::kUnavailable) << c.what;
  }
}

// Bytes that a sandbox may write into the memory that it shares with the task.
TEST_F(PipeTest, RingsThatMakeNoSenseEndTheConnection) {
  // Announces a packet of `bytes` bytes; only 20 bytes, with the announcement, are there.
  static const auto say = [](RingPair* r, uint32_t bytes) {
    std::memcpy(r->to_caller()->data, &bytes, sizeof bytes);
    r->to_caller()->state.written = 20;
  };
  struct {
    const char* what;
    void (*harm)(RingPair*);
  } const cases[] = {{"a packet longer than any", [](RingPair* r) { say(r, 1u << 20); }},
                     {"a packet of nothing", [](RingPair* r) { say(r, 0); }},
                     {"more than is there", [](RingPair* r) { say(r, 24); }},
                     {"less than a header", [](RingPair* r) { say(r, 16); }},
                     {"more than the ring holds", [](RingPair* r) { r->to_caller()->state.written = kRingBytes + 1; }},
                     {"less than before", [](RingPair* r) { r->to_caller()->state.written = ~uint64_t{0}; }},
                     {"what was never sent is read", [](RingPair* r) { r->to_server()->state.read = 1u << 20; }}};
  for (const auto& c : cases) {
    client_.reset();
    CloseEnds();
    MakeEnds();
    MakeClient();
    std::promise<Answered> answered, next;
    Ask("1", "", &answered);
    while (rings_->to_server()->state.written == 0) std::this_thread::yield();
    c.harm(rings_.get());
    RingClient();
    Ask("2", "", &next);
    EXPECT_EQ(answered.get_future().get().status.code(), absl::StatusCode::kUnavailable) << c.what;
    EXPECT_EQ(next.get_future().get().status.code(), absl::StatusCode::kUnavailable) << c.what;
  }
}

TEST_F(PipeTest, WhatIsLateIsDroppedAndWhatWasSaidBeforeTheEndIsHeard) {
  MakeClient();
  std::promise<Answered> answered;
  Ask("1", "", &answered);
  while (rings_->to_server()->state.written == 0) std::this_thread::yield();
  struct {
    uint32_t kind, head;
    uint64_t id, bytes;
    char rest[8];
  } packet = {2, 0, 77, 0, {}};  // a piece for a call that is over
  RingWriter writer(rings_->to_caller());
  const auto say = [&](size_t bytes) { ASSERT_TRUE(writer.Put({{reinterpret_cast<const char*>(&packet), bytes}})); };
  say(30);
  packet.kind = 1;  // an answer to it
  say(24);
  std::memcpy(&packet.id, rings_->to_server()->data + 4 + 8, sizeof packet.id);
  packet.head = 2;  // an OK status and nothing more
  say(26);
  close(std::exchange(ends_[1], -1));
  const Answered a = answered.get_future().get();
  EXPECT_TRUE(a.status.ok()) << a.status;
}

TEST_F(PipeTest, OnlyASocketOfPacketsAndItsMemoryAreTaken) {
  const std::string socket = "fd" + std::to_string(ends_[1]);
  for (const std::string& address : {socket + "x", std::string(), std::string("fd"), std::string("fd99999m") + std::to_string(memory_),
                                     std::string("fd-1"), std::string("3"), socket, socket + "m", socket + "m" + std::to_string(ends_[0]),
                                     socket + "m99999", "fd" + std::to_string(memory_) + "m" + std::to_string(memory_)}) {
    const auto made = Messenger::Create(PipeTransport(), {address, "", 1u << 20, false, false}, &clock_, Echo);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

TEST_F(PipeTest, AnEndThatAnswersMakesNoCalls) {
  MakeServer(Echo);
  std::promise<Answered> answered;
  Call call;
  call.to = {"fd0", "another task", 0};
  call.done = [&](const Reply& r) { answered.set_value({r.outcome.status, r.reached, "", ""}); };
  server_->Start(std::move(call));
  const Answered a = answered.get_future().get();
  EXPECT_EQ(a.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(a.status.message()), HasSubstr("one task"));
}

}  // namespace
}  // namespace thalweg::distributed
