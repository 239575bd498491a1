// A failure on a device ends the step with an error that names the place, leaves the session
// usable, and never hangs. The Nth call of each kind is made to fail, for every N until a run
// succeeds.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/devices/device_queues.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/test_ops.h"
#include "tests/plugins/fake_runtime.h"
#include "tests/plugins/two_layers.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing_support::FakeDevice;
using testing_support::FakeRuntime;
using testing_support::Floats;
using testing_support::Settings;
using testing_support::Statistic;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::TwoLayers;
using testing_support::Values;

struct Fault {
  const char* setting;
  const char* says;
  absl::StatusCode code;
};
constexpr Fault kFaults[] = {{"fail_allocate", "this allocation was to fail", absl::StatusCode::kResourceExhausted},
                             {"fail_enqueue", "was not to be enqueued", absl::StatusCode::kInternal},
                             {"fail_copy", "this copy was to fail", absl::StatusCode::kInternal},
                             {"fail_transfer", "was to fail while it ran", absl::StatusCode::kInternal},
                             {"fail_kernel", "was to fail while it ran", absl::StatusCode::kInternal}};

class FaultsTest : public testing::TestWithParam<const char*> {
 protected:
  // Initialises and trains; repeats a failed step once.
  static void Train(const Settings& settings, const Fault& fault, int* failed, std::vector<float>* weights) {
    TestGraph g(FakeRuntime(settings));
    TwoLayers net(&g, "FAKE:0", "FAKE:1");
    auto session = g.NewSession({{"fallback", "allow"}, {"engine", GetParam()}});
    *failed = 0;
    for (const CallableSpec& spec : {net.initializing(), net.training(), net.training(), net.reading()}) {
      const std::vector<Tensor> feeds = spec.feeds.empty() ? std::vector<Tensor>() : net.feeds();
      auto out = Step(*session, spec, feeds);
      if (!out.ok()) {
        ++*failed;
        EXPECT_EQ(out.status().code(), fault.code) << out.status();
        EXPECT_THAT(Text(out.status()), AllOf(HasSubstr(fault.says), HasSubstr("FAKE:")));
        out = Step(*session, spec, feeds);
        EXPECT_TRUE(out.ok()) << out.status();
      }
      if (out.ok() && spec.targets.empty()) {
        for (const Tensor& t : *out) {
          for (float v : Values(t)) weights->push_back(v);
        }
      }
    }
    session.reset();
    for (int d : {0, 1}) EXPECT_EQ(Statistic(*FakeDevice(g.runtime(), d), "streams"), 0);
  }
};

TEST_P(FaultsTest, EveryCallMayFailOnce) {
  for (const Fault& fault : kFaults) {
    int failed = 1, n = 0;
    while (failed && ++n < 200) {
      SCOPED_TRACE(StrCat(fault.setting, "=", n));
      std::vector<float> weights;
      // A failed allocation is tried again after the pool has returned its cached memory.
      const bool twice = fault.code == absl::StatusCode::kResourceExhausted;
      Train({{fault.setting, StrCat(n)}, {"fail_times", twice ? "2" : "1"}}, fault, &failed, &weights);
      EXPECT_EQ(weights.size(), 4u * 8 + 8 + 8);
      if (HasFailure()) return;
    }
    EXPECT_GT(n, 4) << fault.setting;  // some calls did fail
    EXPECT_EQ(failed, 0) << fault.setting;
  }
}
INSTANTIATE_TEST_SUITE_P(Engines, FaultsTest, testing::Values("fixed", "counted"));

TEST(DeviceFaultsTest, AKernelThatFailsLateIsNamed) {
  TestGraph g(FakeRuntime({{"fail_kernel", "2"}, {"delay_us", "1000"}}));
  Edge x = g.Input(Shape({2}), "x");
  Edge y = g.Op("Square", {g.Op("Neg", {x}, {.name = "n", .device = "FAKE:1"})}, {.name = "late", .device = "FAKE:1"});
  auto session = g.NewSession();
  auto out = Step(*session, {{x}, {y}, {}}, {Floats({1, 2})});
  EXPECT_THAT(Text(out.status()), AllOf(HasSubstr("FAKE:1"), HasSubstr("Square 'late' on fake-1 was to fail while it ran")));
  EXPECT_THAT(Values((*Step(*session, {{x}, {y}, {}}, {Floats({1, 2})}))[0]), testing::ElementsAre(1, 4));
}

TEST(DeviceFaultsTest, ALateFailureOfWhatNobodyReadsFailsTheStep) {
  TestGraph g(FakeRuntime({{"fail_kernel", "1"}}));
  Edge x = g.Input(Shape({2}), "x"), y = g.Op("Neg", {x}, {.name = "unread", .device = "FAKE:0"});
  auto session = g.NewSession();
  auto out = Step(*session, {{x}, {}, {y.node}}, {Floats({1, 2})});
  EXPECT_THAT(Text(out.status()),
              AllOf(HasSubstr("device:FAKE:0 reported after the step's kernels were started"), HasSubstr("Neg 'unread'")));
  EXPECT_TRUE(Step(*session, {{x}, {}, {y.node}}, {Floats({1, 2})}).ok());
}

TEST(DeviceFaultsTest, ALostDeviceFailsEveryStepAndHangsNone) {
  for (const char* n : {"1", "2", "3", "4"}) {
    TestGraph g(FakeRuntime({{"lose_after", n}, {"delay_us", "500"}}));
    Edge x = g.Input(Shape({2}), "x");
    Edge there = g.Op("Neg", {x}, {.device = "FAKE:0"}), y = g.Op("Exp", {g.Op("Square", {there}, {.device = "FAKE:0"})});
    Edge here = g.Op("Neg", {x}, {.device = "CPU:0"});
    auto session = g.NewSession();
    for (int k = 0; k < 3; ++k) {
      auto out = Step(*session, {{x}, {y}, {}}, {Floats({0, 0})});
      EXPECT_EQ(out.status().code(), absl::StatusCode::kUnavailable) << out.status();
      EXPECT_THAT(Text(out.status()), AnyOf(HasSubstr("fake-0 was lost in"), HasSubstr("fake-0 is lost")));
    }
    EXPECT_THAT(Values((*Step(*session, {{x}, {here}, {}}, {Floats({1, 2})}))[0]), testing::ElementsAre(-1, -2));
    auto other = Step(*session, {{x}, {g.Op("Neg", {x}, {.device = "FAKE:1"})}, {}}, {Floats({1, 2})});
    EXPECT_TRUE(other.ok()) << other.status();  // the other steps continue
  }
}

TEST(DeviceFaultsTest, ALostPeerFailsWhoWaitsForIt) {
  for (const char* without : {"", "wait", "peer"}) {
    TestGraph g(FakeRuntime({{"lose_after", "2"}, {"delay_us", "500"}, {"without", without}}));
    Edge x = g.Input(Shape({2}), "x");
    Edge y = g.Op("Square", {g.Op("Neg", {x}, {.device = "FAKE:0"})}, {.device = "FAKE:1"});
    auto out = Step(*g.NewSession(), {{x}, {y}, {}}, {Floats({1, 2})});
    EXPECT_EQ(out.status().code(), absl::StatusCode::kUnavailable) << without << out.status();
    EXPECT_THAT(Text(out.status()), HasSubstr("fake-0 was lost in Neg"));
  }
}

TEST(DeviceFaultsTest, AFullDeviceSaysHowFull) {
  TestGraph g(FakeRuntime({{"memory", "64K"}}));
  Edge x = g.Input(Shape({-1}), "x"), y = g.Op("Neg", {x}, {.device = "FAKE:0"});
  auto session = g.NewSession();
  auto out = Step(*session, {{x}, {y}, {}}, {testing_support::FloatsOf(Shape({100000}))});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(out.status()), AllOf(HasSubstr("FAKE:0"), HasSubstr("fake-0 is full: 0 of 65536 bytes are in use")));
  EXPECT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({1})}).ok());
}

// The engine for control flow waits for all queues, and then the end of the step waits for them
// again.
TEST(DeviceFaultsTest, AQueueForCopiesThatFailedTellsWhoeverWaitsForIt) {
  auto runtime = FakeRuntime({{"fail_transfer", "1"}});
  Device* d = FakeDevice(*runtime);
  auto t = Tensor::Make(TW_FLOAT, Shape({1}), d->pool());
  auto queues = *DeviceQueues::Create(d);
  float value = 1;
  ASSERT_TRUE(d->CopyIn(&value, t->view().data, t->view().offset, 4, *queues->Queue(DeviceQueues::kIn)).ok());
  for (int k = 0; k < 2; ++k) EXPECT_THAT(Text(queues->Drain()), HasSubstr("a copy of 4 bytes on fake-0 was to fail while it ran"));
}

TEST(DeviceFaultsTest, TheFirstFailureOfAQueueStaysAndItsValuesComeAllTheSame) {
  auto runtime = FakeRuntime({{"lose_after", "1"}});
  Device* d = FakeDevice(*runtime);
  auto t = Tensor::Make(TW_FLOAT, Shape({1}), d->pool());
  auto stream = *Stream::Create(d);
  float value = 1;
  ASSERT_TRUE(d->CopyIn(&value, t->view().data, t->view().offset, 4, stream.get()).ok());
  auto mark = stream->Mark();
  ASSERT_TRUE(mark.ok());
  EXPECT_EQ(stream->timeline()->Wait(*mark).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(stream->timeline()->value(), UINT64_MAX);
  EXPECT_EQ(stream->Drain().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace thalweg
