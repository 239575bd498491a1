#include "framework/runtime/devices/timeline.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/host/timeline_set.h"
#include "framework/runtime/step/async_calls.h"
#include "framework/runtime/step/frame.h"
#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::TakeText;
using testing_support::Text;

// Records the announced values, with their failures.
struct Log {
  std::vector<std::string> lines;
  struct Entry {
    Log* log;
    uint64_t value;
  };
  std::vector<std::unique_ptr<Entry>> entries;
  void When(tw_timeline* t, uint64_t value) {
    entries.push_back(std::make_unique<Entry>(Entry{this, value}));
    t->When(value, Done, entries.back().get());
  }
  static void Done(void* arg, const tw_status* why) {
    auto* e = static_cast<Entry*>(arg);
    e->log->lines.push_back(StrCat(e->value, why ? ": " : "", why ? why->text : ""));
  }
};

TEST(TimelineTest, CallsBackInOrderOfValues) {
  auto* t = new tw_timeline;
  Log log;
  log.When(t, 5);
  log.When(t, 2);
  log.When(t, 9);
  log.When(t, 2);
  t->Signal(1);
  EXPECT_THAT(log.lines, IsEmpty());
  t->Signal(6);
  EXPECT_THAT(log.lines, ElementsAre("2", "2", "5"));
  EXPECT_EQ(t->value(), 6u);
  log.When(t, 6);  // already reached: called at once
  EXPECT_EQ(log.lines.size(), 4u);
  t->Signal(~0ull);
  EXPECT_EQ(log.lines.back(), "9");
  t->Release();
}

TEST(TimelineTest, NeverGoesBack) {
  auto* t = new tw_timeline;
  t->Signal(5);
  t->Signal(3);
  EXPECT_EQ(t->value(), 5u);
  t->Release();
}

TEST(TimelineTest, KeepsTheFirstFailureAndStillSignals) {
  auto* t = new tw_timeline;
  Log log;
  log.When(t, 1);
  t->Fail(Internal("first"));
  t->Fail(Internal("second"));
  EXPECT_THAT(log.lines, IsEmpty());  // a failure is no signal: memory may still be in use
  t->Signal(1);
  EXPECT_THAT(log.lines, ElementsAre("1: first"));
  EXPECT_EQ(Text(t->failure()), "first");
  EXPECT_EQ(Text(t->Wait(1)), "first");
  t->Release();
}

TEST(TimelineTest, MakesAFailureOfAnOkStatus) {
  auto* t = new tw_timeline;
  t->Fail(Status());
  EXPECT_FALSE(t->failure().ok());
  t->Release();
}

TEST(TimelineTest, WaitsForAnotherThread) {
  auto* t = new tw_timeline;
  std::thread other([t] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    t->Signal(3);
  });
  EXPECT_TRUE(t->Wait(2).ok());
  other.join();
  t->Release();
}

TEST(TimelineTest, TellsThoseWhoStillWaitAtItsEnd) {
  auto* t = new tw_timeline;
  Log log;
  log.When(t, 3);
  t->Release();
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_THAT(log.lines[0], HasSubstr("3: the timeline ended before"));
}

TEST(TimelineTest, CallbackMayLetGoOfIt) {
  auto* t = new tw_timeline;
  t->Retain();
  t->When(1, [](void* arg, const tw_status*) { static_cast<tw_timeline*>(arg)->Release(); }, t);
  t->Release();
  t->Signal(1);
}

TEST(TimelineTest, CallbackMayAskForMore) {
  auto* t = new tw_timeline;
  struct Chain {
    tw_timeline* t;
    int count;
  } chain{t, 0};
  t->When(
      1,
      [](void* arg, const tw_status*) {
        auto* c = static_cast<Chain*>(arg);
        c->t->When(2, [](void* a, const tw_status*) { ++static_cast<Chain*>(a)->count; }, c);
        c->t->When(1, [](void* a, const tw_status*) { ++static_cast<Chain*>(a)->count; }, c);
        c->t->Signal(2);
      },
      &chain);
  t->Signal(1);
  EXPECT_EQ(chain.count, 2);
  t->Release();
}

TEST(TimelineTest, FailuresTellWhichCameFirst) {
  auto *a = new tw_timeline, *b = new tw_timeline;
  EXPECT_EQ(a->failed_at(), 0u);
  b->Fail(Internal("first"));
  const uint64_t between = tw_timeline::Tick();
  a->Fail(Internal("second"));
  const uint64_t at = a->failed_at();
  a->Fail(Internal("third"));
  EXPECT_LT(b->failed_at(), between);
  EXPECT_LT(between, at);
  EXPECT_EQ(a->failed_at(), at);
  a->Release();
  b->Release();
}

TEST(TimelineTest, LosesNoCallbackBetweenThreads) {
  auto* t = new tw_timeline;
  std::atomic<int> called{0};
  std::thread signaller([t] {
    for (uint64_t v = 1; v <= 1000; ++v) t->Signal(v);
  });
  for (uint64_t v = 1; v <= 1000; ++v) t->When(v, [](void* arg, const tw_status*) { ++*static_cast<std::atomic<int>*>(arg); }, &called);
  signaller.join();
  EXPECT_EQ(called, 1000);
  t->Release();
}

// A step that notes how its calls ended.
struct NotingStep final : StepBase {
  void Complete(uint64_t tag, Status s) override { ended.push_back(StrCat(tag, " ", s.ok() ? "ok" : Message(s))); }
  std::vector<std::string> ended;
};

TEST(TimelineSetTest, APluginsTimelineEndsCalls) {
  const tw_timeline_set& set = *TimelineSet();
  tw_timeline *line = nullptr, *other = nullptr;
  ASSERT_EQ(set.create(nullptr, &line), nullptr);
  ASSERT_EQ(set.create(nullptr, &other), nullptr);
  EXPECT_EQ(line->value(), 0u);
  NotingStep step;
  const auto await = [&](tw_timeline* at, uint64_t value, uint64_t tag) {
    KernelFrame f{};
    f.c.token = AsyncCalls::Get().Begin(&step, tag);
    EXPECT_EQ(set.complete_at(&f.c, at, value), nullptr);
  };
  await(line, 2, 2);
  await(line, 1, 1);
  await(other, 1, 9);
  EXPECT_THAT(step.ended, IsEmpty());
  line->Signal(1);
  EXPECT_THAT(step.ended, ElementsAre("1 ok"));
  await(line, 1, 3);  // reached before
  line->Fail(Internal("the engine stopped"));
  EXPECT_THAT(step.ended, ElementsAre("1 ok", "3 ok"));  // until the signal the work may use the memory
  line->Signal(2);
  other->Release();
  EXPECT_THAT(step.ended, ElementsAre("1 ok", "3 ok", "2 the engine stopped", HasSubstr("9 the timeline ended before")));
  EXPECT_EQ(AsyncCalls::Get().under_way(), 0u);
  line->Release();
}

TEST(TimelineSetTest, RefusesCallsWithoutTokenAndNoTimeline) {
  tw_timeline* line = nullptr;
  ASSERT_EQ(TimelineSet()->create(nullptr, &line), nullptr);
  KernelFrame f{};
  EXPECT_THAT(TakeText(TimelineSet()->complete_at(&f.c, line, 1)), HasSubstr("the call has no token"));
  f.c.token = 1;
  EXPECT_THAT(TakeText(TimelineSet()->complete_at(&f.c, nullptr, 1)), HasSubstr("there is no timeline"));
  line->Release();
}

}  // namespace
}  // namespace thalweg
