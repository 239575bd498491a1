// The calls that a messenger makes to its transport, and their order. The transport records them.
#include "distributed/messenger.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/simulated_world.h"

namespace thalweg::distributed {
namespace {

using ::testing::ElementsAre;

// A connecting peer may make `takes` calls, which stay in progress; all later calls report that the
// connection is lost.
class LossyTransport {
 public:
  LossyTransport() {
    role_ = std::make_shared<TransportRole>();
    role_->name = "lossy";
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
      auto* self = static_cast<LossyTransport*>(endpoint);
      if (self->asked.size() >= self->most) return Lost();
      self->asked.push_back("connect");
      *out = endpoint;
      return nullptr;
    };
    d.call = [](const tw_host*, void* peer, uint64_t, const tw_message* m) -> tw_status* {
      auto* self = static_cast<LossyTransport*>(peer);
      self->asked.push_back("call");
      if (self->taken.size() >= self->takes) return Lost();
      self->taken.push_back(*m);
      return nullptr;
    };
    d.cancel = [](const tw_host*, void*, uint64_t) {};
    d.close_peer = [](const tw_host*, void* peer) { static_cast<LossyTransport*>(peer)->asked.push_back("close_peer"); };
    // Ends the calls in progress.
    d.close = [](const tw_host*, void* endpoint) {
      auto* self = static_cast<LossyTransport*>(endpoint);
      for (const tw_message& m : self->taken) m.done(m.arg, Lost());
      self->asked.push_back("close");
    };
  }
  std::shared_ptr<const TransportRole> role() const { return role_; }
  static tw_status* Lost() { return ToC(Status(absl::StatusCode::kUnavailable, "is lost")); }

  size_t takes = 0, most = SIZE_MAX;  // takes: calls; most: after this many calls in total, nothing connects any more
  std::vector<std::string> asked;
  std::vector<tw_message> taken;

 private:
  testing_support::FakeHost host_;
  std::shared_ptr<TransportRole> role_;
};

class MessengerTest : public testing::Test {
 protected:
  MessengerTest() {
    auto m = Messenger::Create(transport_.role(), {"here", "", 1 << 20}, &clock_, [](std::shared_ptr<Incoming>) {});
    EXPECT_TRUE(m.ok()) << m.status();
    messenger_ = *std::move(m);
  }
  ~MessengerTest() override { clock_.Stop(); }
  void Start() {
    Call call;
    call.to = {"there", "task there", 0};
    call.done = [this](const Reply& reply) { ends_.push_back(reply.outcome.status.code()); };
    messenger_->Start(std::move(call));
  }
  World world_{1};
  SimulatedClock clock_{&world_};
  LossyTransport transport_;
  std::unique_ptr<Messenger> messenger_;
  std::vector<absl::StatusCode> ends_;
};

// The clock reports the call's end a little later; the endpoint may be gone by then.
TEST_F(MessengerTest, ACallThatFailsAtOnceHoldsNoPeerBeyondTheEnd) {
  Start();
  messenger_->Close();
  EXPECT_THAT(transport_.asked, ElementsAre("connect", "call", "close_peer", "close"));
  world_.RunUntil(world_.now + 1);
  EXPECT_THAT(ends_, ElementsAre(absl::StatusCode::kUnavailable));
  EXPECT_EQ(transport_.asked.back(), "close");
}

TEST_F(MessengerTest, NorDoesOneThatFindsAConnectionLostAndGetsNoOther) {
  transport_.takes = 1;
  transport_.most = 2;
  Start();
  Start();
  messenger_->Close();
  EXPECT_THAT(transport_.asked, ElementsAre("connect", "call", "call", "close_peer", "close"));
  world_.RunUntil(world_.now + 1);
  EXPECT_EQ(ends_.size(), 2u);
  EXPECT_EQ(transport_.asked.back(), "close");
}

}  // namespace
}  // namespace thalweg::distributed
