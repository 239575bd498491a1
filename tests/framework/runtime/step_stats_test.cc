#include "framework/runtime/trace/step_stats.h"

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/test_ops.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::AwaitGated;
using testing_support::CloseGate;
using testing_support::Floats;
using testing_support::OpenGate;
using testing_support::Step;
using testing_support::TestGraph;

class StepStatsTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Session> NewSession(TestGraph& g) { return g.NewSession({{"engine", GetParam()}, {"optimize", "false"}}); }
  RunOptions Watched() {
    RunOptions o;
    o.stats = &stats_;
    return o;
  }
  const tw_step_node& Node(const std::string& name) const {
    for (const tw_step_node& n : stats_.nodes()) {
      if (n.name == name) return n;
    }
    ADD_FAILURE() << "no node " << name;
    static const tw_step_node none{};
    return none;
  }
  StepStats stats_;
};

TEST_P(StepStatsTest, TellsOfEveryNodeThatRan) {
  TestGraph g(2);
  Edge x = g.Input(Shape({4}), "x");
  Edge a = g.Op("Next", {x}, {.name = "a"});
  Edge b = g.Op("Neg", {a}, {.name = "b"});
  Edge c = g.Op("Next", {b}, {.name = "c"});
  g.Op("Next", {x}, {.name = "not_wanted"});
  auto session = NewSession(g);
  ASSERT_TRUE(Step(*session, {{x}, {c}, {}}, {Floats({1, 2, 3, 4})}, Watched()).ok());
  ASSERT_EQ(stats_.nodes().size(), 3u);
  EXPECT_EQ(stats_.total().nodes, 3u);
  EXPECT_EQ((stats_.total().flags & TW_STEP_COUNTED) != 0, GetParam() == std::string("counted"));
  EXPECT_TRUE(stats_.total().flags & TW_STEP_PLANNED);
  EXPECT_FALSE(stats_.total().flags & TW_STEP_FAILED);
  EXPECT_STREQ(Node("a").op, "Next");
  EXPECT_THAT(Node("a").device, HasSubstr("CPU:0"));
  EXPECT_THAT(Node("b").kernel, HasSubstr("Neg(float"));
  EXPECT_EQ(Node("a").output_bytes, 16u);
  EXPECT_EQ(Node("a").allocated_bytes, 0u);   // its value is in the block
  EXPECT_EQ(Node("c").allocated_bytes, 16u);  // its value is fetched
  EXPECT_EQ(stats_.total().allocated_bytes, 16u);
  EXPECT_GE(stats_.total().block_bytes, 16u);
  int64_t last = stats_.total().plan_ns;
  for (const char* name : {"a", "b", "c"}) {
    const tw_step_node& n = Node(name);
    EXPECT_GE(n.start_ns, last) << name;
    EXPECT_EQ(n.busy_ns, n.end_ns - n.start_ns) << name;
    last = n.end_ns;
  }
  EXPECT_LE(last, stats_.total().total_ns);
}

TEST_P(StepStatsTest, AnotherRunForgetsTheFirst) {
  TestGraph g(2);
  Edge x = g.Input(Shape({4}), "x");
  Edge a = g.Op("Next", {x}), b = g.Op("Next", {a});
  auto session = NewSession(g);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Step(*session, {{x}, {b}, {}}, {Floats({1})}, Watched()).status().message().find("shape") != std::string::npos);
    ASSERT_TRUE(Step(*session, {{x}, {b}, {}}, {Floats({1, 2, 3, 4})}, Watched()).ok());
  }
  EXPECT_EQ(stats_.total().nodes, 2u);
  EXPECT_FALSE(stats_.total().flags & (TW_STEP_PLANNED | TW_STEP_FAILED));
  ASSERT_EQ(stats_.ops().size(), 1u);
  EXPECT_EQ(stats_.ops()[0].count, 2u);
  EXPECT_EQ(stats_.ops()[0].busy_ns, stats_.nodes()[0].busy_ns + stats_.nodes()[1].busy_ns);
}

TEST_P(StepStatsTest, AFailedStepTellsOfWhatRan) {
  TestGraph g(2);
  Edge x = g.Input(Shape({4}), "x");
  Edge a = g.Op("Next", {x}, {.name = "a"});
  Edge bad = g.Op("Picky", {a}, {.name = "bad"});
  Edge after = g.Op("Next", {bad}, {.name = "after"});
  auto session = NewSession(g);
  ASSERT_FALSE(Step(*session, {{x}, {after}, {}}, {Floats({-5, 2, 3, 4})}, Watched()).ok());
  EXPECT_TRUE(stats_.total().flags & TW_STEP_FAILED);
  EXPECT_EQ(stats_.total().nodes, 2u);
  EXPECT_EQ(Node("a").flags, 0u);
  EXPECT_EQ(Node("bad").flags, uint32_t{TW_STEP_NODE_FAILED});
  EXPECT_THAT(TraceJson(std::vector<const StepStats*>{&stats_}), HasSubstr("\"failed\": true"));
}

TEST_P(StepStatsTest, ARunThatDoesNotBeginIsAFailedOne) {
  TestGraph g(2);
  Edge x = g.Input(Shape({4}), "x");
  Edge a = g.Op("Next", {x});
  auto session = NewSession(g);
  ASSERT_FALSE(Step(*session, {{x}, {a}, {}}, {Floats({1, 2})}, Watched()).ok());
  EXPECT_EQ(stats_.total().flags, uint32_t{TW_STEP_FAILED});
  EXPECT_EQ(stats_.total().nodes, 0u);
  EXPECT_GT(stats_.total().total_ns, 0);
}

TEST_P(StepStatsTest, CopiesBetweenMemoriesAreNamedAfterWhatTheyCopy) {
  TestGraph g(2);
  Edge x = g.Input(Shape({4}), "x");
  Edge a = g.Op("OnCpu", {x}, {.name = "a"});
  Edge b = g.Op("OnFake", {a}, {.name = "b"});
  auto session = NewSession(g);
  ASSERT_TRUE(Step(*session, {{x}, {b}, {}}, {Floats({1, 2, 3, 4})}, Watched()).ok());
  std::vector<std::string> seen;
  for (const tw_step_node& n : stats_.nodes()) {
    if (!(n.flags & TW_STEP_NODE_COPY)) continue;
    seen.push_back(std::string(n.op) + " " + n.name);
    EXPECT_EQ(n.output_bytes, 16u);
    EXPECT_THAT(n.device, HasSubstr("FAKE"));
    EXPECT_STREQ(n.kernel, "");
  }
  EXPECT_THAT(seen, ElementsAre("CopyToDevice a", "CopyToHost b"));
}

TEST_P(StepStatsTest, OutputsThatNobodyReadsAndScratchOfUnknownSizesAreCounted) {
  TestGraph g(2);
  Edge x = g.Input(Shape(), "x");
  Edge kept = g.Op("Positive", {x}, {.name = "kept"});
  Edge two = g.Op("Two", {kept}, {.name = "two"});
  Edge back = g.Op("Mirror", {two}, {.name = "back"});
  auto session = NewSession(g);
  ASSERT_TRUE(Step(*session, {{x}, {back, two}, {}}, {Floats({1, -2, 3, 4})}, Watched()).ok());
  EXPECT_EQ(Node("kept").allocated_bytes, 12u);
  EXPECT_EQ(Node("two").output_bytes, 24u);
  EXPECT_EQ(Node("two").allocated_bytes, 12u);         // its first output reuses the memory of its input, which nobody else reads
  EXPECT_GE(Node("back").allocated_bytes, 12u + 12u);  // with its scratch
  // Its input is not counted here either.
  ASSERT_TRUE(Step(*session, {{x}, {back}, {}}, {Floats({1, -2, 3, 4})}, Watched()).ok());
  EXPECT_EQ(Node("back").allocated_bytes, 12u);
}

TEST_P(StepStatsTest, OneObjectServesOneRunAtATime) {
  TestGraph g(2);
  Edge x = g.Input(Shape({4}), "x");
  Edge a = g.Op("Gated", {x});
  auto session = NewSession(g);
  CloseGate();
  std::thread first([&] { EXPECT_TRUE(Step(*session, {{x}, {a}, {}}, {Floats({1, 2, 3, 4})}, Watched()).ok()); });
  AwaitGated(1);
  auto second = Step(*session, {{x}, {a}, {}}, {Floats({1, 2, 3, 4})}, Watched());
  OpenGate();
  first.join();
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(second.status())), HasSubstr("another run"));
  EXPECT_EQ(stats_.total().nodes, 1u);
}

INSTANTIATE_TEST_SUITE_P(Engines, StepStatsTest, testing::Values("fixed", "counted"));

TEST(StepStatsOfManyThreadsTest, AsynchronousNodesEndAfterTheThreadWentOn) {
  TestGraph g(2);
  Edge x = g.Input(Shape({4}), "x");
  for (const char* op : {"Later", "LaterAside"}) {
    Edge a = g.Op(op, {x}), b = g.Op("Next", {a});
    auto session = g.NewSession({{"optimize", "false"}});
    StepStats stats;
    RunOptions watched;
    watched.stats = &stats;
    ASSERT_TRUE(Step(*session, {{x}, {b}, {}}, {Floats({1, 2, 3, 4})}, watched).ok());
    ASSERT_EQ(stats.nodes().size(), 2u);
    const tw_step_node &first = stats.nodes()[0], &second = stats.nodes()[1];
    EXPECT_STREQ(first.op, op);
    EXPECT_LE(first.busy_ns, first.end_ns - first.start_ns);
    EXPECT_LE(first.end_ns, second.start_ns);
    EXPECT_EQ(first.output_bytes, 16u);
    if (op == std::string("LaterAside")) {
      EXPECT_GT(first.end_ns - first.start_ns, first.busy_ns);
      EXPECT_THAT(TraceJson(std::vector<const StepStats*>{&stats}), HasSubstr("\"ph\": \"b\""));
    }
    auto failed = Step(*session, {{x}, {b}, {}}, {Floats({-1, 2, 3, 4})}, watched);
    ASSERT_FALSE(failed.ok());
    ASSERT_EQ(stats.nodes().size(), 1u);
    EXPECT_EQ(stats.nodes()[0].flags, uint32_t{TW_STEP_NODE_FAILED});
  }
}

TEST(StepStatsOfManyThreadsTest, TheCallersWaitIsToldApart) {
  TestGraph g(2);
  Edge x = g.Input(Shape({4}), "x"), y = g.Op("GatedAside", {x});
  auto session = g.NewSession({{"engine", "counted"}});
  StepStats stats;
  RunOptions watched;
  watched.stats = &stats;
  CloseGate();
  std::thread opener([] {
    AwaitGated(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // enough time for the caller to run out of work
    OpenGate();
  });
  EXPECT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({1, 2, 3, 4})}, watched).ok());
  opener.join();
  EXPECT_GT(stats.total().wait_ns, 0);
  EXPECT_LE(stats.total().wait_ns, stats.total().total_ns);
}

// ---- Reports of kernels ----

TEST_P(StepStatsTest, SpansAndCountersOfKernelsAreInTheTrace) {
  TestGraph g(2);
  Edge x = g.Input(Shape({1}), "x");
  Edge y = g.Op("Reports", {x}, {.name = "n"});
  auto session = NewSession(g);
  auto out = Step(*session, {{x}, {y}, {}}, {Floats({1})}, Watched());
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(stats_.spans().size(), 3u);  // without the three that are wrong
  const StepStats::KernelSpan *whole = nullptr, *part = nullptr, *elsewhere = nullptr;
  for (const StepStats::KernelSpan& s : stats_.spans()) {
    EXPECT_STREQ(s.node, "n");
    EXPECT_GE(s.start, Node("n").start_ns);
    EXPECT_LE(s.end, Node("n").end_ns);
    (s.name == std::string("whole") ? whole : s.name == std::string("part") ? part : elsewhere) = &s;
  }
  ASSERT_TRUE(whole && part && elsewhere);
  EXPECT_EQ(whole, &stats_.spans()[0]);  // in the order of the begins
  EXPECT_LE(whole->start, part->start);
  EXPECT_GE(whole->end, part->end);
  EXPECT_STREQ(part->row, "");
  EXPECT_STREQ(elsewhere->row, "helper");
  ASSERT_EQ(stats_.counts().size(), 2u);
  EXPECT_EQ(stats_.counts()[0].value, 3);
  EXPECT_EQ(stats_.counts()[1].value, -4);
  EXPECT_GT(stats_.trace(), 0u);
  EXPECT_EQ(testing_support::Values((*out)[0]), std::vector<float>{float(stats_.trace())});
  const std::string json = TraceJson(std::vector<const StepStats*>{&stats_});
  for (const char* words : {R"("name": "part", "ph": "X")", R"("name": "n size", "ph": "C")", R"("size": -4)", R"(CPU:0 helper)",
                            R"("cat": "span")", R"("trace": )"}) {
    EXPECT_THAT(json, HasSubstr(words));
  }
}

TEST_P(StepStatsTest, EachRunHasATraceOfItsOwnAndARunWithoutStatisticsNone) {
  TestGraph g(2);
  Edge x = g.Input(Shape({1}), "x");
  Edge y = g.Op("Reports", {x});
  auto session = NewSession(g);
  ASSERT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({1})}, Watched()).ok());
  const uint64_t first = stats_.trace();
  ASSERT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({1})}, Watched()).ok());
  EXPECT_GT(stats_.trace(), first);
  EXPECT_EQ(stats_.spans().size(), 3u);  // those of the first run are gone
  auto out = Step(*session, {{x}, {y}, {}}, {Floats({1})}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(testing_support::Values((*out)[0]), std::vector<float>{0});
}

TEST_P(StepStatsTest, ReportsBeyondTheLimitAreCounted) {
  TestGraph g(2);
  Edge x = g.Input(Shape({1}), "x");
  Edge y = g.Op("Reports", {x});
  auto session = NewSession(g);
  stats_.set_limit(1);
  ASSERT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({1})}, Watched()).ok());
  EXPECT_EQ(stats_.spans().size(), 1u);
  EXPECT_EQ(stats_.counts().size(), 1u);
  EXPECT_GE(stats_.total().left_out, 3u);
  EXPECT_TRUE(stats_.total().flags & TW_STEP_CUT);
}

TEST(StepStatsOfManyThreadsTest, ThreadsAreNumberedFromTheCallers) {
  TestGraph g(3);
  const Shape shape({100'000});  // large enough to wake threads
  Edge x = g.Input(shape, "x");
  CallableSpec spec{{x}, {}, {}};
  for (int i = 0; i < 3; ++i) spec.fetches.push_back(g.Op("Gated", {x}));
  auto session = g.NewSession({{"engine", "counted"}, {"optimize", "false"}});
  StepStats stats;
  RunOptions watched;
  watched.stats = &stats;
  CloseGate();  // all three wait for each other, so each has its own thread
  std::thread opener([] {
    AwaitGated(3);
    OpenGate();
  });
  ASSERT_TRUE(Step(*session, spec, {testing_support::FloatsOf(shape)}, watched).ok());
  opener.join();
  std::map<uint32_t, int> threads;
  for (const tw_step_node& n : stats.nodes()) ++threads[n.thread];
  EXPECT_EQ(threads, (std::map<uint32_t, int>{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(stats.total().threads, 3u);
}

}  // namespace
}  // namespace thalweg
