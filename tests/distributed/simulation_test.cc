// The values of steps between processes that die, restart, disconnect and cancel, for a given seed.
// A received value is the one that the right process sent in the same step, every receiver is
// called back once and in time, and nothing is left over.
#include <cstdlib>

#include "gtest/gtest.h"

#include "distributed/inbox.h"
#include "distributed/mailbox.h"
#include "distributed/messages.h"
#include "distributed/messenger.h"
#include "distributed/pusher.h"
#include "distributed/step_meeting.h"
#include "tests/distributed/simulated_world.h"

namespace thalweg::distributed {
namespace {

const SessionName kSession{"client", 5};
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kPatience = 2 * kSecond;  // the time limit of a step

// A process: the parts of a server through which a step's values pass.
class Process {
 public:
  Process(World* world, SimulatedTransport* transport, std::string address, uint64_t incarnation)
      : clock_(world), incarnation_(incarnation) {
    auto m =
        Messenger::Create(transport->role(), {address, "", 1 << 20}, &clock_, [this](std::shared_ptr<Incoming> r) { Serve(std::move(r)); });
    EXPECT_TRUE(m.ok()) << m.status();
    messenger_ = *std::move(m);
    mailbox_.Open(kSession);
    inbox_.Open(kSession);
    pusher_ = std::make_unique<Pusher>(&mailbox_, messenger_.get(), 200);
    AskLate();
  }
  ~Process() {
    mailbox_.Close(kSession, Error(absl::StatusCode::kUnavailable, "is going away"));
    inbox_.Close(kSession);
    messenger_->Close();
    clock_.Stop();
  }
  // Returns a meeting that lives until the step or the process ends; the step's later work must
  // check for that.
  std::weak_ptr<StepMeeting> Meeting(uint64_t step, std::shared_ptr<const Routes> routes) {
    return meetings_[step] = std::make_shared<StepMeeting>(kSession, step, std::move(routes), clock_.Now() + kPatience,
                                                           Channels{messenger_.get(), &mailbox_, &inbox_, pusher_.get()});
  }
  void EndMeeting(uint64_t step) { meetings_.erase(step); }
  void Forget(uint64_t oldest) {
    mailbox_.Forget(kSession, oldest);
    inbox_.Forget(kSession, oldest);
  }
  uint64_t left() const { return mailbox_.size() + inbox_.size(); }
  uint64_t incarnation() const { return incarnation_; }

 private:
  void Serve(std::shared_ptr<Incoming> request) {
    auto head = GetRequest(request->head());
    ASSERT_TRUE(head.ok());
    if (head->incarnation != incarnation_) return request->Fail({Error(absl::StatusCode::kAborted, "was restarted"), false});
    if (head->method == Method::kPush) return inbox_.Serve(head->fields, request.get());
    auto m = ReceiveRequest::Get(head->fields);
    ASSERT_TRUE(m.ok());
    mailbox_.Ask(*m, std::move(request));
  }
  // Does this as a worker does.
  void AskLate() {
    const auto all = meetings_;  // a callback may end some of them
    for (auto& [step, meeting] : all) meeting->AskLate(clock_.Now() - kSecond / 2);
    clock_.At(clock_.Now() + kSecond / 2, [this] { AskLate(); });
  }
  SimulatedClock clock_;
  const uint64_t incarnation_;
  Mailbox mailbox_;
  Inbox inbox_{300};  // bytes: too few for all early values
  std::unique_ptr<Messenger> messenger_;
  std::unique_ptr<Pusher> pusher_;
  std::map<uint64_t, std::shared_ptr<StepMeeting>> meetings_;  // destroyed first
};

struct Tally {
  int good = 0, failed = 0;
  uint64_t log = 0;
};

class Story {
 public:
  explicit Story(uint64_t seed) : world_(seed), transport_(&world_) {
    for (int i = 0; i < kProcesses; ++i) Start(i);
  }

  Tally Go() {
    for (uint64_t step = 1; step <= kSteps; ++step) {
      world_.After(int64_t(world_.Below(uint64_t(5 * kSecond))), [this, step] { Begin(step); });
    }
    for (int i = 0; i < kFaults; ++i) {
      world_.After(int64_t(world_.Below(uint64_t(6 * kSecond))), [this] { Fault(); });
    }
    world_.RunUntil(world_.now + 20 * kSecond);
    for (auto& [step, w] : waits_) {
      EXPECT_LE(w.ends, 1) << "step " << step;
      const bool there = w.by == processes_[size_t(w.at)]->incarnation();
      EXPECT_TRUE(w.ends == 1 || !there) << "step " << step << " waits for ever";
    }
    for (auto& p : processes_) {
      p->Forget(kSteps + 1);
      EXPECT_EQ(p->left(), 0u);
    }
    processes_.clear();
    world_.RunUntil(world_.now + kSecond);
    EXPECT_EQ(transport_.calls(), 0u);
    tally_.log = world_.log;
    return tally_;
  }

 private:
  static constexpr int kProcesses = 3, kFaults = 12;
  static constexpr uint64_t kSteps = 60;
  struct Wait {
    int at = 0;
    uint64_t by = 0;  // incarnation of the receiver
    int ends = 0;
  };

  static std::string Address(int i) { return "p" + std::to_string(i); }
  void Start(int i) {
    processes_.resize(kProcesses);
    processes_[size_t(i)] = std::make_unique<Process>(&world_, &transport_, Address(i), ++incarnations_);
  }
  static Tensor Value(uint64_t step, uint64_t incarnation) {
    auto t = Tensor::Vector<int64_t>(TW_INT64, {int64_t(step), int64_t(incarnation)});
    EXPECT_TRUE(t.ok());
    return *std::move(t);
  }

  // Sends values from one process to another, in any order, and possibly ends the step in between.
  void Begin(uint64_t step) {
    const int from = int(world_.Below(kProcesses)), to = (from + 1 + int(world_.Below(kProcesses - 1))) % kProcesses;
    Process& a = *processes_[size_t(from)];
    Process& b = *processes_[size_t(to)];
    const Destination source{Address(from), "task " + Address(from), a.incarnation()};
    const Destination sink{Address(to), "task " + Address(to), b.incarnation()};
    const bool pushed = world_.Below(3) > 0;
    auto routes = std::make_shared<Routes>();
    routes->sources.emplace("v", Source{source, pushed});
    auto senders = std::make_shared<Routes>();
    if (pushed) senders->sinks.emplace("v", Sink{sink});
    const auto sender = a.Meeting(step, senders), receiver = b.Meeting(step, routes);
    Wait& w = waits_[step];
    w.at = to;
    w.by = b.incarnation();
    const uint64_t sent_by = a.incarnation();
    world_.After(int64_t(world_.Below(kSecond)), [=] {
      auto m = sender.lock();
      if (!m) return;
      if (step % 2) m->Hold();
      (void)m->Send("v", "", Value(step, sent_by));
      m->Release();
    });
    world_.After(int64_t(world_.Below(kSecond)), [=, this] {
      if (auto m = receiver.lock()) Receive(step, m.get(), sent_by);
    });
    if (world_.Below(6) == 0) {
      world_.After(int64_t(world_.Below(kSecond)), [=] {
        if (auto m = receiver.lock()) m->Abort(Error(absl::StatusCode::kCancelled, "enough"), true);
      });
    }
    if (world_.Below(6) == 0) {
      world_.After(int64_t(world_.Below(kSecond)), [=] {
        if (auto m = sender.lock()) m->StepFailed(InvalidArgument("broke"));
      });
    }
    // A waiting receiver keeps its meeting alive.
    world_.After(2 * kSecond, [=, this] {
      for (int i : {from, to}) processes_[size_t(i)]->EndMeeting(step);
    });
  }

  void Receive(uint64_t step, StepMeeting* receiver, uint64_t sent_by) {
    const int64_t latest = world_.now + kPatience + kSecond;
    receiver->Receive("v", "", [this, step, sent_by, latest](Status s, Tensor value) {
      ++waits_[step].ends;
      EXPECT_LE(world_.now, latest) << "step " << step;
      EXPECT_EQ(s.ok(), bool(value));
      ++(s.ok() ? tally_.good : tally_.failed);
      if (!s.ok() || !value) return;
      EXPECT_EQ(value.as<int64_t>()[0], int64_t(step));
      EXPECT_EQ(value.as<int64_t>()[1], int64_t(sent_by));
    });
  }

  void Fault() {
    const int i = int(world_.Below(kProcesses));
    if (world_.Below(3) > 0) return transport_.Cut(Address(i), Address((i + 1) % kProcesses));
    transport_.Kill(Address(i));
    processes_[size_t(i)].reset();
    Start(i);
  }

  World world_;
  SimulatedTransport transport_;
  uint64_t incarnations_ = 100;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<uint64_t, Wait> waits_;
  Tally tally_;
};

TEST(Simulation, ValuesArriveOnceAsTheyWereSentOrWhoWaitsIsToldWhy) {
  const char* wanted = std::getenv("THALWEG_SIMULATION_SEEDS");
  const uint64_t seeds = wanted ? std::strtoull(wanted, nullptr, 10) : 300;
  Tally all;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Tally t = Story(seed).Go();
    all.good += t.good;
    all.failed += t.failed;
    if (HasFailure()) break;
  }
  EXPECT_GT(all.good, int(10 * seeds));
  EXPECT_GT(all.failed, int(seeds));
}

TEST(Simulation, ASeedReplaysARun) {
  const Tally once = Story(7).Go(), again = Story(7).Go(), other = Story(8).Go();
  EXPECT_EQ(once.log, again.log);
  EXPECT_EQ(once.good, again.good);
  EXPECT_NE(once.log, other.log);
}

}  // namespace
}  // namespace thalweg::distributed
