// The events of a completion queue are handled by the poller's own thread or by a lent thread.
#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "gtest/gtest.h"

#include "handover.h"
#include "poller.h"

namespace thalweg::grpc_transport {
namespace {

// An event that Ask triggers, handled on either thread; it throws on the thread that made it.
class Throwing final : public Event {
 public:
  explicit Throwing(grpc_completion_queue* queue)
      : channel_(grpc_lame_client_channel_create("", GRPC_STATUS_UNAVAILABLE, "")),
        call_(grpc_channel_create_call(channel_, nullptr, GRPC_PROPAGATE_DEFAULTS, queue, grpc_slice_from_static_string("/"), nullptr,
                                       gpr_inf_future(GPR_CLOCK_REALTIME), nullptr)) {}
  ~Throwing() {
    grpc_call_unref(call_);
    grpc_channel_destroy(channel_);
  }
  void Ask() {
    ++asked_;
    Give(static_cast<Event*>(this));
    grpc_call_start_batch(call_, nullptr, 0, static_cast<Event*>(this), nullptr);
  }
  void Happen(bool) override {
    const bool here = std::this_thread::get_id() == maker_;
    if (here) thrown_ = true;
    ++happened_;
    if (here) throw std::bad_alloc();
  }
  bool thrown() const { return thrown_; }
  bool is_over() const { return happened_ == asked_; }
  bool IsOverInTime() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(15);
    while (!is_over() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return is_over();
  }

 private:
  grpc_channel* const channel_;
  grpc_call* const call_;
  const std::thread::id maker_ = std::this_thread::get_id();
  std::atomic<int> asked_{0}, happened_{0};
  std::atomic<bool> thrown_{false};
};

TEST(Poller, GoesOnAfterAnEventHasThrownOnAThreadThatWasLent) {
  grpc_init();
  {
    Poller poller(0);
    Throwing event(poller.queue());
    for (int i = 0; i < 1000 && !event.thrown(); ++i) {
      event.Ask();
      try {
        poller.Lend(20'000'000, [](void* e) -> uint32_t { return static_cast<Throwing*>(e)->is_over(); }, &event);
      } catch (const std::bad_alloc&) {  // the exception under test
      }
      ASSERT_TRUE(event.IsOverInTime());
    }
    ASSERT_TRUE(event.thrown());
    for (int i = 0; i < 3; ++i) {
      event.Ask();
      ASSERT_TRUE(event.IsOverInTime()) << i;
    }
  }
  grpc_shutdown();
}

}  // namespace
}  // namespace thalweg::grpc_transport
