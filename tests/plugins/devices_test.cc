// Several devices in one session: two simulated accelerators and the CPU.
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/autodiff/autodiff.h"
#include "framework/runtime/runtime_of.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/test_ops.h"
#include "tests/plugins/fake_runtime.h"
#include "tests/plugins/two_layers.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing_support::FakeDevice;
using testing_support::FakeRuntime;
using testing_support::Floats;
using testing_support::Scalar;
using testing_support::Settings;
using testing_support::Statistic;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::TwoLayers;
using testing_support::Values;

AttrValue Float() { return AttrValue::Type(TW_FLOAT); }

class DevicesTest : public testing::Test {
 protected:
  explicit DevicesTest(const Settings& settings = {{"delay_us", "300"}}) : g_(FakeRuntime(settings)) {}
  Edge On(const std::string& device, const std::string& op, std::vector<Edge> in, const std::string& name = "") {
    return g_.Op(op, std::move(in), {.name = name, .device = device});
  }
  // Returns how much the named counter of a device grew since the last call.
  int64_t Grown(int device, const std::string& name) {
    int64_t& before = seen_[{device, name}];
    const int64_t now = Statistic(*FakeDevice(g_.runtime(), device), name);
    return now - std::exchange(before, now);
  }
  std::string Plan(Session& session, const CallableSpec& spec, const std::vector<Shape>& shapes) {
    auto callable = session.MakeCallable(spec);
    EXPECT_TRUE(callable.ok()) << callable.status();
    auto text = (*callable)->PlanText(&shapes);
    return text.ok() ? testing_support::Dense(*text) : Text(text.status());
  }
  TestGraph g_;
  std::map<std::pair<int, std::string>, int64_t> seen_;
  Edge x_ = g_.Input(Shape({-1}), "x");
};

TEST_F(DevicesTest, AValueCrossesOncePerDestination) {
  Edge there = On("FAKE:0", "Neg", {x_}), square = On("FAKE:0", "Square", {there});
  Edge far = On("FAKE:1", "Add", {there, square}), again = On("FAKE:1", "Mul", {there, far});
  Edge home = On("CPU:0", "Exp", {again}), both = On("CPU:0", "AddV2", {home, again});
  for (const char* engine : {"fixed", "counted"}) {
    auto session = g_.NewSession({{"engine", engine}});
    auto out = Step(*session, {{x_}, {both, again}, {}}, {Floats({1, 2})});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values((*out)[1]), ElementsAre(0, -4));
    EXPECT_EQ(Grown(0, "copies_in"), 1);    // x
    EXPECT_EQ(Grown(0, "copies_peer"), 2);  // x to FAKE:1, its square back
    EXPECT_EQ(Grown(0, "copies_out"), 0);
    EXPECT_EQ(Grown(1, "copies_in"), 0);
    EXPECT_EQ(Grown(1, "copies_out"), 1);  // a second copy, for three readers
  }
}

TEST_F(DevicesTest, PeersThatDoNotReachEachOtherGoByWayOfTheHost) {
  for (Settings settings : {Settings{{"peers", "0"}}, Settings{{"without", "peer"}}, Settings{{"without", "streams,peer"}}}) {
    TestGraph g(FakeRuntime(settings));
    Edge x = g.Input(Shape({2}), "x");
    Edge y = g.Op("Square", {g.Op("Neg", {x}, {.device = "FAKE:0"})}, {.device = "FAKE:1"});
    auto out = Step(*g.NewSession(), {{x}, {y}, {}}, {Floats({2, 3})});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values((*out)[0]), ElementsAre(4, 9));
    EXPECT_EQ(Statistic(*FakeDevice(g.runtime(), 0), "copies_peer"), 0);
    EXPECT_EQ(Statistic(*FakeDevice(g.runtime(), 0), "copies_out"), 1);
    EXPECT_EQ(Statistic(*FakeDevice(g.runtime(), 1), "copies_in"), 1);
  }
}

// Memory of a block is reused in the plan's order; a copy on another queue must not write to it too
// early.
TEST_F(DevicesTest, MemoryIsNotUsedAgainWhileAnotherQueueNeedsIt) {
  for (const char* without : {"", "wait"}) {
    TestGraph g(FakeRuntime({{"delay_us", "1500"}, {"without", without}}));
    Edge x = g.Input(Shape({64}), "x"), y = x;
    for (int k = 0; k < 12; ++k) y = g.Op(k % 3 ? "Neg" : "Square", {y}, {.device = k % 2 ? "FAKE:1" : "FAKE:0"});
    for (const char* engine : {"fixed", "counted"}) {
      auto session = g.NewSession({{"engine", engine}});
      for (int step = 0; step < 3; ++step) {
        auto out = Step(*session, {{x}, {y}, {}}, {testing_support::FloatsOf(Shape({64}), 0.01f)});
        ASSERT_TRUE(out.ok()) << out.status();
        const float first = 0.01f * 0.01f;
        EXPECT_FLOAT_EQ(Values((*out)[0])[0], first * first * first * first * first * first * first * first) << without;
      }
    }
  }
}

// FAKE:1 is busy before it reads the first copy; the second copy gets the same memory.
TEST_F(DevicesTest, ACopyWaitsForTheReadersOfTheMemoryThatItGoesTo) {
  TestGraph g(FakeRuntime({{"delay_us", "2000"}}));
  Edge x = g.Input(Shape({64}), "x"), busy = x;
  for (int k = 0; k < 10; ++k) busy = g.Op("AddV2", {busy, g.Const({1})}, {.device = "FAKE:1"});
  Edge square = g.Op("Square", {x}, {.device = "FAKE:0"}), sum = g.Op("Add", {busy, square}, {.device = "FAKE:1"});
  Edge less = g.Op("Neg", {square}, {.device = "FAKE:0"}), back = g.Op("Add", {sum, less}, {.device = "FAKE:1"});
  auto session = g.NewSession({{"engine", "fixed"}});
  auto out = Step(*session, {{x}, {back}, {}}, {testing_support::FloatsOf(Shape({64}))});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Values((*out)[0]), Values(testing_support::FloatsOf(Shape({64}), 11)));
}

TEST_F(DevicesTest, PartialNamesChooseAmongWhatThereIs) {
  for (auto [device, where] : {std::pair("FAKE", "FAKE:0"),
                               {"fake:1", "FAKE:1"},
                               {"/device:*:1", "FAKE:1"},
                               {"/job:localhost", "CPU:0"},
                               {"/task:0/fake", "FAKE:0"}}) {
    auto session = g_.NewSession();
    EXPECT_THAT(Plan(*session, {{x_}, {On(device, "Neg", {x_})}, {}}, {Shape({2})}),
                HasSubstr(StrCat("device:", where, "\",\"kernel\":\"Neg")));
  }
}

TEST_F(DevicesTest, ADefaultDeviceIsForWhatNamesNone) {
  Edge a = On("", "Neg", {x_}), b = On("CPU:0", "Square", {a}), c = On("FAKE", "Relu", {b}), d = On("/job:localhost", "Neg", {c});
  auto session = g_.NewSession({{"device", "FAKE:1"}});
  const std::string plan = Plan(*session, {{x_}, {d}, {}}, {Shape({2})});
  EXPECT_THAT(plan, AllOf(HasSubstr("FAKE:1\",\"kernel\":\"Neg("), HasSubstr("CPU:0\",\"kernel\":\"Square("),
                          HasSubstr("FAKE:1\",\"kernel\":\"Relu("), HasSubstr("\"fallbacks\":[]")));
  EXPECT_THAT(Plan(*g_.NewSession({{"device", "FAKE:7"}}), {{x_}, {a}, {}}, {Shape({2})}), HasSubstr("device '/device:FAKE:7' not found"));
}

// ---- Fallback ----

TEST_F(DevicesTest, WithoutFallbackARunFails) {
  auto out = Step(*g_.NewSession(), {{x_}, {On("FAKE:0", "Exp", {x_}, "e")}, {}}, {Floats({0})});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(out.status()),
              AllOf(HasSubstr("Exp 'e': no kernel for (float) on device '/device:FAKE:0'"), HasSubstr("fallback=warn")));
}

TEST_F(DevicesTest, FallbackIsReportedPerNode) {
  std::vector<std::string> lines;
  g_.runtime().SetLog([](void* to, uint32_t, const char* t, uint64_t n) { static_cast<decltype(lines)*>(to)->emplace_back(t, n); }, &lines,
                      2);
  Edge y = On("FAKE:0", "Exp", {On("FAKE:0", "Neg", {x_}, "n")}, "e"), z = On("FAKE:9", "Neg", {y}, "z");
  for (auto [fallback, logged] : {std::pair("warn", 2u), {"allow", 0u}}) {
    lines.clear();
    auto session = g_.NewSession({{"fallback", fallback}});
    auto out = Step(*session, {{x_}, {z}, {}}, {Floats({0})});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values((*out)[0]), ElementsAre(-1));
    ASSERT_TRUE(Step(*session, {{x_}, {z}, {}}, {Floats({0})}).ok());
    ASSERT_EQ(lines.size(), logged);  // per plan, not per step
    if (logged) {
      EXPECT_EQ(lines[0], "Exp 'e': placed on CPU:0 because FAKE:0 has no kernel for (float)");
      EXPECT_EQ(lines[1], "Neg 'z': placed on CPU:0 because there is no device '/device:FAKE:9'");
    }
    EXPECT_THAT(Plan(*session, {{x_}, {z}, {}}, {Shape({1})}),
                HasSubstr("\"fallbacks\":[{\"node\":\"e\",\"asked\":\"/device:FAKE:0\",\"device\":\"/job:localhost/replica:0/task:0/"
                          "device:CPU:0\",\"why\":\"FAKE:0 has no kernel for (float)\"},{\"node\":\"z\""));
  }
  g_.runtime().SetLog(nullptr, nullptr, 0);
}

// The graph also has an optimizer without a kernel on FAKE:0, so the variable is placed where all
// its ops can run, from its initializer on.
TEST_F(DevicesTest, StateLivesWhereAllOfTheGraphCanReachIt) {
  Edge v =
      g_.Op("VarHandleOp", {}, {.name = "v", .device = "FAKE:0", .attrs = {{"dtype", Float()}, {"shape", AttrValue::OfShape(Shape({1}))}}});
  Edge init = g_.Op("AssignVariableOp", {v, g_.Const({1})}, {.attrs = {{"dtype", Float()}}});
  Edge m =
      g_.Op("VarHandleOp", {}, {.name = "m", .device = "FAKE:0", .attrs = {{"dtype", Float()}, {"shape", AttrValue::OfShape(Shape({1}))}}});
  Edge init_m = g_.Op("AssignVariableOp", {m, g_.Const({0})}, {.attrs = {{"dtype", Float()}}});
  Edge apply = g_.Op("ResourceApplyMomentum", {v, m, g_.Const(Scalar(1)), x_, g_.Const(Scalar(0))}, {.name = "apply"});
  Edge read = g_.Op("ReadVariableOp", {v}, {.attrs = {{"dtype", Float()}}});
  auto session = g_.NewSession({{"fallback", "allow"}});
  ASSERT_TRUE(Step(*session, {{}, {}, {init.node, init_m.node}}).ok());
  auto applied = Step(*session, {{x_}, {}, {apply.node}}, {Floats({3})});
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_THAT(Values((*Step(*session, {{}, {read}, {}}))[0]), ElementsAre(-2));
  EXPECT_THAT(Plan(*session, {{}, {read}, {}}, {}),
              HasSubstr("it shares a device with ResourceApplyMomentum 'apply', for which FAKE:0 has no kernel"));
}

// The graph grows, and a later plan runs the variable's ops on another device, if the session
// permits it.
TEST_F(DevicesTest, AVariableComesAlongToItsNextUser) {
  const AttrValue shape = AttrValue::OfShape(Shape({2}));
  Edge v = g_.Op("VarHandleOp", {}, {.name = "v", .device = "FAKE:0", .attrs = {{"dtype", Float()}, {"shape", shape}}});
  Edge init = g_.Op("AssignVariableOp", {v, g_.Const({1, 2})}, {.attrs = {{"dtype", Float()}}});
  Edge read = g_.Op("ReadVariableOp", {v}, {.attrs = {{"dtype", Float()}}});
  auto strict = g_.NewSession(), soft = g_.NewSession({{"fallback", "allow"}});
  for (Session* s : {strict.get(), soft.get()}) {
    ASSERT_TRUE(Step(*s, {{}, {}, {init.node}}).ok());
    ASSERT_TRUE(Step(*s, {{}, {read}, {}}).ok());
  }
  Edge rows = g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {1}));
  Edge add = g_.Op("ResourceScatterAdd", {v, rows, g_.Const({5})}, {.attrs = {{"dtype", Float()}}});
  EXPECT_THAT(Text(Step(*strict, {{}, {}, {add.node}}).status()), HasSubstr("no kernel for (resource, int32, float)"));
  for (float wanted : {7.0f, 12.0f}) {
    auto out = Step(*soft, {{}, {}, {add.node}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values((*Step(*soft, {{}, {read}, {}}))[0]), ElementsAre(1, wanted));  // by the earlier plan, on FAKE:0
  }
}

// A step that finds the variable on another device moves it back, even if it has returned in the
// meantime.
TEST(MovingVariableTest, StepsOnSeveralDevicesHaveItInTurn) {
  constexpr int kSteps = 1000;
  TestGraph host(FakeRuntime());
  const std::map<std::string, AttrValue> type = {{"dtype", Float()}};
  const std::map<std::string, AttrValue> shared = {
      {"dtype", Float()}, {"shape", AttrValue::OfShape(Shape({1}))}, {"shared_name", AttrValue::String("wanted")}};
  const auto add = [&](const std::string& device) {
    TestGraph g(SharedRuntimeOf(host.graph()));
    Edge v = g.Op("VarHandleOp", {}, {.device = device, .attrs = shared});
    const Node* added = g.Op("AssignAddVariableOp", {v, g.Const({1})}, {.device = device, .attrs = type}).node;
    auto session = g.NewSession({{"fallback", "allow"}, {"container", "wanted"}});
    for (int k = 0; k < kSteps; ++k) {
      auto out = Step(*session, {{}, {}, {added}});
      ASSERT_TRUE(out.ok()) << out.status();
    }
  };
  Edge v = host.Op("VarHandleOp", {}, {.device = "CPU:0", .attrs = shared});
  const Node* init = host.Op("AssignVariableOp", {v, host.Const({0})}, {.attrs = type}).node;
  auto session = host.NewSession({{"fallback", "allow"}, {"container", "wanted"}});
  ASSERT_TRUE(Step(*session, {{}, {}, {init}}).ok());
  std::vector<std::thread> threads;
  for (const char* device : {"FAKE:0", "FAKE:1", "CPU:0"}) threads.emplace_back(add, device);
  for (std::thread& t : threads) t.join();
  auto out = Step(*session, {{}, {host.Op("ReadVariableOp", {v}, {.attrs = type})}, {}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(3 * kSteps));
}

TEST_F(DevicesTest, ColocatedNodesFallBackTogether) {
  Edge a = On("FAKE:1", "Neg", {x_}, "a"), b = g_.Op("Exp", {a}, {.name = "b", .colocate_with = {"a"}});
  auto session = g_.NewSession({{"fallback", "allow"}});
  const std::string plan = Plan(*session, {{x_}, {b}, {}}, {Shape({1})});
  EXPECT_THAT(plan, AllOf(HasSubstr("\"copies\":0"), HasSubstr("\"node\":\"a\""),
                          HasSubstr("it shares a device with Exp 'b', for which FAKE:1 has no kernel")));
}

// ---- Training ----

TEST_F(DevicesTest, ANetTrainsToTheSameNumbersAsOnTheCpu) {
  auto train = [](const std::map<std::string, std::string>& options, const Settings& settings, int64_t* kernels) {
    TestGraph g(FakeRuntime(settings));
    TwoLayers net(&g);
    auto session = g.NewSession(options);
    net.Initialize(session.get());
    for (int step = 0; step < 15; ++step) net.Train(session.get(), step);
    *kernels = 0;
    if (settings.count("without") == 0) *kernels = Statistic(*FakeDevice(g.runtime()), "kernels");
    return net.Weights(session.get());
  };
  int64_t kernels = 0;
  const auto wanted = train({}, {}, &kernels);
  EXPECT_EQ(kernels, 0);
  EXPECT_NE(wanted[0], 0.1f);
  for (const Settings& settings :
       {Settings{}, Settings{{"delay_us", "100"}, {"pools_itself", "1"}}, Settings{{"without", "streams,wait,peer,statistics"}}}) {
    for (const char* engine : {"fixed", "counted"}) {
      const auto got = train({{"device", "FAKE:0"}, {"fallback", "allow"}, {"engine", engine}}, settings, &kernels);
      EXPECT_THAT(got, Pointwise(FloatNear(1e-5f), wanted)) << engine;
      EXPECT_TRUE(settings.count("without") || kernels > 15 * 10) << kernels;  // most of a step ran there
    }
  }
}

TEST_F(DevicesTest, ANetSplitOverTwoDevicesTrains) {
  TestGraph g(FakeRuntime({{"delay_us", "100"}}));
  TwoLayers net(&g, "FAKE:0", "FAKE:1");
  TestGraph h(FakeRuntime());
  TwoLayers plain(&h);
  auto session = g.NewSession({{"fallback", "allow"}}), there = h.NewSession();
  net.Initialize(session.get());
  plain.Initialize(there.get());
  for (int step = 0; step < 10; ++step) {
    net.Train(session.get(), step);
    plain.Train(there.get(), step);
  }
  EXPECT_THAT(net.Weights(session.get()), Pointwise(FloatNear(1e-5f), plain.Weights(there.get())));
  EXPECT_GT(Statistic(*FakeDevice(g.runtime(), 0), "copies_peer"), 0);
  EXPECT_GT(Statistic(*FakeDevice(g.runtime(), 1), "copies_peer"), 0);
}

}  // namespace
}  // namespace thalweg
