#include "framework/session/profilers.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/wait.h>

#include "framework/base/strings.h"
#include "framework/runtime/trace/step_trace.h"
#include "tests/framework/support/test_ops.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing_support::Floats;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Values;

// A profiler that keeps what it receives. One `self` for each start.
class TestProfiler {
 public:
  struct Span {
    uint32_t kind, thread, failed;
    std::string name, node, device, row;
    int64_t begin, end, left;
  };
  struct OneStep {
    tw_profiled_step record;
    std::vector<Span> spans;
    std::vector<std::pair<std::string, int64_t>> counts;
    bool done = false;
  };
  struct Self {
    TestProfiler* owner;
    std::string argument;
    std::vector<OneStep> steps;
    int inside = 0;  // 1 between step and done
    bool stopped = false;
  };
  std::deque<Self> selves;
  std::string fails;              // the entry that fails
  std::function<void()> in_done;  // called inside `done`

  // Registers a profiler of that name. host: what the entries get.
  void Register(TestGraph* g, const std::string& name) {
    tw_profiler_def d = {TW_SIZED(tw_profiler_def), name.data(), name.size(), this, &Start, &Begin, &Add, &AddCount, &Done, &Stop};
    auto role = SealRole(&d);
    ASSERT_TRUE(role.ok()) << role.status();
    (*role)->plugin = StrCat("org.test.", name);
    Registration r;
    r.roles.push_back(*std::move(role));
    ASSERT_TRUE(g->runtime().registry().Commit(std::move(r)).ok());
  }

 private:
  static std::string Text(const char* text, uint64_t len) {
    EXPECT_NE(text, nullptr);
    return {text, len};
  }
  tw_status* Answer(const char* entry) const { return fails == entry ? ToC(Internal(entry, " is broken")) : nullptr; }
  static tw_status* Start(const tw_host*, void* user, const char* argument, uint64_t len, void** out_self) {
    auto* owner = static_cast<TestProfiler*>(user);
    if (tw_status* s = owner->Answer("start")) return s;
    owner->selves.push_back({owner, Text(argument, len), {}, 0, false});
    *out_self = &owner->selves.back();
    return nullptr;
  }
  static tw_status* Begin(const tw_host*, void* self, const tw_profiled_step* s) {
    auto* p = static_cast<Self*>(self);
    EXPECT_FALSE(p->stopped);
    if (tw_status* failed = p->owner->Answer("step")) return failed;
    EXPECT_EQ(p->inside++, 0);
    p->steps.push_back({*s, {}, {}, false});
    return nullptr;
  }
  static tw_status* Add(const tw_host*, void* self, const tw_profiled_span* s) {
    auto* p = static_cast<Self*>(self);
    EXPECT_EQ(p->inside, 1);
    p->steps.back().spans.push_back({s->kind, s->thread, s->failed, Text(s->name, s->name_len), Text(s->node, s->node_len),
                                     Text(s->device, s->device_len), Text(s->row, s->row_len), s->begin, s->end, s->left});
    return p->owner->Answer("span");
  }
  static tw_status* AddCount(const tw_host*, void* self, const tw_profiled_count* c) {
    auto* p = static_cast<Self*>(self);
    EXPECT_EQ(p->inside, 1);
    p->steps.back().counts.emplace_back(Text(c->name, c->name_len), c->value);
    EXPECT_GE(c->at, p->steps.back().record.begin);
    EXPECT_LE(c->at, p->steps.back().record.end);
    return p->owner->Answer("count");
  }
  static tw_status* Done(const tw_host*, void* self) {
    auto* p = static_cast<Self*>(self);
    EXPECT_EQ(p->inside--, 1);
    p->steps.back().done = true;
    if (p->owner->in_done) p->owner->in_done();
    return p->owner->Answer("done");
  }
  static tw_status* Stop(const tw_host*, void* self) {
    auto* p = static_cast<Self*>(self);
    EXPECT_FALSE(p->stopped);
    p->stopped = true;
    return p->owner->Answer("stop");
  }
};

std::vector<std::string> Names(const TestProfiler::OneStep& step, uint32_t kind) {
  std::vector<std::string> names;
  for (const TestProfiler::Span& s : step.spans) {
    if (s.kind == kind) names.push_back(s.node.empty() ? s.name : StrCat(s.name, " ", s.node));
  }
  return names;
}

class ProfilersTest : public testing::Test {
 protected:
  ProfilersTest() {
    g_.runtime().SetLog(
        [](void* to, uint32_t level, const char* text, uint64_t n) {
          if (level >= 2) static_cast<std::vector<std::string>*>(to)->emplace_back(text, n);
        },
        &log_, 0);
    profiler_.Register(&g_, "p");
  }
  ~ProfilersTest() override { g_.runtime().SetLog(nullptr, nullptr, 0); }
  std::unique_ptr<Session> NewSession(const std::string& profiler) {
    return g_.NewSession({{"profiler", profiler}, {"optimize", "false"}});
  }
  std::string Refusal(std::vector<std::string> profilers) {
    SessionOptions options;
    options.profilers = std::move(profilers);
    const auto started = Profilers::Start(&g_.runtime(), options.profilers);
    return started.ok() ? "" : std::string(Message(started.status()));
  }
  std::vector<std::string> log_;
  TestGraph g_{2};
  TestProfiler profiler_;
};

TEST_F(ProfilersTest, AStepIsHandedOverWithItsNodesSpansAndCounters) {
  Edge x = g_.Input(Shape({1}), "x");
  Edge y = g_.Op("Reports", {g_.Op("Next", {x}, {.name = "a"})}, {.name = "r"});
  auto session = NewSession("p:to a place");
  auto out = Step(*session, {{x}, {y}, {}}, {Floats({1})});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_THAT(profiler_.selves, SizeIs(1));
  const TestProfiler::Self& self = profiler_.selves[0];
  EXPECT_EQ(self.argument, "to a place");
  ASSERT_THAT(self.steps, SizeIs(1));  // before the run returns
  const TestProfiler::OneStep& step = self.steps[0];
  EXPECT_TRUE(step.done);
  EXPECT_EQ(step.record.step, 1u);
  EXPECT_EQ(step.record.failed, 0u);
  EXPECT_EQ(step.record.made_plan, 1u);
  EXPECT_EQ(std::vector<float>{float(step.record.trace)}, Values((*out)[0]));  // the number that the kernel was told
  EXPECT_LE(step.record.begin, step.record.planned);
  EXPECT_LE(step.record.planned, step.record.end);
  EXPECT_THAT(Names(step, TW_PROFILED_NODE), ElementsAre("Next a", "Reports r"));
  EXPECT_THAT(Names(step, TW_PROFILED_KERNEL), AllOf(SizeIs(3), Contains("whole r"), Contains("part r"), Contains("elsewhere r")));
  EXPECT_THAT(step.counts, ElementsAre(std::pair("size", 3), std::pair("size", -4)));
  int64_t last = step.record.begin;
  for (const TestProfiler::Span& s : step.spans) {
    EXPECT_LE(last, s.begin);  // in the order of their begins
    EXPECT_LE(s.begin, s.left);
    EXPECT_LE(s.left, s.end);
    EXPECT_LE(s.end, step.record.end);
    EXPECT_EQ(s.row, s.name == "elsewhere" ? "helper" : "") << s.name;
    if (s.kind != TW_PROFILED_WAIT) {
      EXPECT_THAT(s.device, HasSubstr("CPU:0")) << s.name;
    }
    last = s.begin;
  }
}

TEST_F(ProfilersTest, EveryStepIsHandedOverAlsoOneThatFails) {
  Edge x = g_.Input(Shape({2}), "x");
  Edge y = g_.Op("Picky", {g_.Op("Next", {x}, {.name = "a"})}, {.name = "b"});
  auto session = NewSession("p");
  EXPECT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({1, 2})}).ok());
  EXPECT_FALSE(Step(*session, {{x}, {y}, {}}, {Floats({-5, 2})}).ok());
  EXPECT_FALSE(Step(*session, {{x}, {y}, {}}, {Floats({1, 2, 3})}).ok());  // refused before it begins
  const auto& steps = profiler_.selves[0].steps;
  ASSERT_THAT(steps, SizeIs(3));
  EXPECT_EQ(profiler_.selves[0].argument, "");
  EXPECT_EQ(steps[0].record.failed, 0u);
  EXPECT_EQ(steps[1].record.failed, 1u);
  EXPECT_EQ(steps[1].record.step, 2u);
  EXPECT_EQ(steps[1].record.made_plan, 0u);
  ASSERT_THAT(Names(steps[1], TW_PROFILED_NODE), ElementsAre("Next a", "Picky b"));
  for (const TestProfiler::Span& s : steps[1].spans) {
    EXPECT_EQ(s.failed, s.kind == TW_PROFILED_NODE && s.node == "b" ? 1u : 0u);
  }
  EXPECT_EQ(steps[2].record.failed, 1u);
  EXPECT_EQ(steps[2].record.step, 0u);
  EXPECT_THAT(steps[2].spans, SizeIs(0));
  EXPECT_LT(steps[0].record.trace, steps[1].record.trace);
}

TEST_F(ProfilersTest, StatisticsOfTheProgramAreFilledAsWell) {
  Edge x = g_.Input(Shape({1}), "x"), y = g_.Op("Reports", {x}, {.name = "r"});
  auto session = NewSession("p");
  StepStats stats;
  RunOptions watched;
  watched.stats = &stats;
  ASSERT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({1})}, watched).ok());
  const TestProfiler::OneStep& step = profiler_.selves[0].steps.at(0);
  EXPECT_EQ(step.record.trace, stats.trace());
  EXPECT_EQ(step.record.end - step.record.begin, stats.total().total_ns);
  // The records of the C API agree with those that the profiler got.
  ASSERT_THAT(stats.span_records(), SizeIs(3));
  EXPECT_THAT(Names(step, TW_PROFILED_KERNEL), SizeIs(3));
  EXPECT_STREQ(stats.span_records()[0].name, "whole");
  for (const tw_step_span& s : stats.span_records()) EXPECT_LT(s.thread, stats.total().threads) << s.name;
  ASSERT_THAT(stats.count_records(), SizeIs(2));
  EXPECT_EQ(stats.count_records()[1].value, -4);
}

TEST_F(ProfilersTest, AFailingProfilerFailsNoStepAndIsLoggedOnce) {
  Edge x = g_.Input(Shape({1}), "x"), y = g_.Op("Reports", {x}, {.name = "r"});
  for (const char* entry : {"span", "count", "done", "step"}) {
    log_.clear();
    profiler_.fails = "";
    auto session = NewSession("p");
    profiler_.fails = entry;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({1})}).ok());
    const auto& steps = profiler_.selves.back().steps;
    if (std::string(entry) == "step") {
      EXPECT_THAT(steps, SizeIs(0));
    } else {
      ASSERT_THAT(steps, SizeIs(3)) << entry;
      EXPECT_TRUE(steps[2].done) << entry;
    }
    if (std::string(entry) == "span") {
      EXPECT_THAT(steps[0].spans, SizeIs(1));  // nothing but `done` after it
    }
    ASSERT_THAT(log_, SizeIs(1)) << entry;
    EXPECT_THAT(log_[0], AllOf(HasSubstr("profiler 'p' of plugin 'org.test.p'"), HasSubstr(StrCat(entry, " is broken"))));
    profiler_.fails = "";
    EXPECT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({1})}).ok());  // it gets the next step in full
    EXPECT_TRUE(profiler_.selves.back().steps.back().done);
    EXPECT_THAT(profiler_.selves.back().steps.back().counts, SizeIs(2));
  }
}

TEST_F(ProfilersTest, ASessionStopsItsProfilersWhenItIsClosed) {
  Edge x = g_.Input(Shape({1}), "x"), y = g_.Op("Next", {x});
  auto one = NewSession("p:1"), two = NewSession("p:2");
  ASSERT_TRUE(one->Close().ok());
  EXPECT_TRUE(profiler_.selves[0].stopped);
  EXPECT_FALSE(profiler_.selves[1].stopped);
  EXPECT_TRUE(Step(*two, {{x}, {y}, {}}, {Floats({1})}).ok());
  EXPECT_THAT(profiler_.selves[0].steps, SizeIs(0));
  EXPECT_THAT(profiler_.selves[1].steps, SizeIs(1));
  profiler_.fails = "stop";
  one.reset();  // a self is stopped once
  two.reset();
  EXPECT_TRUE(profiler_.selves[1].stopped);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("its profile may be incomplete: stop is broken")));
}

TEST_F(ProfilersTest, AProfilerThatIsNotThereOrDoesNotStartIsAnError) {
  TestProfiler other;
  other.Register(&g_, "q");
  EXPECT_EQ(Refusal({"r:x"}), "session option 'profiler': there is no profiler 'r'; there are 'p', 'q'");
  EXPECT_EQ(Refusal({"p:a:b", "q"}), "");
  EXPECT_EQ(profiler_.selves[0].argument, "a:b");
  other.fails = "start";
  EXPECT_EQ(Refusal({"p", "q"}), "profiler 'q': start is broken");
  ASSERT_THAT(profiler_.selves, SizeIs(2));
  for (const TestProfiler::Self& self : profiler_.selves) EXPECT_TRUE(self.stopped);
  SessionOptions options;
  for (const char* value : {"", ":x"}) {
    EXPECT_THAT(Message(SetSessionOption(&options, "profiler", value)), HasSubstr("profiler")) << value;
  }
  EXPECT_THAT(options.profilers, SizeIs(0));
}

TEST_F(ProfilersTest, StepsOfSeveralThreadsComeOneByOne) {
  Edge x = g_.Input(Shape({1}), "x"), y = g_.Op("Reports", {x}, {.name = "r"});
  auto session = NewSession("p");
  constexpr int kThreads = 4, kSteps = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kSteps; ++i) EXPECT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({1})}).ok());
    });
  }
  for (std::thread& t : threads) t.join();
  const TestProfiler::Self& self = profiler_.selves[0];
  EXPECT_THAT(self.steps, SizeIs(kThreads * kSteps));
  std::set<uint64_t> traces;
  for (const TestProfiler::OneStep& step : self.steps) {
    traces.insert(step.record.trace);
    EXPECT_THAT(Names(step, TW_PROFILED_KERNEL), SizeIs(3));
    EXPECT_THAT(step.counts, SizeIs(2));
  }
  EXPECT_THAT(traces, SizeIs(kThreads * kSteps));
}

TEST_F(ProfilersTest, AStepThatAProfilerRunsInItsOwnSessionIsNotHandedOver) {
  Edge x = g_.Input(Shape({1}), "x"), y = g_.Op("Next", {x});
  auto one = NewSession("p:1"), two = NewSession("p:2");
  int depth = 0;
  profiler_.in_done = [&] {
    if (++depth <= 4) {
      EXPECT_TRUE(Step(*(depth % 2 ? two : one), {{x}, {y}, {}}, {Floats({1})}).ok());
    }
    --depth;
  };
  EXPECT_TRUE(Step(*one, {{x}, {y}, {}}, {Floats({1})}).ok());
  EXPECT_THAT(profiler_.selves[0].steps, SizeIs(1));
  EXPECT_THAT(profiler_.selves[1].steps, SizeIs(1));
  profiler_.in_done = nullptr;
  EXPECT_TRUE(Step(*one, {{x}, {y}, {}}, {Floats({1})}).ok());
  EXPECT_THAT(profiler_.selves[0].steps, SizeIs(2));
}

TEST_F(ProfilersTest, StopWaitsForStepsThatAnotherThreadHandsOver) {
  auto started = Profilers::Start(&g_.runtime(), {"p"});
  ASSERT_TRUE(started.ok()) << started.status();
  const std::shared_ptr<Profilers> profilers = *std::move(started);
  auto coming = std::make_unique<Profilers::Coming>(profilers, nullptr);
  ASSERT_NE(coming->stats(), nullptr);
  std::atomic<bool> stopped{false};
  std::thread closer([&] {
    profilers->Stop();
    stopped = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(stopped);
  coming->Over();
  EXPECT_FALSE(profiler_.selves[0].stopped);
  coming.reset();
  closer.join();
  EXPECT_TRUE(profiler_.selves[0].stopped);
  EXPECT_THAT(profiler_.selves[0].steps, SizeIs(1));
}

// What a task of a cluster says of its nodes is not checked against their begins and ends.
TEST_F(ProfilersTest, ASpanIsLeftBetweenItsBeginAndItsEnd) {
  auto started = Profilers::Start(&g_.runtime(), {"p"});
  ASSERT_TRUE(started.ok()) << started.status();
  StepStats::Part part;
  part.threads = 1;
  for (const int64_t busy : {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), int64_t{7}}) {
    tw_step_node n = {};
    n.size = sizeof n;
    n.name = n.op = n.device = n.kernel = n.shapes = n.to = n.function = n.frame = n.queue = "";
    n.start_ns = 100;
    n.end_ns = 110;
    n.busy_ns = busy;
    part.nodes.push_back(n);
  }
  StepStats stats;
  auto trace = StepTrace::Begin(&stats);
  ASSERT_TRUE(trace.ok());
  stats.Assemble({&part, 1});
  (*trace)->Over(Status());
  trace->reset();
  (*started)->Over(stats);
  const auto& spans = profiler_.selves[0].steps.at(0).spans;
  ASSERT_THAT(spans, SizeIs(3));
  const int64_t began = stats.total().began_ns;
  EXPECT_EQ(spans[0].left, began + 110);
  EXPECT_EQ(spans[1].left, began + 100);
  EXPECT_EQ(spans[2].left, began + 107);
}

TEST_F(ProfilersTest, AForkedChildRecordsAndStopsNothing) {
  auto started = Profilers::Start(&g_.runtime(), {"p"});
  ASSERT_TRUE(started.ok()) << started.status();
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    const bool recorded = (*started)->TakeStats() != nullptr;
    (*started)->Over(StepStats());
    (*started)->Stop();
    _exit(recorded || profiler_.selves[0].stopped || !profiler_.selves[0].steps.empty());
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE((*started)->TakeStats(), nullptr);
}

TEST_F(ProfilersTest, ASessionWithoutOneRecordsNothing) {
  Edge x = g_.Input(Shape({1}), "x"), y = g_.Op("Reports", {x});
  auto session = g_.NewSession({});
  auto out = Step(*session, {{x}, {y}, {}}, {Floats({1})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Values((*out)[0]), std::vector<float>{0});  // the kernel sees no trace
  EXPECT_THAT(profiler_.selves, SizeIs(0));
}

}  // namespace
}  // namespace thalweg
