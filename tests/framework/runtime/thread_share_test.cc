// The number of threads that work for a session's step, counted by the kernels themselves.
#include <algorithm>
#include <thread>

#include "gtest/gtest.h"

#include "tests/framework/support/test_ops.h"

namespace thalweg {
namespace {

using testing_support::Floats;
using testing_support::MostInCrowd;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::TestRuntime;

// Six parallel kernels, each with a loop.
CallableSpec Wide(TestGraph& g, int64_t tag, const std::string& op = "Crowd") {
  CallableSpec spec;
  Edge x = g.Input(Shape({4}));
  spec.feeds = {x};
  for (int i = 0; i < 6; ++i) spec.fetches.push_back(g.Op(op, {x}, {.attrs = {{"tag", AttrValue::Int(tag)}}}));
  return spec;
}

// Returns the maximum over some steps. wanted: runs more steps until that number is reached, since
// a busy machine may delay a thread.
int MostThreads(TestGraph& g, const std::string& threads, const std::string& engine, int wanted, const std::string& op = "Crowd") {
  CallableSpec spec = Wide(g, 0, op);
  auto session = g.NewSession({{"threads", threads}, {"engine", engine}, {"optimize", "false"}});
  MostInCrowd(0);
  int most = 0;
  for (int i = 0; i < 5 || (most < wanted && i < 500); ++i) {
    EXPECT_TRUE(Step(*session, spec, {Floats({1, 2, 3, 4})}).ok());
    most = std::max(most, MostInCrowd(0));
  }
  return most;
}

TEST(ThreadShareTest, AStepUsesNoMoreThreadsThanItsSessionAllows) {
  for (const char* engine : {"fixed", "counted"}) {
    TestGraph g(4);
    EXPECT_EQ(MostThreads(g, "1", engine, 1), 1) << engine;
    EXPECT_EQ(MostThreads(g, "1", engine, 1, "CrowdAside"), 1) << engine;
    EXPECT_EQ(MostThreads(g, "2", engine, 2), 2) << engine;
    EXPECT_EQ(MostThreads(g, "3", engine, 3), 3) << engine;
  }
}

TEST(ThreadShareTest, MoreThanTheRuntimeHasMeansAll) {
  TestGraph g(3);
  EXPECT_EQ(MostThreads(g, "100", "counted", 3), 3);
  EXPECT_EQ(MostThreads(g, "0", "counted", 3), 3);
}

TEST(ThreadShareTest, TwoSessionsAtOnceKeepToTheirOwn) {
  TestGraph g(4);
  auto two = g.NewSession({{"threads", "2"}, {"engine", "counted"}, {"optimize", "false"}});
  auto three = g.NewSession({{"threads", "3"}, {"engine", "counted"}, {"optimize", "false"}});
  CallableSpec first = Wide(g, 1), second = Wide(g, 2);
  MostInCrowd(1);
  MostInCrowd(2);
  auto run = [](Session* session, const CallableSpec* spec) {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(Step(*session, *spec, {Floats({1, 2, 3, 4})}).ok());
  };
  std::thread other(run, two.get(), &first);
  run(three.get(), &second);
  other.join();
  EXPECT_LE(MostInCrowd(1), 2);
  EXPECT_LE(MostInCrowd(2), 3);
}

TEST(ThreadShareTest, PrioritiesChangeWhoIsServedAndNoResult) {
  TestGraph g(3);
  CallableSpec spec = Wide(g, 3);
  auto low = g.NewSession({{"priority", "-10"}, {"engine", "counted"}, {"optimize", "false"}});
  auto high = g.NewSession({{"priority", "10"}, {"engine", "counted"}, {"optimize", "false"}});
  std::vector<std::thread> callers;
  for (Session* s : {low.get(), high.get(), low.get()}) {
    callers.emplace_back([s, &spec] {
      for (int i = 0; i < 10; ++i) {
        auto out = Step(*s, spec, {Floats({1, 2, 3, 4})});
        ASSERT_TRUE(out.ok()) << out.status();
        EXPECT_EQ(testing_support::Values((*out)[5]), (std::vector<float>{1, 2, 3, 4}));
      }
    });
  }
  for (std::thread& t : callers) t.join();
}

}  // namespace
}  // namespace thalweg
