// Recordings of the work that a session gives to devices, on the simulated accelerator, which
// counts recordings and replays.
#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/test_ops.h"
#include "tests/plugins/fake_runtime.h"
#include "tests/plugins/two_layers.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::FakeDevice;
using testing_support::FakeRuntime;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Settings;
using testing_support::Statistic;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::TwoLayers;
using testing_support::Values;

using Options = std::map<std::string, std::string>;

struct Counts {
  int64_t records, replays, clones, updates;
};
Counts Counted(Runtime& runtime) {
  const Device& d = *FakeDevice(runtime);
  return {Statistic(d, "records"), Statistic(d, "replays"), Statistic(d, "copies_inside"), Statistic(d, "updates")};
}

// Neg and Square alternately, and a sum of both ends.
struct Chain {
  explicit Chain(TestGraph* g, Shape shape = Shape({4}), const std::string& device = "FAKE:0") {
    x = g->Input(std::move(shape), "x");
    y = x;
    for (int k = 0; k < 6; ++k) y = g->Op(k % 2 ? "Square" : "Neg", {y}, {.device = device});
    y = g->Op("AddV2", {y, x}, {.device = device});
  }
  void Check(Session* session, float value, int64_t n = 4) const {
    Tensor fed = FloatsOf(Shape({n}));
    std::fill_n(fed.as<float>(), n, value);
    auto out = Step(*session, {{x}, {y}, {}}, {fed});
    ASSERT_TRUE(out.ok()) << out.status();
    float want = value;
    for (int k = 0; k < 6; ++k) want = k % 2 ? want * want : -want;
    EXPECT_EQ(Values((*out)[0])[size_t(n) - 1], want + value);
  }
  Edge x, y;
};

TEST(RecordingsTest, WhatIsEnqueuedAgainIsRecordedInTheThirdStep) {
  for (const char* delay : {"0", "300"}) {
    TestGraph g(FakeRuntime({{"delay_us", delay}}));
    Chain chain(&g);
    auto session = g.NewSession();
    for (int k = 0; k < 2; ++k) chain.Check(session.get(), float(k));
    EXPECT_EQ(Counted(g.runtime()).records, 0);
    for (int k = 2; k < 30; ++k) chain.Check(session.get(), float(k % 3));
    EXPECT_EQ(Counted(g.runtime()).records, 1);
    EXPECT_EQ(Counted(g.runtime()).replays, 28);
  }
}

TEST(RecordingsTest, WhoeverDoesNotWantItDoesWithout) {
  const std::pair<Settings, Options> cases[] = {
      {{}, {{"capture", "false"}}}, {{}, {{"engine", "counted"}}}, {{{"without", "capture"}}, {}}};
  for (const auto& [settings, options] : cases) {
    TestGraph g(FakeRuntime(settings));
    Chain chain(&g);
    auto session = g.NewSession(options);
    for (int k = 0; k < 6; ++k) chain.Check(session.get(), float(k % 3));
    EXPECT_EQ(Counted(g.runtime()).records, 0);
  }
}

TEST(RecordingsTest, GraphsOfTheHostKnowNothingOfIt) {
  TestGraph g(FakeRuntime());
  Chain chain(&g, Shape({4}), "CPU:0");
  auto session = g.NewSession();
  for (int k = 0; k < 6; ++k) chain.Check(session.get(), float(k % 3));
  EXPECT_EQ(Counted(g.runtime()).records, 0);
}

TEST(RecordingsTest, OtherSizesChangeWhatWasRecorded) {
  TestGraph g(FakeRuntime());
  Chain chain(&g, Shape({-1}));
  auto session = g.NewSession();
  for (int k = 0; k < 40; ++k) chain.Check(session.get(), float(k % 3), k / 10 % 2 ? 50 : 4);
  EXPECT_GE(Counted(g.runtime()).records, 4);
  EXPECT_GE(Counted(g.runtime()).replays, 28);
}

// A plan whose states run at the same time has recordings for each state.
TEST(RecordingsTest, StepsThatRunAtTheSameTimeHaveTheirOwn) {
  TestGraph g(FakeRuntime({{"delay_us", "200"}}));
  Chain chain(&g);
  auto session = g.NewSession();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 20; ++k) chain.Check(session.get(), float(t));
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_GE(Counted(g.runtime()).replays, 30);  // of 60
}

// Two layers without biases, for which the device has all kernels.
class Net {
 public:
  // scheduled: every step is fed a learning rate.
  explicit Net(TestGraph* g, bool scheduled = false)
      : g_(*g),
        x_(g->Input(Shape({16, 4}), "x")),
        rate_(scheduled ? g->Input(Shape(std::vector<int64_t>()), "rate") : g->Const(testing_support::Scalar(0.002f))) {
    const std::vector<int64_t> shapes[] = {{4, 8}, {8, 1}};
    for (const auto& dims : shapes) {
      const AttrValue type = AttrValue::Type(TW_FLOAT);
      handles_.push_back(Op("VarHandleOp", {}, {{"dtype", type}, {"shape", AttrValue::OfShape(Shape(dims))}}));
      Tensor start = FloatsOf(Shape(dims));
      for (uint64_t i = 0; i < start.count(); ++i) start.as<float>()[i] = std::cos(3 * float(i)) / 2;
      init_.push_back(Op("AssignVariableOp", {handles_.back(), g->Const(start)}, {{"dtype", type}}).node);
      read_.push_back(Op("ReadVariableOp", {handles_.back()}, {{"dtype", type}}));
    }
    Edge y = Op("MatMul", {Op("Relu", {Op("MatMul", {x_, read_[0]})}), read_[1]});
    Edge loss = Op("Sum", {Op("Square", {y}), g->Const(*Tensor::Vector<int32_t>(TW_INT32, {0, 1}))});
    std::vector<Gradient> gradients;
    Status s = AddGradients(&g->graph(), {loss}, {}, handles_, &gradients);
    EXPECT_TRUE(s.ok()) << s;
    for (size_t v = 0; v < 2; ++v) {
      train_.push_back(Op("ResourceApplyGradientDescent", {handles_[v], rate_, gradients[v].values}).node);
    }
  }
  void Initialize(Session* s) { Run(s, {{}, {}, init_}, {}); }
  void Train(Session* s) { Run(s, {{x_}, {}, train_}, {FloatsOf(Shape({16, 4}), -0.5f)}); }
  void Train(Session* s, float rate) {
    Run(s, {{x_, rate_}, {}, train_}, {FloatsOf(Shape({16, 4}), -0.5f), testing_support::Scalar(rate)});
  }
  std::vector<float> Weights(Session* s) { return Run(s, {{}, read_, {}}, {}); }

 private:
  Edge Op(const std::string& op, std::vector<Edge> in, const std::map<std::string, AttrValue>& attrs = {}) {
    return g_.Op(op, std::move(in), {.device = "FAKE:0", .attrs = attrs});
  }
  static std::vector<float> Run(Session* session, const CallableSpec& spec, const std::vector<Tensor>& feeds) {
    auto out = Step(*session, spec, feeds);
    EXPECT_TRUE(out.ok()) << out.status();
    std::vector<float> all;
    for (const Tensor& t : out.ok() ? *out : std::vector<Tensor>()) {
      for (float v : Values(t)) all.push_back(v);
    }
    return all;
  }

  TestGraph& g_;
  Edge x_, rate_;
  std::vector<Edge> handles_, read_;
  std::vector<const Node*> init_, train_;
};

TEST(RecordingsTest, TrainingIsTheSameAndUpdatesInPlace) {
  std::vector<float> plain;
  for (const char* capture : {"false", "true"}) {
    TestGraph g(FakeRuntime({{"delay_us", "100"}}));
    Net net(&g);
    // With more threads, an update may precede an unordered read, and then makes a copy.
    auto session = g.NewSession({{"capture", capture}, {"fallback", "allow"}, {"threads", "1"}});
    net.Initialize(session.get());
    net.Train(session.get());  // until now, the variables share memory with constants
    const int64_t before = Counted(g.runtime()).clones;
    for (int k = 1; k < 30; ++k) net.Train(session.get());
    EXPECT_EQ(Counted(g.runtime()).clones, before) << "a variable was copied to be updated; capture is " << capture;
    const std::vector<float> weights = net.Weights(session.get());
    if (std::string(capture) == "true") {
      EXPECT_EQ(weights, plain);
      EXPECT_GT(Counted(g.runtime()).replays, 20);
    }
    plain = weights;
  }
}

TEST(RecordingsTest, AScheduledRateIsFollowedByUpdatesOfTheRecording) {
  std::vector<float> plain;
  const std::tuple<Settings, std::string, bool> cases[] = {
      {{}, "false", false}, {{{"delay_us", "100"}}, "true", true}, {{{"without", "updates"}}, "true", false}};
  for (const auto& [settings, capture, updates] : cases) {
    TestGraph g(FakeRuntime(settings));
    Net net(&g, /*scheduled=*/true);
    auto session = g.NewSession({{"capture", capture}, {"fallback", "allow"}, {"threads", "1"}});
    net.Initialize(session.get());
    // A rate stays for three steps.
    for (int k = 0; k < 30; ++k) net.Train(session.get(), 0.003f - 0.0001f * float(k / 3));
    const std::vector<float> weights = net.Weights(session.get());
    if (plain.empty()) plain = weights;
    EXPECT_EQ(weights, plain) << "capture is " << capture;
    const Counts counts = Counted(g.runtime());
    if (updates) {
      EXPECT_GT(counts.replays, 20);
      EXPECT_GE(counts.updates, 2 * 8);  // both variables, at each new rate
      EXPECT_LE(counts.updates, 2 * 10);
      EXPECT_LE(counts.records, 6);
    } else {
      EXPECT_EQ(counts.updates, 0);
    }
  }
}

// A variable's value must not change while a caller holds it.
TEST(RecordingsTest, AValueThatIsHeldStaysAsItIs) {
  TestGraph g(FakeRuntime());
  TwoLayers net(&g, "FAKE:0", "FAKE:0");
  auto session = g.NewSession({{"fallback", "allow"}});
  net.Initialize(session.get());
  for (int k = 0; k < 10; ++k) net.Train(session.get(), k);
  CallableSpec reading = net.reading();
  reading.fetch_devices.assign(reading.fetches.size(), FakeDevice(g.runtime()));
  auto held = Step(*session, reading);
  ASSERT_TRUE(held.ok()) << held.status();
  const auto values = [&] {
    std::vector<float> all;
    for (const Tensor& t : *held) {
      auto host = FakeDevice(g.runtime())->ToHost(t);
      EXPECT_TRUE(host.ok()) << host.status();
      for (float v : Values(*host)) all.push_back(v);
    }
    return all;
  };
  const std::vector<float> before = values(), weights = net.Weights(session.get());
  for (int k = 10; k < 20; ++k) net.Train(session.get(), k);
  EXPECT_EQ(values(), before);
  EXPECT_EQ(before, weights);
  EXPECT_NE(net.Weights(session.get()), weights);
}

TEST(RecordingsTest, WhereRecordingFailsNodesRunOneByOne) {
  for (const char* times : {"1", "100"}) {
    TestGraph g(FakeRuntime({{"fail_record", "1"}, {"fail_times", times}}));
    Chain chain(&g, Shape({-1}));
    auto session = g.NewSession();
    for (int k = 0; k < 40; ++k) chain.Check(session.get(), float(k % 3), k / 5 % 2 ? 50 : 4);
    EXPECT_EQ(Counted(g.runtime()).replays > 0, std::string(times) == "1");
  }
}

TEST(RecordingsTest, AKernelThatFailsInAReplayFailsTheStep) {
  TestGraph g(FakeRuntime({{"fail_kernel", "45"}}));
  Chain chain(&g);
  auto session = g.NewSession();
  int failures = 0;
  for (int k = 0; k < 10; ++k) {
    auto out = Step(*session, {{chain.x}, {chain.y}, {}}, {Floats({1, 2, 3, 4})});
    failures += !out.ok();
    if (!out.ok()) {
      EXPECT_THAT(std::string(out.status().message()), HasSubstr("fail_kernel"));
    }
  }
  EXPECT_EQ(failures, 1);
  chain.Check(session.get(), 2);
}

// Runs of two sessions want a variable on different devices: each moves it to its device, and none
// runs without it.
TEST(RecordingsTest, AVariableThatTwoDevicesWantIsWhereItsRunIs) {
  auto runtime = FakeRuntime();
  constexpr int kSteps = 60;
  const auto handle = [](TestGraph* g, const std::string& device) {
    return g->Op("VarHandleOp", {},
                 {.device = device,
                  .attrs = {{"dtype", AttrValue::Type(TW_FLOAT)},
                            {"shape", AttrValue::OfShape(Shape({4}))},
                            {"shared_name", AttrValue::String("wanted")}}});
  };
  const std::map<std::string, AttrValue> type = {{"dtype", AttrValue::Type(TW_FLOAT)}};
  TestGraph host(runtime);
  Edge v = handle(&host, "CPU:0"), one = host.Const(Floats({1, 1, 1, 1}));
  const Node* init = host.Op("AssignVariableOp", {v, one}, {.attrs = type}).node;
  Edge value = host.Op("ReadVariableOp", {v}, {.attrs = type});
  auto session = host.NewSession({{"fallback", "allow"}, {"container", "wanted"}});
  ASSERT_TRUE(Step(*session, {{}, {}, {init}}).ok());
  const auto add = [&](const std::string& device) {
    TestGraph g(runtime);
    Edge x = g.Input(Shape({4}), "x"), y = x;
    for (int k = 0; k < 6; ++k) y = g.Op("Neg", {y}, {.device = device});
    const Node* added = g.Op("AssignAddVariableOp", {handle(&g, device), y}, {.device = device, .attrs = type}).node;
    auto mine = g.NewSession({{"fallback", "allow"}, {"optimize", "false"}, {"container", "wanted"}});
    for (int k = 0; k < kSteps; ++k) {
      auto out = Step(*mine, {{x}, {}, {added}}, {Floats({1, 2, 3, 4})});
      EXPECT_TRUE(out.ok()) << out.status();
    }
  };
  std::thread other([&] { add("FAKE:1"); });
  add("FAKE:0");
  other.join();
  auto out = Step(*session, {{}, {value}, {}});
  ASSERT_TRUE(out.ok()) << out.status();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(Values((*out)[0])[i], 1 + 2 * kSteps * float(i + 1));
}

TEST(RecordingsTest, AVariableThatIsNotInitialisedIsToldByItsNode) {
  TestGraph g(FakeRuntime());
  TwoLayers net(&g, "FAKE:0", "FAKE:0");
  auto session = g.NewSession({{"fallback", "allow"}});
  auto out = Step(*session, net.training(), net.feeds());
  EXPECT_THAT(std::string(out.status().message()), HasSubstr("is not initialised"));
}

}  // namespace
}  // namespace thalweg
