// The values that a step requests from other tasks, when answers come late or tasks are lost. The
// transport does nothing by itself, so that the test sets the order of events.
#include "distributed/step_meeting.h"

#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "distributed/mailbox.h"
#include "distributed/messenger.h"
#include "framework/base/shown.h"
#include "framework/runtime/thread_pool.h"
#include "tests/distributed/simulated_world.h"

namespace thalweg::distributed {
namespace {

using Code = absl::StatusCode;

// Keeps calls in progress until the test ends them.
class HeldTransport {
 public:
  HeldTransport() {
    role_ = std::make_shared<TransportRole>();
    role_->name = "held";
    role_->host = &host_.c;
    tw_transport_def& d = role_->def;
    d.size = sizeof d;
    d.user = this;
    d.security = TW_TRANSPORT_SAME_HOST;
    d.poll = [](const tw_host*, void*, uint64_t, uint32_t (*)(void*), void*) -> uint32_t { return 0; };
    d.wake = [](const tw_host*, void*) {};
    d.listen = [](const tw_host*, void* user, const tw_endpoint_config*, tw_sink* bound, void** out) {
      *out = user;
      return bound->put(bound, "here", 4);
    };
    d.connect = [](const tw_host*, void* endpoint, const char*, uint64_t, void** out) -> tw_status* {
      *out = endpoint;
      return nullptr;
    };
    d.call = [](const tw_host*, void* peer, uint64_t id, const tw_message* m) -> tw_status* {
      static_cast<HeldTransport*>(peer)->calls.emplace(id, *m);
      return nullptr;
    };
    d.cancel = [](const tw_host*, void* peer, uint64_t id) { static_cast<HeldTransport*>(peer)->cancelled.push_back(id); };
    d.close_peer = [](const tw_host*, void*) {};
    d.close = [](const tw_host*, void*) {};
  }
  std::shared_ptr<const TransportRole> role() const { return role_; }
  // Delivers the head of an answer with a body of that size; returns the memory for the body.
  static void* Place(const tw_message& m, const std::string& head, uint64_t bytes) {
    const tw_incoming in = {TW_SIZED(tw_incoming), 1, TW_S("somebody"), head.data(), head.size(), nullptr, bytes, nullptr};
    void *data = nullptr, *region = nullptr;
    tw_ask_place(m.place, m.arg, &in, &data, &region);
    return data;
  }
  void End(uint64_t id, Code code) {
    const tw_message m = calls.at(id);
    calls.erase(id);
    m.done(m.arg, code == Code::kOk ? nullptr : ToC(Status(code, "was ended")));
  }

  std::map<uint64_t, tw_message> calls;  // by name
  std::vector<uint64_t> cancelled;

 private:
  testing_support::FakeHost host_;
  std::shared_ptr<TransportRole> role_;
};

class StepMeetingTest : public testing::Test {
 protected:
  StepMeetingTest() {
    auto m = Messenger::Create(transport_.role(), {"here", "", 1 << 20}, &clock_, [](std::shared_ptr<Incoming>) {});
    EXPECT_TRUE(m.ok()) << m.status();
    messenger_ = *std::move(m);
    pusher_.emplace(&mailbox_, messenger_.get(), 1000);
    mailbox_.Open(kSession);
    inbox_.Open(kSession);
  }
  ~StepMeetingTest() override {
    messenger_->Close();
    clock_.Stop();
  }
  std::shared_ptr<StepMeeting> Meeting(Routes routes) {
    const Channels channels{messenger_.get(), &mailbox_, &inbox_, &*pusher_};
    return std::make_shared<StepMeeting>(kSession, 1, std::make_shared<const Routes>(std::move(routes)), world_.now + 1000, channels);
  }
  static Routes Asked(const std::map<std::string, Destination>& from) {
    Routes routes;
    for (const auto& [key, destination] : from) routes.sources.emplace(key, Source{destination});
    return routes;
  }
  struct Received {
    int times = 0;
    Status status;
    Tensor value;
  };
  static std::shared_ptr<Received> Receive(StepMeeting* meeting, const std::string& key) {
    auto received = std::make_shared<Received>();
    meeting->Receive(key, "", [received](Status s, Tensor value) { *received = {received->times + 1, std::move(s), std::move(value)}; });
    return received;
  }
  Routes Pushed() const {
    Routes routes;
    for (const char* key : {"v", "dead"}) routes.sources.emplace(key, Source{there_, true});
    return routes;
  }
  Routes Sends() const {
    Routes routes;
    for (const char* key : {"v", "w"}) routes.sinks.emplace(key, Sink{there_});
    return routes;
  }
  static Tensor Value() { return *Tensor::Vector<float>(TW_FLOAT, std::vector<float>{1, 2, 3}); }
  static std::string HeadOf(const Tensor& value) {
    WireWriter fields;
    PutTensorHead(value, &fields);
    return PutAnswer(fields);
  }

  HeldTransport transport_;
  World world_{1};
  SimulatedClock clock_{&world_};
  const SessionName kSession{"client", 5};
  const Destination there_{"there", "the task there", 1};
  Mailbox mailbox_;
  Inbox inbox_{1000};
  std::unique_ptr<Messenger> messenger_;
  std::optional<Pusher> pusher_;
};

TEST_F(StepMeetingTest, AValueGoesWhereItsAnswerSaid) {
  auto meeting = Meeting(Asked({{"v", {"there", "the task there", 1}}}));
  auto received = Receive(meeting.get(), "v");
  ASSERT_EQ(transport_.calls.size(), 1u);
  const std::vector<float> sent = {1, 2, 3};
  const Tensor value = *Tensor::Vector<float>(TW_FLOAT, sent);
  void* data = HeldTransport::Place(transport_.calls.begin()->second, HeadOf(value), value.bytes());
  ASSERT_NE(data, nullptr);
  std::memcpy(data, value.data(), value.bytes());
  transport_.End(transport_.calls.begin()->first, Code::kOk);
  ASSERT_EQ(received->times, 1);
  ASSERT_TRUE(received->status.ok()) << received->status;
  EXPECT_EQ(received->value.data(), data);
}

// The step's time is over when half of the value is there. The transport is told, and writes until
// it has confirmed.
TEST_F(StepMeetingTest, AValueThatComesTooLateGoesToMemoryThatIsStillThere) {
  auto meeting = Meeting(Asked({{"v", {"there", "the task there", 1}}}));
  auto received = Receive(meeting.get(), "v");
  const Tensor value = *Tensor::Vector<float>(TW_FLOAT, std::vector<float>(1000, 1));
  const auto [name, message] = *transport_.calls.begin();
  auto* data = static_cast<char*>(HeldTransport::Place(message, HeadOf(value), value.bytes()));
  ASSERT_NE(data, nullptr);
  std::memset(data + value.bytes() / 2, 1, value.bytes() / 2);
  world_.RunUntil(world_.now + 2000);
  ASSERT_EQ(received->times, 1);
  EXPECT_EQ(received->status.code(), Code::kDeadlineExceeded) << received->status;
  EXPECT_FALSE(received->value);
  EXPECT_EQ(transport_.cancelled, std::vector<uint64_t>{name});
  meeting.reset();
  const Tensor other = *Tensor::Vector<float>(TW_FLOAT, std::vector<float>(1000, 7));
  EXPECT_NE(other.data(), data) << "the memory was given to somebody else";
  std::memset(data, 1, value.bytes() / 2);
  transport_.End(name, Code::kCancelled);
  EXPECT_EQ(received->times, 1);
}

// A restarted task has its old name, and is another process.
TEST_F(StepMeetingTest, WhatALostProcessOwedIsNotAskedOfTheOneThatCameAfterIt) {
  auto meeting = Meeting(Asked({{"old", {"there", "the task there", 1}}, {"new", {"there", "the task there", 2}}}));
  auto old = Receive(meeting.get(), "old");
  const uint64_t name = transport_.calls.begin()->first;
  auto fresh = Receive(meeting.get(), "new");
  ASSERT_EQ(transport_.calls.size(), 2u);
  meeting->PeerLost({"the task there", 1}, Status(Code::kUnavailable, "it has not answered for ten seconds"));
  EXPECT_EQ(transport_.cancelled, std::vector<uint64_t>{name});
  transport_.End(name, Code::kCancelled);
  ASSERT_EQ(old->times, 1);
  EXPECT_EQ(testing_support::Text(old->status), "it has not answered for ten seconds");
  EXPECT_EQ(fresh->times, 0);
  transport_.End(transport_.calls.begin()->first, Code::kUnavailable);
  EXPECT_EQ(fresh->times, 1);
  EXPECT_NE(testing_support::Text(fresh->status), testing_support::Text(old->status));
}

// ---- Values that nobody requests ----

TEST_F(StepMeetingTest, AValueThatCameBeforeItIsWantedIsThere) {
  auto meeting = Meeting(Pushed());
  EXPECT_TRUE(inbox_.Put(kSession, 1, {{"v", Value()}}).ok());
  auto received = Receive(meeting.get(), "v");
  ASSERT_EQ(received->times, 1);
  EXPECT_TRUE(received->value);
  EXPECT_TRUE(transport_.calls.empty());
}

TEST_F(StepMeetingTest, AValueThatComesWhileItIsWaitedForEndsTheWaitAndADeadOneToo) {
  auto meeting = Meeting(Pushed());
  auto received = Receive(meeting.get(), "v"), dead = Receive(meeting.get(), "dead");
  EXPECT_EQ(received->times, 0);
  EXPECT_TRUE(inbox_.Put(kSession, 1, {{"v", Value()}, {"dead", Tensor(), PushedValue::kDead}}).ok());
  EXPECT_EQ(received->times, 1);
  EXPECT_EQ(dead->times, 1);
  EXPECT_TRUE(dead->status.ok());
  EXPECT_FALSE(dead->value);
  EXPECT_EQ(inbox_.size(), 0u);
}

TEST_F(StepMeetingTest, AValueThatDoesNotComeIsAskedForAndTakenOnce) {
  auto meeting = Meeting(Pushed());
  auto received = Receive(meeting.get(), "v");
  meeting->AskLate(world_.now);
  EXPECT_TRUE(transport_.calls.empty()) << "it is not late yet";
  meeting->AskLate(world_.now + 1);
  meeting->AskLate(world_.now + 1);
  ASSERT_EQ(transport_.calls.size(), 1u);
  const uint64_t name = transport_.calls.begin()->first;
  EXPECT_TRUE(inbox_.Put(kSession, 1, {{"v", Value()}}).ok());
  EXPECT_EQ(received->times, 1);
  EXPECT_EQ(transport_.cancelled, std::vector<uint64_t>{name});
  transport_.End(name, Code::kCancelled);
  EXPECT_EQ(received->times, 1);
}

TEST_F(StepMeetingTest, AWaitForWhatComesByItselfEndsWithTheStepsTime) {
  auto meeting = Meeting(Pushed());
  auto received = Receive(meeting.get(), "v");
  world_.RunUntil(world_.now + 2000);
  ASSERT_EQ(received->times, 1);
  EXPECT_EQ(received->status.code(), Code::kDeadlineExceeded) << received->status;
  EXPECT_NE(testing_support::Text(received->status).find("the task there"), std::string::npos);
  for (const auto& [name, call] : std::map(transport_.calls)) transport_.End(name, Code::kCancelled);
  EXPECT_EQ(inbox_.size(), 0u);
}

TEST_F(StepMeetingTest, AFailureOrALostTaskEndsTheWait) {
  auto meeting = Meeting(Pushed());
  auto received = Receive(meeting.get(), "v");
  meeting->PeerLost({"the task there", 2}, Status(Code::kUnavailable, "another one"));
  EXPECT_EQ(received->times, 0);
  meeting->PeerLost({"the task there", 1}, Status(Code::kUnavailable, "it is silent"));
  ASSERT_EQ(received->times, 1);
  EXPECT_EQ(testing_support::Text(received->status), "it is silent");
  auto second = Receive(meeting.get(), "dead");
  meeting->Abort(Status(Code::kAborted, "it is over"), true);
  ASSERT_EQ(second->times, 1);
  EXPECT_EQ(testing_support::Text(second->status), "it is over");
  EXPECT_FALSE(inbox_.Put(kSession, 1, {{"v", Value()}}).ok());
  EXPECT_EQ(inbox_.dropped(), 1u);
  EXPECT_EQ(inbox_.size(), 0u);
}

TEST_F(StepMeetingTest, WhatIsSentUnaskedGoesTogetherAndWaitsInTheMailboxOnlyWhereItWasNotTaken) {
  const struct {
    Code code;
    std::vector<std::string> refused;
    uint64_t left;
  } cases[] = {{Code::kOk, {}, 0}, {Code::kOk, {"v"}, 1}, {Code::kUnavailable, {}, 2}};
  for (const auto& c : cases) {
    auto meeting = Meeting(Sends());
    meeting->Hold();
    EXPECT_TRUE(meeting->Send("v", "", Value()).ok());
    EXPECT_TRUE(meeting->Send("w", "3", Value()).ok());
    EXPECT_TRUE(transport_.calls.empty());
    meeting->Release();
    ASSERT_EQ(transport_.calls.size(), 1u);
    const auto [name, message] = *transport_.calls.begin();
    WireReader body({static_cast<const char*>(message.body), size_t(message.bytes)});
    const auto values = GetPushed(&body);
    ASSERT_TRUE(values.ok()) << values.status();
    ASSERT_EQ(values->size(), 2u);
    EXPECT_EQ((*values)[1].key, "w:3");
    WireWriter fields;
    if (!c.refused.empty()) fields.Texts(c.refused);
    HeldTransport::Place(message, PutAnswer(fields), 0);
    transport_.End(name, c.code);
    EXPECT_EQ(mailbox_.size(), c.left);
    mailbox_.Abort(kSession, 1, Status(Code::kAborted, "next"));
    mailbox_.Close(kSession, Status(Code::kAborted, "next"));
    mailbox_.Open(kSession);
  }
}

TEST_F(StepMeetingTest, WhatIsBeyondTheLimitIsOnlyTold) {
  auto meeting = Meeting(Sends());
  const Tensor large = *Tensor::Vector<float>(TW_FLOAT, std::vector<float>(200, 1));
  EXPECT_TRUE(meeting->Send("v", "", large).ok());
  EXPECT_EQ(mailbox_.size(), 0u);
  EXPECT_TRUE(meeting->Send("w", "", large).ok());
  EXPECT_EQ(mailbox_.size(), 1u);
  ASSERT_EQ(transport_.calls.size(), 2u);
  const tw_message& second = transport_.calls.rbegin()->second;
  WireReader body({static_cast<const char*>(second.body), size_t(second.bytes)});
  const auto told = GetPushed(&body);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ((*told)[0].state, PushedValue::kAsk);
  for (const auto& [name, call] : std::map(transport_.calls)) transport_.End(name, Code::kAborted);
  EXPECT_EQ(mailbox_.size(), 1u) << "what was sent went with its step";
}

TEST_F(StepMeetingTest, WhoIsToldThatThereIsAValueAsksForIt) {
  auto meeting = Meeting(Pushed());
  auto received = Receive(meeting.get(), "v");
  EXPECT_TRUE(inbox_.Put(kSession, 1, {{"v", Tensor(), PushedValue::kAsk}, {"dead", Tensor(), PushedValue::kAsk}}).ok());
  EXPECT_EQ(transport_.calls.size(), 1u);
  auto later = Receive(meeting.get(), "dead");
  EXPECT_EQ(transport_.calls.size(), 2u);
  for (const auto& [name, call] : std::map(transport_.calls)) transport_.End(name, Code::kUnavailable);
  EXPECT_EQ(received->times, 1);
  EXPECT_EQ(later->times, 1);
  EXPECT_EQ(inbox_.size(), 0u);
}

TEST_F(StepMeetingTest, AnAnswerCarriesWhatItsClientHasTasksFor) {
  Routes routes = Sends();
  routes.sinks.at("v").carried = true;
  auto meeting = Meeting(routes);
  meeting->Hold();
  EXPECT_TRUE(meeting->Send("v", "", Value()).ok());
  EXPECT_TRUE(meeting->Send("w", "", Value()).ok());
  const auto carried = meeting->TakeCarried();
  ASSERT_EQ(carried.size(), 1u);
  EXPECT_EQ(carried[0].incarnation, 1u);
  EXPECT_EQ(carried[0].values[0].key, "v");
  EXPECT_EQ(transport_.calls.size(), 1u);
  WireWriter w;
  ASSERT_TRUE(PutCarried(carried, &w).ok());
  EXPECT_TRUE(GetCarried(w.bytes()).ok());
  for (size_t n = 0; n < w.bytes().size(); ++n) EXPECT_FALSE(GetCarried(w.bytes().substr(0, n)).ok());
}

// ---- The inbox alone ----

TEST_F(StepMeetingTest, TheInboxHoldsSoManyBytesAndNoMore) {
  const Tensor large = *Tensor::Vector<float>(TW_FLOAT, std::vector<float>(100, 1));
  const auto refused = inbox_.Put(kSession, 7, {{"a", large}, {"b", large}, {"c", large}});
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(*refused, (std::vector<std::string>{"b", "c"}));
  PushedValue out;
  EXPECT_EQ(inbox_.Take(kSession, 7, "b", [](PushedValue) {}, &out), Inbox::Found::kAsk);
  EXPECT_EQ(inbox_.Take(kSession, 7, "a", [](PushedValue) {}, &out), Inbox::Found::kHere);
  EXPECT_TRUE(inbox_.Put(kSession, 7, {{"c", large}})->empty()) << "there is room again";
  inbox_.Forget(kSession, 8);
  EXPECT_EQ(inbox_.size(), 0u);
  EXPECT_FALSE(inbox_.Put(kSession, 7, {{"c", large}}).ok());
  EXPECT_FALSE(inbox_.Put({"another client", 5}, 9, {{"c", large}}).ok());
  EXPECT_EQ(inbox_.dropped(), 3u);
  for (int step = 10; step < 1000; ++step) EXPECT_TRUE(inbox_.Put(kSession, uint64_t(step), {{"a", Value()}}).ok());
  EXPECT_LT(inbox_.size(), 10u);
}

TEST_F(StepMeetingTest, ALongStepKeepsNoRoomForThoseThatCameAndWentAfterIt) {
  auto meeting = Meeting(Pushed());
  auto received = Receive(meeting.get(), "v");
  PushedValue out;
  for (uint64_t step = 2; step < 1000; ++step) {
    ASSERT_TRUE(inbox_.Put(kSession, step, {{"a", Value()}})->empty()) << step;
    ASSERT_EQ(inbox_.Take(kSession, step, "a", [](PushedValue) {}, &out), Inbox::Found::kHere) << step;
    ASSERT_EQ(inbox_.Take(kSession, step, "b", [](PushedValue) {}, &out), Inbox::Found::kLater) << step;
    if (step % 2) {
      inbox_.Leave(kSession, step, "b");
    } else {
      ASSERT_TRUE(inbox_.Put(kSession, step, {{"b", Value()}})->empty()) << step;
    }
  }
  EXPECT_TRUE(inbox_.Put(kSession, 1, {{"v", Value()}})->empty());
  EXPECT_EQ(received->times, 1);
}

TEST_F(StepMeetingTest, WhatAFullInboxRefusedIsAskedForAtOnce) {
  PushedValue out;
  for (uint64_t step = 2; step < 6; ++step) inbox_.Take(kSession, step, "a", [](PushedValue) {}, &out);
  ASSERT_EQ(inbox_.Put(kSession, 9, {{"a", Value()}})->size(), 1u) << "there is room for no step more";
  EXPECT_EQ(inbox_.Take(kSession, 9, "a", [](PushedValue) {}, &out), Inbox::Found::kAsk);
  EXPECT_EQ(inbox_.Take(kSession, 10, "a", [](PushedValue) {}, &out), Inbox::Found::kLater);
}

// ---- The pusher alone ----

TEST_F(StepMeetingTest, APushThatNobodyAnswersEndsLongBeforeALongStep) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_TRUE(pusher_->Push(there_, kSession, 1, world_.now + 3600 * kSecond, {{"v", Value()}}).ok());
  ASSERT_EQ(transport_.calls.size(), 1u);
  world_.RunUntil(world_.now + 61 * kSecond);
  EXPECT_EQ(transport_.cancelled.size(), 1u);
  transport_.End(transport_.calls.begin()->first, Code::kCancelled);
  EXPECT_EQ(mailbox_.size(), 1u) << "it waits to be asked for";
}

TEST_F(StepMeetingTest, SoManyBytesAndNoMoreAreOnTheirWayToAllTasks) {
  const Tensor large = *Tensor::Vector<float>(TW_FLOAT, std::vector<float>(200, 1));
  for (uint64_t k = 1; k <= 6; ++k) {
    EXPECT_TRUE(pusher_->Push({"there", StrCat("task ", k), k}, kSession, 1, 0, {{StrCat("v", k), large}}).ok());
    EXPECT_EQ(mailbox_.size(), k > 4 ? k - 4 : 0) << k;
  }
  const std::map calls = transport_.calls;
  EXPECT_EQ(calls.size(), 6u) << "the others are told of it";
  for (const auto& [name, call] : calls) {
    HeldTransport::Place(call, PutAnswer(WireWriter()), 0);
    transport_.End(name, Code::kOk);
  }
  EXPECT_TRUE(pusher_->Push(there_, kSession, 1, 0, {{"next", large}}).ok());
  EXPECT_EQ(mailbox_.size(), 2u) << "there is room again";
  transport_.End(transport_.calls.begin()->first, Code::kOk);
}

// ---- Memory accounts ----

// The session has this budget, which is charged for the values of its steps here.
class PaidTest : public StepMeetingTest {
 protected:
  static constexpr uint64_t kLimit = 1 << 20;
  PaidTest() { Reopen(); }
  ~PaidTest() override {
    mailbox_.Close(kSession, Status(Code::kAborted, "over"));
    inbox_.Close(kSession);
    EXPECT_EQ(budget_->used(), 0u);
    budget_->Release();
  }
  void Reopen() {
    mailbox_.Close(kSession, Status(Code::kAborted, "next"));
    inbox_.Close(kSession);
    mailbox_.Open(kSession, budget_);
    inbox_.Open(kSession, budget_);
  }
  std::shared_ptr<StepMeeting> Paid(Routes routes, uint64_t step = 1) {
    const Channels channels{messenger_.get(), &mailbox_, &inbox_, &*pusher_};
    return std::make_shared<StepMeeting>(kSession, step, std::make_shared<const Routes>(std::move(routes)), 0, channels, nullptr, nullptr,
                                         budget_);
  }
  static Tensor Floats(uint64_t bytes) { return *Tensor::Vector<float>(TW_FLOAT, std::vector<float>(bytes / 4, 1)); }
  // Returns the fields of the answer to a push of these values.
  std::vector<std::string> Push(uint64_t step, const std::vector<PushedValue>& values) {
    WireWriter fields, body;
    PushRequest{kSession.id, step, kSession.owner}.Put(&fields);
    EXPECT_TRUE(PutPushed(values, &body).ok());
    std::string head;
    const auto request = Incoming::Local("there", Payload::Of(body.Take()), [&](std::string h, const Payload&) { head = std::move(h); });
    inbox_.Serve(fields.bytes(), request.get());
    std::string_view rest;
    const auto outcome = GetAnswer(head, &rest);
    EXPECT_TRUE(outcome.ok() && outcome->status.ok()) << outcome->status;
    return rest.empty() ? std::vector<std::string>() : WireReader(rest).Texts();
  }
  MemoryBudget* const budget_ = MemoryBudget::Create(kLimit);
};

TEST_F(PaidTest, AnAnswerThatTheSessionHasNoMemoryForIsNotTaken) {
  const Tensor half = Floats(kLimit / 3 * 2);
  const int64_t count = 64;
  Tensor words = *Tensor::Make(TW_STRING, &count, 1);
  for (uint64_t k = 0; k < 64; ++k) ASSERT_TRUE(words.SetString(k, std::string(kLimit / 80, 'x')).ok());
  for (const Tensor& value : {half, words}) {
    const std::string head = HeadOf(value);
    const uint64_t bytes = value.dtype() == TW_STRING ? TensorBody(value)->bytes : value.bytes();
    auto meeting = Paid(Asked({{"v", there_}, {"w", there_}}));
    auto first = Receive(meeting.get(), "v"), second = Receive(meeting.get(), "w");
    ASSERT_EQ(transport_.calls.size(), 2u);
    const std::map calls = transport_.calls;
    EXPECT_NE(HeldTransport::Place(calls.begin()->second, head, bytes), nullptr);
    EXPECT_GE(budget_->used(), bytes - 4096) << "it is paid for before it is there";
    EXPECT_EQ(HeldTransport::Place(calls.rbegin()->second, head, bytes), nullptr);
    transport_.End(calls.rbegin()->first, Code::kOk);
    ASSERT_EQ(second->times, 1);
    EXPECT_EQ(second->status.code(), Code::kResourceExhausted);
    const std::string text(testing_support::Text(second->status));
    for (const char* part : {"the task there", "value 'w'", "the session holds"}) EXPECT_NE(text.find(part), text.npos) << text;
    transport_.End(calls.begin()->first, Code::kCancelled);
    EXPECT_EQ(first->times, 1);
  }
  EXPECT_EQ(budget_->used(), 0u);
}

TEST_F(PaidTest, AValueThatIsPushedAndThatTheSessionHasNoMemoryForStaysWithItsSender) {
  // A receiver that waits for the value must request it.
  auto meeting = Paid(Pushed(), 2);
  auto received = Receive(meeting.get(), "v");
  EXPECT_TRUE(transport_.calls.empty());
  EXPECT_EQ(Push(2, {{"dead", Tensor(), PushedValue::kDead}, {"v", Floats(2 * kLimit)}}), std::vector<std::string>{"v"});
  ASSERT_EQ(transport_.calls.size(), 1u);
  transport_.End(transport_.calls.begin()->first, Code::kUnavailable);
  EXPECT_EQ(received->times, 1);
  // Waiting values are charged to the session, whatever the inbox's own limit.
  std::vector<PushedValue> taken;
  for (int k = 0; k < 4; ++k) {
    auto later = Paid(Pushed(), uint64_t(10 + k));
    later->Receive("v", "", [&](const Status&, Tensor v) { taken.push_back({"v", std::move(v)}); });
    const bool fits = k < 2;
    EXPECT_EQ(Push(uint64_t(10 + k), {{"v", Floats(kLimit / 5 * 2)}}).empty(), fits) << k;
    EXPECT_EQ(taken.size(), fits ? size_t(k) + 1 : 2u);
  }
  EXPECT_GT(budget_->used(), kLimit / 5 * 4);
  taken.clear();
  EXPECT_LT(budget_->used(), kLimit / 2);
  for (const auto& [name, call] : std::map(transport_.calls)) transport_.End(name, Code::kUnavailable);
}

TEST_F(PaidTest, AMillionStepsBesideOneThatWaitsCostNothing) {
  Push(1, {{"v", Value()}});
  ASSERT_TRUE(mailbox_.Put(kSession, 1, "v", Value()).ok());
  const uint64_t before = budget_->used();
  for (uint64_t step = 2; step < 1'000'000; ++step) {
    mailbox_.Abort(kSession, step, Status(Code::kAborted, std::string(50, 'x')));
    inbox_.Abort(kSession, step);
  }
  EXPECT_LE(budget_->used(), before + (128 << 10));
  EXPECT_FALSE(mailbox_.Put(kSession, 5, "v", Value()).ok());
  EXPECT_FALSE(inbox_.Put(kSession, 5, {{"v", Value()}}).ok());
  mailbox_.Forget(kSession, 1'000'000);
  inbox_.Forget(kSession, 1'000'000);
  EXPECT_EQ(mailbox_.size() + inbox_.size(), 0u);
}

TEST_F(PaidTest, ValuesWithoutEndThatNobodyTakesEndInAnError) {
  auto meeting = Paid({});
  const Tensor one = Value();  // one tensor, sent repeatedly, as a loop does
  Status s;
  uint64_t sent = 0;
  for (; sent < 100'000 && s.ok(); ++sent) s = meeting->Send("v", std::to_string(sent), one);
  EXPECT_EQ(s.code(), Code::kResourceExhausted);
  EXPECT_LT(sent, kLimit / 100);
  const std::string text(testing_support::Text(s));
  for (const char* part : {"value 'v:", "the session holds"}) EXPECT_NE(text.find(part), text.npos) << text;
  // The same for pushes: values are first in transit, then wait in the mailbox.
  Reopen();
  pusher_.emplace(&mailbox_, messenger_.get());
  meeting = Paid(Sends());
  s = Status();
  for (sent = 0; sent < 100'000 && s.ok(); ++sent) s = meeting->Send("v", std::to_string(sent), one);
  EXPECT_EQ(s.code(), Code::kResourceExhausted) << s;
  EXPECT_LT(transport_.calls.size(), kLimit / 1000);
  for (const auto& [name, call] : std::map(transport_.calls)) transport_.End(name, Code::kAborted);
}

TEST_F(PaidTest, WaitingForVeryManyValuesIsPaidFor) {
  Routes routes;
  routes.sources.emplace("v", Source{there_, true});
  auto meeting = Paid(std::move(routes));
  std::vector<Status> ends(10'000);
  for (size_t k = 0; k < ends.size(); ++k) {
    meeting->Receive("v", std::to_string(k), [&, k](Status s, const Tensor&) { ends[k] = std::move(s); });
  }
  EXPECT_EQ(ends.back().code(), Code::kResourceExhausted);
  EXPECT_NE(testing_support::Text(ends.back()).find("value 'v:9999' from the task there"), std::string::npos) << ends.back();
  meeting->Abort(Status(Code::kAborted, "it is over"), true);
  EXPECT_EQ(ends.front().code(), Code::kAborted);
}

TEST(StepSet, KeepsRanges) {
  StepSet set;
  for (const uint64_t step : {5u, 7u, 6u, 1u, 2u, 4u, 2u}) EXPECT_TRUE(set.Insert(step));
  EXPECT_EQ(set.ranges(), 2u);
  for (uint64_t step = 0; step < 10; ++step) EXPECT_EQ(set.Contains(step), step != 0 && step != 3 && step < 8) << step;
  EXPECT_TRUE(set.Insert(3));
  EXPECT_EQ(set.ranges(), 1u);
  EXPECT_TRUE(set.Insert(UINT64_MAX));
  EXPECT_TRUE(set.Insert(UINT64_MAX - 1));
  EXPECT_TRUE(set.Insert(0));
  EXPECT_EQ(set.ranges(), 2u);
  set.Forget(8);
  EXPECT_EQ(set.ranges(), 1u);
  EXPECT_FALSE(set.Contains(0));
  EXPECT_TRUE(set.Contains(UINT64_MAX));
}

// Compares it with a std::set of numbers; the meter must be balanced at the end.
TEST(StepSet, IsASetInAnyOrder) {
  MemoryBudget* const budget = MemoryBudget::Create(1 << 20);
  {
    Meter paid(budget);
    StepSet set;
    std::set<uint64_t> plain;
    uint64_t x = 1;
    for (int k = 0; k < 3000; ++k) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      const uint64_t step = (x >> 33) % 4000;
      EXPECT_TRUE(set.Insert(step, &paid));
      plain.insert(step);
      EXPECT_EQ(paid.used(), set.ranges() * StepSet::kRange);
    }
    for (uint64_t step = 0; step < 4000; ++step) EXPECT_EQ(set.Contains(step), plain.contains(step));
    set.Forget(4000, &paid);
    EXPECT_EQ(paid.used(), 0u);
  }
  EXPECT_EQ(budget->used(), 0u);
  budget->Release();
}

TEST(EndedSteps, KeepTheReasonsOfTheLast) {
  EndedSteps ended;
  for (uint64_t step = 1; step <= 1000; ++step) EXPECT_TRUE(ended.Add(step, Status(Code::kUnavailable, StrCat("why ", step)), nullptr));
  EXPECT_EQ(testing_support::Text(ended.Why(1000)), "why 1000");
  EXPECT_EQ(ended.Why(1).code(), Code::kAborted);
  EXPECT_EQ(ended.ranges(), 1u);
  ended.Forget(1001, nullptr);
  EXPECT_FALSE(ended.Contains(1000));
}

// ---- Threads ----

// The work that a step starts when a value arrives.
struct Follows final : ThreadPool::Task {
  void Go() override { thread.set_value(std::this_thread::get_id()); }
  std::promise<std::thread::id> thread;
};

TEST_F(StepMeetingTest, OnlyWhatFollowsOnSmallValuesRunsOnTheThreadThatBringsThem) {
  ThreadPool pool(2);
  ASSERT_TRUE(pool.HasThreadForTasks());
  const Channels channels{messenger_.get(), &mailbox_, &inbox_, &*pusher_};
  for (const bool lent : {false, true}) {
    for (const bool large : {false, true}) {
      inbox_.Close(kSession);
      inbox_.Open(kSession);
      auto meeting = std::make_shared<StepMeeting>(kSession, 1, std::make_shared<const Routes>(Pushed()), 0, channels, nullptr,
                                                   lent ? std::make_shared<LentTime>() : nullptr);
      Follows follows;
      meeting->Receive("v", "", [&](const Status&, const Tensor&) { pool.Start(&follows); });
      const Tensor value = large ? *Tensor::Vector<float>(TW_FLOAT, std::vector<float>(StepMeeting::kLightValue / 4 + 1, 1)) : Value();
      EXPECT_TRUE(inbox_.Put(kSession, 1, {{"v", value}}).ok());
      const bool here = follows.thread.get_future().get() == std::this_thread::get_id();
      EXPECT_EQ(here, lent && !large) << lent << " " << large;
    }
  }
}

TEST_F(StepMeetingTest, TimeThatIsTakenForWhatFollowsIsCounted) {
  const auto lent = std::make_shared<LentTime>();
  const Channels channels{messenger_.get(), &mailbox_, &inbox_, &*pusher_};
  auto meeting = std::make_shared<StepMeeting>(kSession, 1, std::make_shared<const Routes>(Pushed()), 0, channels, nullptr, lent);
  meeting->Receive("v", "", [&](const Status&, const Tensor&) { world_.now += 20'000'000; });
  meeting->Receive("dead", "", [](const Status&, const Tensor&) {});
  EXPECT_FALSE(lent->over());
  EXPECT_TRUE(inbox_.Put(kSession, 1, {{"v", Value()}, {"dead", Tensor(), PushedValue::kDead}}).ok());
  EXPECT_TRUE(lent->over()) << "a short part makes nothing of a long one";
  lent->Renew();
  EXPECT_FALSE(lent->over());
  // All steps of one client together have no more time than one of them.
  const auto all = std::make_shared<LentTime>();
  LentTime one(all), other(all);
  one.Used(20'000'000);
  EXPECT_TRUE(other.over());
  all->Renew();
  EXPECT_FALSE(other.over());
  EXPECT_TRUE(one.over()) << "it has its own, too";
}

TEST(SystemClock, AStopDropsWhatIsStillToCome) {
  SystemClock clock;
  const auto held = std::make_shared<int>();
  const uint64_t name = clock.At(INT64_MAX, [held] {});
  clock.Stop();
  EXPECT_EQ(held.use_count(), 1);
  clock.Forget(name);
  clock.At(0, [held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace thalweg::distributed
