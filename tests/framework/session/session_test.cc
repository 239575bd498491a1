#include "framework/session/session.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/runtime_of.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/random_graph.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::AwaitGated;
using testing_support::ClearJournal;
using testing_support::CloseGate;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Journal;
using testing_support::OpenGate;
using testing_support::RandomGraph;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

// ---- Plans ----

class SessionTest : public testing::Test {
 protected:
  void SetUp() override { ClearJournal(); }
  // Adds a node that writes the tag into the journal whenever a plan with the node is made: its
  // constant is too large for the graph to fold, so every plan folds it.
  Edge Planned(int64_t tag) { return g_.Op("Traced", {g_.Const(FloatsOf(Shape({2000})))}, {.attrs = {{"tag", AttrValue::Int(tag)}}}); }
  static int64_t Times(int64_t tag) {
    const std::vector<int64_t> all = Journal();
    return std::count(all.begin(), all.end(), tag);
  }
  TestGraph g_{2};
  Edge x_ = g_.Input(Shape({-1}), "x");
};

TEST_F(SessionTest, KeepsAPlanPerSignature) {
  Edge y = g_.Op("Next", {x_}), c = Planned(1);
  auto session = g_.NewSession();
  for (int round = 0; round < 3; ++round) {
    for (int64_t n : {1, 2, 3}) {
      auto out = Step(*session, {{x_}, {y, c}, {}}, {FloatsOf(Shape({n}))});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ(Values((*out)[0]), Values(FloatsOf(Shape({n}), 2)));
    }
  }
  EXPECT_EQ(Times(1), 1);
  ASSERT_TRUE(Step(*session, {{x_}, {c, y}, {}}, {Floats({1})}).ok());  // other fetches
  EXPECT_EQ(Times(1), 2);
  ASSERT_TRUE(Step(*session, {{x_}, {y}, {c.node}}, {Floats({1})}).ok());  // other targets
  EXPECT_EQ(Times(1), 3);
  ASSERT_TRUE(Step(*session, {{x_}, {y, c}, {}}, {Floats({1})}).ok());
  EXPECT_EQ(Times(1), 3);
  EXPECT_EQ(session->steps(), 12u);
}

TEST_F(SessionTest, SessionsPlanForThemselves) {
  Edge c = Planned(1);
  auto a = g_.NewSession(), b = g_.NewSession();
  ASSERT_TRUE(Step(*a, {{}, {c}, {}}).ok());
  ASSERT_TRUE(Step(*b, {{}, {c}, {}}).ok());
  EXPECT_EQ(Times(1), 2);
}

TEST_F(SessionTest, BeyondMaxShapePlansOnePlanServesAllShapes) {
  Edge wide = g_.Op("Sum", {g_.Op("Next", {x_}), g_.Op("Neg", {x_}), g_.Op("Mirror", {x_})}), c = Planned(1);
  auto session = g_.NewSession({{"max_shape_plans", "1"}});
  auto callable = session->MakeCallable({{x_}, {wide, c}, {}});
  ASSERT_TRUE(callable.ok());
  for (int round = 0; round < 2; ++round) {
    for (int64_t n : {4, 100000, 7, 0, 200000}) {  // the large ones use another engine
      std::vector<Tensor> out(2);
      const Tensor feed = FloatsOf(Shape({n}));
      ASSERT_TRUE((*callable)->Run(&feed, {}, out.data()).ok());
      std::vector<float> expected;
      for (int64_t i = 0; i < n; ++i) expected.push_back(1 + float(n - i));
      EXPECT_EQ(Values(out[0]), expected);
    }
  }
  EXPECT_EQ(Times(1), 2);
  // The first plan has planned memory; the plan for all shapes has none.
  EXPECT_GT((*callable)->Report({Shape({4})})->block_bytes, 0u);
  EXPECT_GT((*callable)->Report({Shape({7})})->block_bytes, 0u);
  EXPECT_EQ((*callable)->Report({Shape({100000})})->block_bytes, 0u);
  EXPECT_EQ((*callable)->Report({Shape({300000})})->block_bytes, 0u);
  EXPECT_EQ(Times(1), 2);
  EXPECT_EQ(session->Report().plans.plans, 2u);
}

TEST_F(SessionTest, NamedRunsKeepSoManyPlans) {
  std::vector<Edge> ends = {g_.Op("Next", {x_})};
  for (int i = 1; i < 6; ++i) ends.push_back(g_.Op("Next", {ends.back()}));
  auto session = g_.NewSession({{"max_plans", "3"}});
  auto kept = *session->MakeCallable({{x_}, {ends[0]}, {}});  // not counted: a caller holds it
  auto run = [&](size_t k) {
    auto out = Step(*session, {{x_}, {ends[k]}, {}}, {Floats({1})});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values((*out)[0]), ElementsAre(2 + float(k)));
  };
  const Tensor feed = Floats({1});
  Tensor out;
  ASSERT_TRUE(kept->Run(&feed, {}, &out).ok());
  for (size_t k = 0; k < 6; ++k) run(k);
  SessionReport r = session->Report();
  EXPECT_EQ(r.plans.plans, 4u);
  EXPECT_EQ(r.signatures, 4u);
  EXPECT_EQ(r.plans.evictions, 3u);
  EXPECT_EQ(r.plans.misses, 7u);
  run(3);  // the least recently run, but still cached
  EXPECT_EQ(session->Report().plans.misses, 7u);
  run(0);  // evicts 4
  run(3);
  EXPECT_EQ(session->Report().plans.misses, 8u);
  run(4);
  EXPECT_EQ(session->Report().plans.misses, 9u);
  ASSERT_TRUE(kept->Run(&feed, {}, &out).ok());
  EXPECT_EQ(session->Report().plans.misses, 9u);
  kept = nullptr;
  EXPECT_EQ(session->Report().plans.misses, 9u);  // evicted plans still count
  EXPECT_EQ(session->Report().steps, 12u);
}

TEST_F(SessionTest, KernelStatesServeAllPlansAndGoWithTheSession) {
  Edge y = g_.Op("Born", {x_}), z = g_.Op("Born", {y});
  auto session = g_.NewSession();
  for (int64_t n : {1, 2}) ASSERT_TRUE(Step(*session, {{x_}, {z}, {}}, {FloatsOf(Shape({n}))}).ok());
  ASSERT_TRUE(Step(*session, {{x_}, {y}, {}}, {Floats({1})}).ok());
  EXPECT_EQ(Times(-3), 2);
  EXPECT_EQ(Times(-4), 0);
  session = nullptr;
  EXPECT_EQ(Times(-4), 2);
}

TEST_F(SessionTest, AKernelStateWhoseMakingThrowsIsMadeAgain) {
  Edge y = g_.Op("BornAfter", {x_}, {.name = "y", .attrs = {{"tag", AttrValue::Int(1)}}});
  auto session = g_.NewSession();
  for (int step = 0; step < 2; ++step) {
    Status s = Step(*session, {{x_}, {y}, {}}, {Floats({1})}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInternal) << s;
    EXPECT_THAT(Text(s), HasSubstr("BornAfter 'y'"));
    EXPECT_THAT(Text(s), HasSubstr("it is too early"));
  }
  ASSERT_TRUE(Step(*session, {{}, {}, {g_.Mark(1)}}).ok());
  auto out = Step(*session, {{x_}, {y}, {}}, {Floats({1})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(1));
}

TEST_F(SessionTest, OnceOpsRunOnceASession) {
  Edge f = g_.Op("Fresh", {}), a = g_.Op("Neg", {f}), b = g_.Op("Next", {f});
  auto one = g_.NewSession(), two = g_.NewSession();
  auto value = [&](Session& s, Edge e) { return Values((*Step(s, {{}, {e}, {}}))[0])[0]; };
  const float first = value(*one, f);
  EXPECT_EQ(value(*one, f), first);
  EXPECT_EQ(value(*one, a), -first);
  EXPECT_EQ(value(*one, b), first + 1);
  EXPECT_EQ(Times(-2), 1);
  EXPECT_NE(value(*two, f), first);
  EXPECT_EQ(Times(-2), 2);
}

TEST_F(SessionTest, ReportsAPlan) {
  Edge y = g_.Op("Next", {g_.Op("Next", {g_.Op("Next", {x_})})});
  auto session = g_.NewSession({{"engine", "counted"}});
  auto r = (*session->MakeCallable({{x_}, {y}, {}}))->Report({Shape({16})});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->nodes, 3u);
  EXPECT_EQ(r->block_bytes, 128u);
  EXPECT_EQ(r->unplanned_bytes, 128u);
  EXPECT_TRUE(r->counted);
}

TEST_F(SessionTest, ARunIsLightThatDoesLittleAndBlocksNowhere) {
  auto session = g_.NewSession();
  auto callable = session->MakeCallable({{x_}, {g_.Op("Next", {x_})}, {}});
  ASSERT_TRUE(callable.ok());
  EXPECT_FALSE((*callable)->IsLight()) << "nothing is known of it";
  constexpr int64_t k64KiB = (64 << 10) / sizeof(float);
  for (int64_t n : {int64_t{4}, int64_t{1} << 20, k64KiB, k64KiB + 1, int64_t{5}}) {
    const Tensor feed = FloatsOf(Shape({n}));
    Tensor fetch;
    ASSERT_TRUE((*callable)->Run(&feed, {}, &fetch).ok());
    EXPECT_EQ((*callable)->IsLight(), n <= k64KiB) << n;
  }
  const Edge positive = g_.Op("Positive", {x_});
  for (const Edge& y : {positive, g_.Op("Next", {positive})}) {
    auto unknown = session->MakeCallable({{x_}, {y}, {}});
    const Tensor feed = FloatsOf(Shape({4}));
    Tensor fetch;
    ASSERT_TRUE(unknown.ok() && (*unknown)->Run(&feed, {}, &fetch).ok());
    EXPECT_FALSE((*unknown)->IsLight()) << "only running tells how large it is";
  }
}

TEST_F(SessionTest, RunsWhatWasAddedAfterARun) {
  Edge y = g_.Op("Next", {x_});
  auto session = g_.NewSession();
  EXPECT_THAT(Values((*Step(*session, {{x_}, {y}, {}}, {Floats({1})}))[0]), ElementsAre(2));
  Edge z = g_.Op("Neg", {y});
  auto out = Step(*session, {{x_}, {z, y}, {}}, {Floats({1})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(-2));
  EXPECT_THAT(Values((*Step(*session, {{x_}, {y}, {}}, {Floats({5})}))[0]), ElementsAre(6));
}

// ---- Refusals ----

TEST_F(SessionTest, RefusesWhatIsNotOfItsGraph) {
  TestGraph other(SharedRuntimeOf(g_.graph()));
  Edge y = g_.Op("Next", {x_}), foreign = other.Input(Shape({1}));
  auto session = g_.NewSession();
  auto code = [&](const CallableSpec& spec) { return session->MakeCallable(spec).status().code(); };
  EXPECT_EQ(code({{foreign}, {y}, {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{x_}, {foreign}, {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{x_}, {}, {foreign.node}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{x_}, {Edge{y.node, 1}}, {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{x_}, {Edge{y.node, -1}}, {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{x_}, {Edge{}}, {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(Step(*session, {{x_}, {Edge{y.node, 1}}, {}}, {Floats({1})}).status()), HasSubstr("'Next' has no output 1"));
}

TEST_F(SessionTest, RefusesAValueThatIsFedTwice) {
  Edge two = g_.Op("Two", {x_}), high{two.node, 1};
  auto session = g_.NewSession();
  EXPECT_EQ(Text(session->MakeCallable({{two, high, two}, {}, {}}).status()), "'Two' is fed twice");
  EXPECT_EQ(Text(session->MakeCallable({{high, high}, {}, {}}).status()), "'Two:1' is fed twice");
  auto callable = session->MakeCallable({{two, high}, {}, {}});
  ASSERT_TRUE(callable.ok());
  EXPECT_EQ((*callable)->Report({Shape({1})}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, RefusesFeedsThatDoNotFit) {
  Edge m = g_.Input(Shape({-1, 3}), "m"), y = g_.Op("Neg", {m});
  auto session = g_.NewSession();
  auto text = [&](const Tensor& feed) { return Text(Step(*session, {{m}, {y}, {}}, {feed}).status()); };
  EXPECT_EQ(text(Tensor()), "the feed of 'm' is missing");
  EXPECT_EQ(text(*Tensor::Vector<int32_t>(TW_INT32, {1})), "the feed of 'm' is int32 but must be float");
  EXPECT_EQ(text(Floats({1})), "the feed of 'm' has shape [1] but must fit [?, 3]");
  EXPECT_EQ(text(FloatsOf(Shape({3, 2}))), "the feed of 'm' has shape [3, 2] but must fit [?, 3]");
  EXPECT_EQ(text(FloatsOf(Shape({2, 3}))), "");
  EXPECT_EQ(text(FloatsOf(Shape({2, 4}))), "the feed of 'm' has shape [2, 4] but must fit [?, 3]");  // also after a plan was made
  EXPECT_EQ(text(*Tensor::Make(TW_INT32, Shape({2, 3}))), "the feed of 'm' is int32 but must be float");
}

TEST_F(SessionTest, FetchesAreEmptyAfterAFailure) {
  Edge y = g_.Op("Next", {x_}), bad = g_.Op("Picky", {x_});
  auto session = g_.NewSession();
  auto callable = *session->MakeCallable({{x_}, {y, bad}, {}});
  std::vector<Tensor> out = {Floats({1}), Floats({2})};
  Tensor feed = Floats({-1});
  EXPECT_FALSE(callable->Run(&feed, {}, out.data()).ok());
  EXPECT_FALSE(out[0]);
  EXPECT_FALSE(out[1]);
  out = {Floats({1}), Floats({2})};
  EXPECT_TRUE(session->Close().ok());
  EXPECT_FALSE(callable->Run(&feed, {}, out.data()).ok());
  EXPECT_FALSE(out[0]);
}

// ---- Ending early ----

TEST_F(SessionTest, ACancelledTokenStopsARunningStep) {
  Edge y = g_.Op("Stubborn", {x_}, {.name = "y"}), z = g_.Op("Next", {x_});
  for (const char* engine : {"fixed", "counted"}) {
    auto session = g_.NewSession({{"engine", engine}});
    CancelToken token;
    ClearJournal();
    std::thread canceller([&] {
      while (Times(-5) == 0) std::this_thread::yield();
      token.Cancel();
    });
    RunOptions options;
    options.cancel = &token;
    Status s = Step(*session, {{x_}, {y}, {}}, {Floats({1})}, options).status();
    canceller.join();
    EXPECT_EQ(s.code(), absl::StatusCode::kCancelled) << s;
    EXPECT_THAT(Text(s), HasSubstr("Stubborn 'y' on CPU:0: the step was cancelled"));
    EXPECT_TRUE(Step(*session, {{x_}, {z}, {}}, {Floats({1})}).ok());
  }
}

TEST_F(SessionTest, ACancelledTokenStopsBetweenKernels) {
  Edge gated = g_.Op("Gated", {x_}), next = g_.Op("Traced", {gated}, {.attrs = {{"tag", AttrValue::Int(7)}}});
  for (const char* engine : {"fixed", "counted"}) {
    auto session = g_.NewSession({{"engine", engine}});
    CancelToken token;
    CloseGate();
    std::thread canceller([&] {
      AwaitGated(1);
      token.Cancel();
      OpenGate();
    });
    RunOptions options;
    options.cancel = &token;
    EXPECT_EQ(Step(*session, {{x_}, {next}, {}}, {Floats({1})}, options).status().code(), absl::StatusCode::kCancelled);
    canceller.join();
    EXPECT_THAT(Journal(), IsEmpty());
    EXPECT_EQ(Step(*session, {{x_}, {next}, {}}, {Floats({1})}, options).status().code(), absl::StatusCode::kCancelled);
    EXPECT_THAT(Journal(), IsEmpty());
  }
}

TEST_F(SessionTest, ACancelledTokenStopsAStepThatRunsNothing) {
  Edge c = g_.Const({1});
  auto session = g_.NewSession();
  CancelToken token;
  token.Cancel();
  RunOptions options;
  options.cancel = &token;
  EXPECT_EQ(Step(*session, {{}, {c}, {}}, {}, options).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(SessionTest, ADeadlineStopsAStep) {
  Edge y = g_.Op("Stubborn", {x_}), z = g_.Op("Next", {x_});
  for (const char* engine : {"fixed", "counted"}) {
    auto session = g_.NewSession({{"engine", engine}});
    RunOptions options;
    options.deadline_ns = 5'000'000;
    const int64_t start = MonotonicNs();
    EXPECT_EQ(Step(*session, {{x_}, {y}, {}}, {Floats({1})}, options).status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_GE(MonotonicNs() - start, 5'000'000);
    options.deadline_ns = 3'600'000'000'000;
    EXPECT_TRUE(Step(*session, {{x_}, {z}, {}}, {Floats({1})}, options).ok());
    options.deadline_ns = INT64_MAX;
    EXPECT_TRUE(Step(*session, {{x_}, {z}, {}}, {Floats({1})}, options).ok());
    options.deadline_ns = 1;
    EXPECT_EQ(Step(*session, {{x_}, {z}, {}}, {Floats({1})}, options).status().code(), absl::StatusCode::kDeadlineExceeded);
  }
}

TEST_F(SessionTest, AKernelIsToldThatItsStepIsToEnd) {
  const Edge y = g_.Op("Hangs", {x_});
  for (const char* engine : {"fixed", "counted"}) {
    auto session = g_.NewSession({{"engine", engine}});
    RunOptions options;
    options.deadline_ns = 5'000'000;
    EXPECT_FALSE(Step(*session, {{x_}, {y}, {}}, {Floats({1})}, options).ok());
    for (int k = 0; k < 5; ++k) {
      CancelToken token;
      options.cancel = &token;
      options.deadline_ns = 0;
      Status s;
      std::thread runner([&] { s = Step(*session, {{x_}, {y}, {}}, {Floats({1})}, options).status(); });
      if (k > 0) std::this_thread::yield();
      token.Cancel();
      runner.join();
      EXPECT_EQ(s.code(), absl::StatusCode::kCancelled) << s;
    }
  }
}

TEST_F(SessionTest, CloseWaitsForRunningStepsAndRefusesNewOnes) {
  Edge gated = g_.Op("Gated", {x_}), aside = g_.Op("GatedAside", {x_}), y = g_.Op("Next", {x_});
  for (Edge e : {gated, aside}) {
    auto session = g_.NewSession({{"engine", e == gated ? "fixed" : "counted"}});
    auto callable = *session->MakeCallable({{x_}, {y}, {}});
    CloseGate();
    StatusOr<std::vector<Tensor>> out;
    std::thread runner([&] { out = Step(*session, {{x_}, {e}, {}}, {Floats({4})}); });
    AwaitGated(1);
    std::atomic<bool> closed{false};
    std::thread closer([&] {
      EXPECT_TRUE(session->Close().ok());
      closed = true;
    });
    // Once closing has begun, no new step starts, while the old step still runs.
    Status s;
    Tensor feed = Floats({1}), result;
    while ((s = callable->Run(&feed, {}, &result)).ok()) std::this_thread::yield();
    EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(Text(s), "the session is closed");
    EXPECT_EQ(Text(Step(*session, {{x_}, {y}, {}}, {Floats({1})}).status()), "the session is closed");
    EXPECT_FALSE(closed);
    OpenGate();
    runner.join();
    closer.join();
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values((*out)[0]), ElementsAre(4));
    EXPECT_TRUE(session->Close().ok());
    EXPECT_EQ(Text(Step(*session, {{x_}, {y}, {}}, {Floats({1})}).status()), "the session is closed");
  }
}

TEST_F(SessionTest, DestructionWaitsForRunningSteps) {
  Edge gated = g_.Op("Gated", {x_});
  auto session = g_.NewSession();
  CloseGate();
  StatusOr<std::vector<Tensor>> out;
  std::thread runner([&, s = session.get()] { out = Step(*s, {{x_}, {gated}, {}}, {Floats({4})}); });
  AwaitGated(1);
  std::thread opener(OpenGate);
  session = nullptr;
  runner.join();
  opener.join();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(4));  // fetched memory outlives the session
}

// ---- Threads ----

class SharedSessionTest : public testing::TestWithParam<const char*> {};

TEST_P(SharedSessionTest, EightThreadsRunWhatTheyLike) {
  TestGraph g(4);
  Edge x = g.Input(Shape({-1}));
  std::vector<Edge> ends;  // end k computes x + k + 1
  for (int k = 0; k < 4; ++k) ends.push_back(g.Op(k % 2 ? "Next" : "Later", {k ? ends.back() : x}));
  Edge bad = g.Op("Picky", {x});
  auto session = g.NewSession({{"engine", GetParam()}, {"max_shape_plans", "3"}});
  auto shared = *session->MakeCallable({{x}, {ends[3]}, {}});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) {
        const Tensor feed = FloatsOf(Shape({1 + (t + i) % 5}), float(t));
        size_t k = size_t(t + i) % 4;
        Tensor out;
        bool ok = i % 3 ? session->Run({{x}, {ends[k]}, {}}, &feed, {}, &out).ok() : shared->Run(&feed, {}, &out).ok();
        if (i % 3 == 0) k = 3;
        for (uint64_t n = 0; ok && n < out.count(); ++n) ok = out.as<float>()[n] == feed.as<float>()[n] + float(k + 1);
        if (!ok || out.count() != feed.count()) ++wrong;
        const Tensor negative = Floats({-1});
        if (i % 7 == t % 7 && session->Run({{x}, {bad}, {}}, &negative, {}, &out).code() != absl::StatusCode::kOutOfRange) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(SharedSessionTest, PlansAndShapesComeAndGoWhileStepsRun) {
  TestGraph g(4);
  Edge x = g.Input(Shape({-1}));
  std::vector<Edge> ends;  // end k computes x + k + 1
  for (int k = 0; k < 4; ++k) ends.push_back(g.Op("Next", {k ? ends.back() : x}));
  auto session = g.NewSession({{"engine", GetParam()}, {"max_plans", "2"}, {"max_shapes", "2"}});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const size_t k = size_t(t + i / 3) % 4;
        const Tensor feed = FloatsOf(Shape({1 + (t * 31 + i * 7) % 11}), float(t));
        Tensor out;
        bool ok = session->Run({{x}, {ends[k]}, {}}, &feed, {}, &out).ok() && out.count() == feed.count();
        for (uint64_t n = 0; ok && n < out.count(); ++n) ok = out.as<float>()[n] == feed.as<float>()[n] + float(k + 1);
        wrong += !ok;
        if (i % 16 == 0) (void)session->Report();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  const SessionReport r = session->Report();
  EXPECT_EQ(r.steps, 1600u);
  EXPECT_EQ(r.plans.hits + r.plans.shape_hits + r.plans.misses, 1600u);
  EXPECT_GT(r.plans.evictions, 0u);
  EXPECT_LE(r.plans.plans, 2u);
  EXPECT_LE(r.plans.shapes, 4u);
}

TEST_P(SharedSessionTest, OnePlanRunsManyTimesAtOnce) {
  TestGraph g(4);
  RandomGraph random(&g, 77, {.nodes = 60, .elsewhere = true});
  auto session = g.NewSession({{"engine", GetParam()}});
  auto callable = *session->MakeCallable(random.spec());
  const auto expected = random.Expected();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const std::vector<Tensor> feeds = random.Feeds();
      for (int i = 0; i < 10; ++i) {
        std::vector<Tensor> out(expected.size());
        if (!callable->Run(feeds.data(), {}, out.data()).ok()) ++wrong;
        for (size_t k = 0; k < expected.size(); ++k) wrong += !out[k] || Values(out[k]) != expected[k];
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(SharedSessionTest, TheGraphMayGrowWhileStepsRun) {
  TestGraph g(2);
  Edge x = g.Input(Shape({-1})), y = g.Op("Next", {x});
  auto session = g.NewSession({{"engine", GetParam()}});
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread runner([&] {
    for (int64_t n = 0; !stop; ++n) {
      auto out = Step(*session, {{x}, {y}, {}}, {FloatsOf(Shape({1 + n % 4}))});
      wrong += !out.ok() || Values((*out)[0])[0] != 2;
    }
  });
  Edge end = y;
  for (int i = 0; i < 100; ++i) end = g.Op("Next", {end});
  auto out = Step(*session, {{x}, {end}, {}}, {Floats({1})});
  stop = true;
  runner.join();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(102));
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, SharedSessionTest, testing::Values("fixed", "counted"));

}  // namespace
}  // namespace thalweg
