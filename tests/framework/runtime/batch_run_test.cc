// Steps of plans with batches: parallel execution gives the results of sequential execution.
#include "framework/runtime/step/batch_run.h"

#include <cstring>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/step/executor.h"
#include "framework/runtime/step/step.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/random_graph.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::AwaitGated;
using testing_support::CloseGate;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::OpenGate;
using testing_support::RandomForest;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::TestStates;
using testing_support::Text;

constexpr size_t kWidth = 96;

// A plan and a state without a session, so that even short steps run in parallel.
class Batched {
 public:
  Batched(TestGraph& g, const CallableSpec& spec, const std::vector<Tensor>& feeds, uint32_t threads) : states_(&g.runtime()) {
    PlanOptions options;
    options.threads = threads;
    options.disabled_passes = {"cse"};
    std::vector<Shape> shapes;
    for (const Tensor& t : feeds) shapes.push_back(t.shape());
    auto plan = CompilePlan(g.graph(), {spec.feeds, spec.fetches, spec.targets}, shapes, options, &states_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    plan_ = *std::move(plan);
    auto state = StepState::Create(plan_.get(), &g.runtime());
    EXPECT_TRUE(state.ok()) << state.status();
    state_ = *std::move(state);
    state_->pool = &g.runtime().pool();
    EXPECT_TRUE(state_->Bind(plan_->shapes).ok());
  }
  bool any() const { return !plan_->batches.empty(); }
  StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& feeds) {
    std::vector<Tensor> out(plan_->fetches.size());
    state_->Feed(feeds.data());
    RETURN_IF_ERROR(state_->Finish(RunBatches<false>(state_.get()), out.data()));
    return out;
  }

 private:
  TestStates states_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<StepState> state_;
};

TEST(BatchRunTest, GivesTheSameBitsOnRandomGraphs) {
  int batched = 0;
  for (uint32_t threads : {2u, 4u}) {
    auto runtime = testing_support::TestRuntime(threads);
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(StrCat("seed ", seed));
      TestGraph g(runtime);
      const RandomForest random(&g, seed);
      const std::vector<Tensor>& feeds = random.feeds;
      Batched step(g, random.spec, feeds, threads);
      if (!step.any()) continue;
      ++batched;
      const auto& expected = random.expected;
      for (int i = 0; i < 10; ++i) {
        auto out = step.Run(feeds);
        ASSERT_TRUE(out.ok()) << out.status();
        for (size_t k = 0; k < out->size(); ++k) {
          ASSERT_EQ((*out)[k].count(), expected[k].size());
          ASSERT_TRUE((*out)[k].bytes() == 0 || std::memcmp((*out)[k].data(), expected[k].data(), (*out)[k].bytes()) == 0);
        }
        EXPECT_EQ(step.Run(random.bad_feeds).status().code(), absl::StatusCode::kOutOfRange);
      }
    }
  }
  EXPECT_GE(batched, 20);
}

// x + 1 many times, with nodes that a test adds between.
struct Wide {
  explicit Wide(TestGraph& g, int64_t elements) : x(g.Input(Shape({elements}))) { spec.feeds = {x}; }
  void Add(TestGraph& g, const std::string& op, size_t n) {
    for (size_t i = 0; i < n; ++i) spec.targets.push_back(g.Op(op, {x}).node);
  }
  Edge x;
  CallableSpec spec;
};

TEST(BatchRunTest, TwoThreadsAreInBatchesAtOnce) {
  TestGraph g(2);
  Wide wide(g, 4);
  wide.Add(g, "Gated", 1);
  wide.Add(g, "Next", kWidth);
  wide.Add(g, "Gated", 1);
  Batched step(g, wide.spec, {Floats({1, 2, 3, 4})}, 2);
  ASSERT_TRUE(step.any());
  CloseGate();
  std::thread opener([] {
    AwaitGated(2);
    OpenGate();
  });
  EXPECT_TRUE(step.Run({Floats({1, 2, 3, 4})}).ok());
  opener.join();
}

TEST(BatchRunTest, AFailureEndsTheStepAndNamesItsNode) {
  TestGraph g(2);
  Wide wide(g, 1);
  wide.Add(g, "Next", kWidth);
  wide.Add(g, "Picky", 1);
  wide.Add(g, "Next", kWidth);
  Batched step(g, wide.spec, {Floats({1})}, 2);
  ASSERT_TRUE(step.any());
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(Text(step.Run({Floats({-1})}).status()), HasSubstr("Picky"));
    EXPECT_TRUE(step.Run({Floats({1})}).ok());
  }
}

// The steps are long enough for a second thread, once their duration is known.
TEST(BatchRunTest, SessionsLearnThatASecondThreadPays) {
  TestGraph g(2);
  Wide wide(g, 4000);
  wide.Add(g, "Gated", 1);
  wide.Add(g, "Next", 4 * kWidth);
  wide.Add(g, "Gated", 1);
  auto session = g.NewSession({{"disable_pass", "cse"}});
  const std::vector<Tensor> feeds = {FloatsOf(Shape({4000}))};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Step(*session, wide.spec, feeds).ok());
  CloseGate();
  std::thread opener([] {
    AwaitGated(2);
    OpenGate();
  });
  EXPECT_TRUE(Step(*session, wide.spec, feeds).ok());
  opener.join();
}

}  // namespace
}  // namespace thalweg
