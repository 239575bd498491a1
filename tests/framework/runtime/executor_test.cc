// Both engines over random graphs and over the cases that they treat specially. Steps go through a
// session.
#include "framework/runtime/step/executor.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/step/step.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/random_graph.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::ClearJournal;
using testing_support::CloseGate;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Journal;
using testing_support::RandomGraph;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::TestRuntime;
using testing_support::Text;
using testing_support::Values;

struct Setting {
  const char* engine;
  uint32_t threads;
};
void PrintTo(const Setting& s, std::ostream* out) { *out << s.engine << ", " << s.threads << " threads"; }

class EnginesTest : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override { ClearJournal(); }
  std::unique_ptr<Session> NewSession(TestGraph& g, std::map<std::string, std::string> options = {}) {
    options["engine"] = GetParam().engine;
    return g.NewSession(options);
  }
  std::shared_ptr<Runtime> runtime_ = TestRuntime(GetParam().threads);
  TestGraph g_{runtime_};
};

// Compares bit for bit.
void ExpectSame(const std::vector<Tensor>& got, const std::vector<std::vector<float>>& want, const CallableSpec& spec) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].count(), want[k].size()) << spec.fetches[k].text();
    EXPECT_TRUE(got[k].bytes() == 0 || std::memcmp(got[k].data(), want[k].data(), got[k].bytes()) == 0) << spec.fetches[k].text();
  }
}

TEST_P(EnginesTest, GiveTheSameBitsOnRandomGraphs) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    TestGraph g(runtime_);
    RandomGraph random(&g, seed, {.nodes = 20 + seed % 50, .elsewhere = seed % 2 == 1});
    auto session = NewSession(g, {{"optimize", seed % 3 ? "true" : "false"}, {"max_shape_plans", "1"}});
    const auto expected = random.Expected();
    for (int step = 0; step < 4; ++step) {
      auto out = Step(*session, random.spec(), random.Feeds());
      ASSERT_TRUE(out.ok()) << out.status();
      ExpectSame(*out, expected, random.spec());
      if (HasFailure()) return;
    }
  }
}

TEST_P(EnginesTest, AFailureInTheMiddleEndsTheStepAndNothingElse) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    TestGraph g(runtime_);
    RandomGraph random(&g, seed, {.nodes = 50, .elsewhere = seed % 2 == 1});
    CallableSpec spec = random.spec();
    for (const char* name : {"Picky", "Picky_1", "Picky_2"}) spec.targets.push_back(g.graph().Find(name));
    auto session = NewSession(g);
    const auto expected = random.Expected();
    for (int step = 0; step < 3; ++step) {
      auto failed = Step(*session, spec, random.Feeds(true));
      EXPECT_EQ(failed.status().code(), absl::StatusCode::kOutOfRange) << failed.status();
      EXPECT_THAT(Text(failed.status()), HasSubstr("' on CPU:0: it is negative"));
      auto out = Step(*session, spec, random.Feeds());
      ASSERT_TRUE(out.ok()) << out.status();
      ExpectSame(*out, expected, spec);
      if (HasFailure()) return;
    }
  }
}

TEST_P(EnginesTest, FailuresNameOpNodeDeviceAndShapes) {
  Edge x = g_.Input(Shape({-1}), "x"), m = g_.Op("Picky", {g_.Op("Neg", {x})}, {.name = "in/the/middle"}), end = g_.Op("Next", {m});
  auto session = NewSession(g_);
  Status s = Step(*session, {{x}, {end}, {}}, {Floats({1, 2, 3})}).status();
  EXPECT_EQ(Text(s), "Picky 'in/the/middle' on CPU:0: it is negative (inputs: float[3])");
  Edge later = g_.Op("Next", {g_.Op("Later", {x}, {.name = "later"})});
  s = Step(*session, {{x}, {later}, {}}, {Floats({-1, 2})}).status();
  EXPECT_EQ(Text(s), "Later 'later' on CPU:0: it is negative (inputs: float[2])");
}

TEST_P(EnginesTest, AfterAFailureNothingThatWaitedForItRuns) {
  Edge x = g_.Input(Shape({1})), bad = g_.Op("Picky", {x});
  const Node* end = g_.Mark(2, {g_.Mark(1, {bad.node})});
  auto session = NewSession(g_);
  EXPECT_FALSE(Step(*session, {{x}, {}, {end}}, {Floats({-1})}).ok());
  EXPECT_THAT(Journal(), IsEmpty());
  EXPECT_TRUE(Step(*session, {{x}, {}, {end}}, {Floats({1})}).ok());
  EXPECT_THAT(Journal(), ElementsAre(1, 2));
}

TEST_P(EnginesTest, ControlEdgesAreObeyed) {
  Edge x = g_.Input(Shape({1}));
  // An order of marks that differs from the order of ids: late nodes wait for still later ones.
  std::vector<const Node*> marks = {g_.Mark(0)};
  for (int64_t i = 1; i < 60; ++i) {
    std::vector<const Node*> wait = {marks.back()};
    if (i % 3 == 0) wait.push_back(marks[size_t(i / 2)]);
    if (i % 5 == 0) wait.push_back(g_.Op("Later", {x}, {.controls = {marks.back()}}).node);
    if (i % 7 == 0) wait.push_back(g_.Op("GatedAside", {x}, {.controls = {marks.back()}}).node);
    marks.push_back(g_.Mark(i, wait));
  }
  auto session = NewSession(g_);
  std::vector<int64_t> expected(60);
  for (size_t i = 0; i < 60; ++i) expected[i] = int64_t(i);
  for (int step = 0; step < 10; ++step) {
    ClearJournal();
    ASSERT_TRUE(Step(*session, {{x}, {}, {marks.back()}}, {Floats({1})}).ok());
    EXPECT_EQ(Journal(), expected);
  }
}

TEST_P(EnginesTest, AsynchronousKernelsEndOnOtherThreads) {
  Edge x = g_.Input(Shape({-1}));
  std::vector<Edge> layer(20, x);
  for (int depth = 0; depth < 10; ++depth) {
    for (size_t i = 0; i < layer.size(); ++i)
      layer[i] = g_.Op(i % 4 == 3 ? "Next" : "Later", {layer[i]}, {.controls = {layer[(i + 7) % 20].node}});
  }
  auto session = NewSession(g_);
  for (int step = 0; step < 20; ++step) {
    auto out = Step(*session, {{x}, layer, {}}, {Floats({1, 2})});
    ASSERT_TRUE(out.ok()) << out.status();
    for (const Tensor& t : *out) EXPECT_THAT(Values(t), ElementsAre(11, 12));
    EXPECT_EQ(Step(*session, {{x}, layer, {}}, {Floats({-5, 2})}).status().code(), absl::StatusCode::kOutOfRange);
  }
}

TEST_P(EnginesTest, WhatAKernelGaveIsNotWrittenToInTheNextStep) {
  Edge x = g_.Input(Shape({-1})), y = g_.Op("Next", {g_.Op("Clip", {x})});
  auto session = NewSession(g_);
  // The first feed becomes the output of Clip instead of planned memory; the second is clipped into
  // planned memory again.
  Tensor handed_on = Floats({1, 2}), clipped = Floats({-1, 5});
  EXPECT_THAT(Values((*Step(*session, {{x}, {y}, {}}, {handed_on}))[0]), ElementsAre(2, 3));
  EXPECT_THAT(Values((*Step(*session, {{x}, {y}, {}}, {clipped}))[0]), ElementsAre(1, 6));
  EXPECT_THAT(Values(handed_on), ElementsAre(1, 2));
  EXPECT_TRUE(handed_on.unique());
}

TEST_P(EnginesTest, WhatAKernelGivesIsSeenThroughViewsOfItsOutput) {
  Edge x = g_.Input(Shape({2, 2}));
  for (const char* op : {"Give", "HandOn", "Clip"}) {
    Edge y = g_.Op("Next", {g_.Op("Flat", {g_.Op(op, {x})})});
    auto session = NewSession(g_);
    const float more = op == std::string("Give") ? 2 : 1;
    for (float first : {1.0f, 5.0f}) {
      auto out = Step(*session, {{x}, {y}, {}}, {FloatsOf(Shape({2, 2}), first)});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_THAT(Values((*out)[0]), ElementsAre(first + more, first + more + 1, first + more + 2, first + more + 3)) << op;
    }
  }
}

TEST_P(EnginesTest, WhatIsHandedOnOnADeviceIsSeenThroughViewsThere) {
  Edge x = g_.Input(Shape({3})), y = x;
  for (const char* op : {"OnFake", "HandOn", "Same", "Neg"}) y = g_.Op(op, {y}, {.device = "FAKE:0"});
  auto session = NewSession(g_);
  for (int step = 0; step < 2; ++step) {
    auto out = Step(*session, {{x}, {y}, {}}, {Floats({1, 2, 3})});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values((*out)[0]), ElementsAre(-3, -6, -9));
  }
}

TEST_P(EnginesTest, ATensorOfAnotherShapeIsNoOutput) {
  Edge x = g_.Input(Shape({2})), wrong = g_.Op("Give", {x}, {.attrs = {{"more", AttrValue::Int(100'000)}}}), y = g_.Op("Next", {wrong});
  auto session = NewSession(g_);
  for (Edge fetch : {wrong, y}) {  // in its own memory, in plan memory
    Status s = Step(*session, {{x}, {fetch}, {}}, {Floats({1, 2})}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_THAT(Text(s), HasSubstr("output 0 has shape [2]; a tensor of shape [100002] cannot be it"));
  }
}

// The reader's plan may rely on the known part of the shape; here the number of columns.
TEST_P(EnginesTest, AnOutputThatContradictsWhatIsKnownOfItsShapeIsNone) {
  Edge x = g_.Input(Shape({6}));
  const auto rows = [&](int64_t columns) { return g_.Op("Rows", {x}, {.attrs = {{"columns", AttrValue::Int(columns)}}}); };
  auto session = NewSession(g_);
  for (Edge fetch : {rows(3), g_.Op("Next", {rows(3)})}) {
    Status s = Step(*session, {{x}, {fetch}, {}}, {FloatsOf(Shape({6}))}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_THAT(Text(s), HasSubstr("output 0 has shape [2, 3], but [?, 2] was planned"));
  }
  auto out = Step(*session, {{x}, {g_.Op("Next", {rows(2)})}, {}}, {FloatsOf(Shape({6}))});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].shape(), Shape({3, 2}));
}

TEST_P(EnginesTest, AKernelThatMayBlockCanEndOnAnotherThread) {
  Edge x = g_.Input(Shape({-1}));
  std::vector<Edge> ends;
  for (int i = 0; i < 4; ++i) ends.push_back(g_.Op("Next", {g_.Op("LaterAside", {g_.Op("LaterAside", {x})})}));
  auto session = NewSession(g_);
  for (int step = 0; step < 5; ++step) {
    auto out = Step(*session, {{x}, ends, {}}, {Floats({float(step), 2})});
    ASSERT_TRUE(out.ok()) << out.status();
    for (const Tensor& t : *out) EXPECT_THAT(Values(t), ElementsAre(float(step) + 3, 5));
    EXPECT_EQ(Step(*session, {{x}, ends, {}}, {Floats({-1, 2})}).status().code(), absl::StatusCode::kOutOfRange);
  }
}

TEST_P(EnginesTest, AnEmptyPlanIsAStepToo) {
  auto session = NewSession(g_);
  EXPECT_TRUE(Step(*session, {}).ok());
  Edge c = g_.Const({7}), x = g_.Input(Shape({1}));
  auto out = Step(*session, {{x}, {c, x, c}, {}}, {Floats({3})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(7));
  EXPECT_THAT(Values((*out)[1]), ElementsAre(3));
  EXPECT_THAT(Values((*out)[2]), ElementsAre(7));
}

// ---- Variables ----

class VariablesInEnginesTest : public EnginesTest {
 protected:
  Edge Box(const Shape& shape, const std::string& device = "CPU:0") {
    return g_.Op("Box", {}, {.device = device, .attrs = {{"key", AttrValue::String("w")}, {"shape", AttrValue::OfShape(shape)}}});
  }
};

// With one thread, the first update holds the lock that the second waits for on the step's only
// thread.
TEST_P(VariablesInEnginesTest, MoreAsynchronousUpdatesThanThreadsEnd) {
  Edge v = Box(Shape({1})), x = g_.Input(Shape({1})), y = g_.Op("Get", {v});
  CallableSpec bumps;
  for (int i = 0; i < 6; ++i) bumps.targets.push_back(g_.Op("Bump", {v}).node);
  auto session = NewSession(g_);
  ASSERT_TRUE(Step(*session, {{x}, {}, {g_.Op("Put", {v, x}).node}}, {Floats({1})}).ok());
  for (int step = 0; step < 3; ++step) {
    Status s = Step(*session, bumps).status();
    ASSERT_TRUE(s.ok()) << s;
  }
  EXPECT_THAT(Values((*Step(*session, {{}, {y}, {}}))[0]), ElementsAre(19));
}

TEST_P(VariablesInEnginesTest, AVariableOfAnotherShapeThanDeclaredIsNotRead) {
  Edge v = Box(Shape({2})), x = g_.Input(Shape({-1})), y = g_.Op("Next", {g_.Op("Get", {v}, {.name = "get"})});
  const Node* put = g_.Op("Put", {v, x}).node;
  auto session = NewSession(g_);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(Step(*session, {{x}, {}, {put}}, {Floats({1, 2})}).ok());
    EXPECT_THAT(Values((*Step(*session, {{}, {y}, {}}))[0]), ElementsAre(2, 3));
    ASSERT_TRUE(Step(*session, {{x}, {}, {put}}, {Floats({1})}).ok());
    Status s = Step(*session, {{}, {y}, {}}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_THAT(Text(s), HasSubstr("Get 'get' on CPU:0: variable 'w' holds [1], but this graph declares [2]"));
  }
}

TEST_P(VariablesInEnginesTest, AHandleOnAnotherDeviceDoesNotLeadToTheVariable) {
  Edge here = Box(Shape({1})), x = g_.Input(Shape({1}));
  auto session = NewSession(g_);
  ASSERT_TRUE(Step(*session, {{x}, {}, {g_.Op("Put", {here, x}).node}}, {Floats({1})}).ok());
  Edge there = g_.Op("Get", {Box(Shape({1}), "FAKE:1")}, {.device = "FAKE:1"});
  Status s = Step(*session, {{}, {there}, {}}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
  EXPECT_THAT(Text(s), AllOf(HasSubstr("variable 'w' lives on "), HasSubstr("CPU:0; a handle on "), HasSubstr("FAKE:1 cannot lead to it")));
  EXPECT_THAT(Values((*Step(*session, {{}, {g_.Op("Get", {here})}, {}}))[0]), ElementsAre(1));
}

// ---- Exceptions ----

TEST_P(VariablesInEnginesTest, AKernelThatThrowsFailsItsStepOnly) {
  Edge x = g_.Input(Shape({2}));
  auto session = NewSession(g_);
  for (const char* op : {"Throws", "ThrowsAside", "ThrowsLater"}) {
    Edge bad = g_.Op(op, {g_.Op("Next", {x})}, {.name = StrCat("a/", op)}), y = g_.Op("Next", {bad});
    for (int step = 0; step < 2; ++step) {
      Status s = Step(*session, {{x}, {y}, {}}, {Floats({1, 2})}).status();
      EXPECT_EQ(s.code(), absl::StatusCode::kInternal) << s;
      EXPECT_THAT(Text(s), HasSubstr(StrCat(op, " 'a/", op, "' on CPU:0: ")));
      EXPECT_THAT(Text(s), HasSubstr("it was thrown"));
    }
    EXPECT_TRUE(Step(*session, {{x}, {g_.Op("Next", {x})}, {}}, {Floats({1, 2})}).ok());
  }
}

// The step is already over, and its resources belong to the next step.
TEST(ExecutorTest, AKernelThatThrowsAfterItsEndHarmsNoLaterStep) {
  TestGraph g(2);
  Edge x = g.Input(Shape({2}));
  CallableSpec spec{{x}, {}, {g.Op("ThrowsLate", {x}).node}};
  auto session = g.NewSession();
  for (int step = 0; step < 4; ++step) {
    Status s = Step(*session, spec, {Floats({1, 2})}).status();
    EXPECT_TRUE(s.ok()) << s;
  }
}

// Two kernels wait for the effect of a third, on two threads.
TEST(ExecutorTest, KernelsThatMayBlockTakeNoThreadOfTheStep) {
  for (const char* threads : {"0", "2"}) {
    TestGraph g(4);
    Edge x = g.Input(Shape({2}));
    CallableSpec spec{{x}, {}, {}};
    for (const char* op : {"GatedAside", "GatedAside", "Opens"}) spec.targets.push_back(g.Op(op, {x}).node);
    auto session = g.NewSession({{"threads", threads}, {"disable_pass", "cse"}});
    for (int step = 0; step < 3; ++step) {
      CloseGate();
      EXPECT_TRUE(Step(*session, spec, {Floats({1, 2})}).ok());
    }
  }
}

TEST_P(VariablesInEnginesTest, AKernelThatThrowsLetsItsVariablesGo) {
  Edge v = Box(Shape({1})), x = g_.Input(Shape({1})), y = g_.Op("Get", {v});
  const Node* put = g_.Op("Put", {v, x}).node;
  auto session = NewSession(g_);
  for (const char* op : {"ThrowsHolding", "ThrowsHoldingLater"}) {
    const Node* bad = g_.Op(op, {v}).node;
    for (float value : {3.0f, 4.0f}) {
      ASSERT_TRUE(Step(*session, {{x}, {}, {put}}, {Floats({value})}).ok());
      EXPECT_EQ(Step(*session, {{}, {}, {bad}}).status().code(), absl::StatusCode::kInternal);
      EXPECT_THAT(Values((*Step(*session, {{}, {y}, {}}))[0]), ElementsAre(value));
    }
  }
}

const auto kSettings = testing::Values(Setting{"fixed", 1}, Setting{"fixed", 2}, Setting{"fixed", 4}, Setting{"counted", 1},
                                       Setting{"counted", 2}, Setting{"counted", 4});
std::string Name(const testing::TestParamInfo<Setting>& p) { return StrCat(p.param.engine, "_", p.param.threads); }
INSTANTIATE_TEST_SUITE_P(All, EnginesTest, kSettings, Name);
INSTANTIATE_TEST_SUITE_P(All, VariablesInEnginesTest, kSettings, Name);

}  // namespace
}  // namespace thalweg
