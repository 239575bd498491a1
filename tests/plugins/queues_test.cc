// The concurrency of devices with the host and with each other: queues that the host does not wait
// for, memory reused in queue order, limits, and the choice of devices. On the simulated
// accelerator, whose commands start late.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <thread>

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
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::Dense;
using testing_support::FakeDevice;
using testing_support::FakeRuntime;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Scalar;
using testing_support::Settings;
using testing_support::Statistic;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

AttrValue Float() { return AttrValue::Type(TW_FLOAT); }

// 0, 1, ... up to a limit that is known only at run time, like the sizes of all dependent values.
Edge Counting(TestGraph* g, Edge limit) { return g->Op("Range", {g->Const(Scalar(0)), limit, g->Const(Scalar(1))}, {.device = "CPU:0"}); }

// Keeps the minimum time of the work, since a busy machine adds to some runs.
void Time(const std::function<void()>& work, double* least) {
  const auto began = std::chrono::steady_clock::now();
  work();
  *least = std::min(*least, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
}

// Two towers of kernels with variables that change on the way; a session that waits for one tower
// would not start the other.
class Towers {
 public:
  Towers(TestGraph* g, const std::string& first, const std::string& second) {
    x_ = g->Input(Shape({8}), "x");
    for (const std::string& device : {first, second}) {
      Edge y = x_;
      for (int k = 1; k <= 40; ++k) {
        y = g->Op("Neg", {y}, {.device = device});
        if (k % 10) continue;
        Edge v = g->Op("VarHandleOp", {},
                       {.name = StrCat("v", init_.size()),
                        .device = device,
                        .attrs = {{"dtype", Float()}, {"shape", AttrValue::OfShape(Shape({8}))}}});
        init_.push_back(g->Op("AssignVariableOp", {v, g->Const(FloatsOf(Shape({8}), 0))}, {.attrs = {{"dtype", Float()}}}).node);
        applied_.push_back(g->Op("ResourceApplyGradientDescent", {v, g->Const(Scalar(1)), y}).node);
      }
      out_.push_back(y);
    }
  }
  void Initialize(Session* s) { ASSERT_TRUE(Step(*s, {{}, {}, init_}).ok()); }
  void Run(Session* s) {
    auto out = Step(*s, {{x_}, out_, applied_}, {FloatsOf(Shape({8}))});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(Values((*out)[0]), Values(FloatsOf(Shape({8}))));
  }

 private:
  Edge x_;
  std::vector<const Node*> init_, applied_;
  std::vector<Edge> out_;
};

TEST(QueuesTest, TwoDevicesTakeHalfTheTimeOfOne) {
  for (const char* engine : {"fixed", "counted"}) {
    double seconds[] = {1e9, 1e9};
    const auto ratio = [&] { return seconds[0] / seconds[1]; };
    for (int attempt = 0; attempt == 0 || (attempt < 10 && ratio() < 1.5); ++attempt) {
      for (int devices : {1, 2}) {
        TestGraph g(FakeRuntime({{"delay_us", "4000"}}));
        Towers towers(&g, "FAKE:0", devices == 1 ? "FAKE:0" : "FAKE:1");
        auto session = g.NewSession({{"engine", engine}, {"optimize", "false"}});
        towers.Initialize(session.get());
        towers.Run(session.get());
        Time([&] { towers.Run(session.get()); }, &seconds[devices - 1]);
      }
    }
    EXPECT_GE(ratio(), 1.5) << engine << ": " << seconds[0] << " and " << seconds[1] << " s";  // 1 if one waits for the other
  }
}

// A device with parallel queues copies inputs of later kernels while earlier kernels run.
TEST(QueuesTest, CopiesRunBesideKernels) {
  double seconds[] = {1e9, 1e9};
  const auto ratio = [&] { return seconds[0] / seconds[1]; };
  for (int attempt = 0; attempt == 0 || (attempt < 10 && ratio() < 1.2); ++attempt) {
    for (const char* threads : {"0", "1"}) {
      TestGraph g(FakeRuntime({{"delay_us", "4000"}, {"queue_threads", threads}}));
      std::vector<Edge> feeds;
      Edge sum;
      for (int k = 0; k < 30; ++k) {
        feeds.push_back(g.Input(Shape({8}), StrCat("x", k)));
        Edge there = g.Op("Neg", {feeds.back()}, {.device = "FAKE:0"});
        sum = k ? g.Op("AddV2", {sum, there}, {.device = "FAKE:0"}) : there;
      }
      auto session = g.NewSession({{"engine", "fixed"}});
      const std::vector<Tensor> fed(feeds.size(), FloatsOf(Shape({8})));
      const auto run = [&] {
        auto out = Step(*session, {feeds, {sum}, {}}, fed);
        ASSERT_TRUE(out.ok()) << out.status();
        EXPECT_EQ(Values((*out)[0])[1], -60);
      };
      run();
      Time(run, &seconds[threads[0] - '0']);
    }
  }
  EXPECT_GE(ratio(), 1.2) << seconds[0] << " and " << seconds[1] << " s";  // 1 if one waits for the other
}

TEST(QueuesTest, OneCopyServesAllReaders) {
  TestGraph g(FakeRuntime());
  Edge x = g.Input(Shape({256}), "x"), made = g.Op("Neg", {x}, {.device = "FAKE:0"});
  std::vector<Edge> readers;
  for (int k = 0; k < 5; ++k) readers.push_back(g.Op("Exp", {made}, {.name = StrCat("r", k), .device = "CPU:0"}));
  auto session = g.NewSession({{"disable_pass", "cse"}});
  auto callable = session->MakeCallable({{x}, readers, {}});
  ASSERT_TRUE(callable.ok()) << callable.status();
  const std::vector<Shape> shapes = {Shape({256})};
  const std::string plan = Dense(*(*callable)->PlanText(&shapes));
  EXPECT_THAT(plan, HasSubstr("\"copies\":2,\"copied_bytes\":2048,\"saved_bytes\":4096"));  // x in, -x out for five
  auto out = Step(*session, {{x}, readers, {}}, {FloatsOf(Shape({256}))});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Statistic(*FakeDevice(g.runtime()), "copies_out"), 1);
}

// Values whose sizes are known only at run time have their own tensors. All of them together would
// exceed the memory.
TEST(QueuesTest, MemoryComesBackWhileTheStepRuns) {
  for (const char* engine : {"fixed", "counted"}) {
    TestGraph g(FakeRuntime({{"memory", "4M"}, {"delay_us", "200"}}));
    Edge x = g.Input(Shape(std::vector<int64_t>()), "x"), y = Counting(&g, x);
    for (int k = 0; k < 40; ++k) y = g.Op("Neg", {y}, {.device = "FAKE:0"});
    auto session = g.NewSession({{"engine", engine}, {"optimize", "false"}});
    auto out = Step(*session, {{x}, {y}, {}}, {Scalar(100000)});
    ASSERT_TRUE(out.ok()) << engine << out.status();
    EXPECT_EQ(Values((*out)[0]), Values(FloatsOf(Shape({100000}), 0)));
  }
}

// All feeds together take ten times the device's memory.
TEST(QueuesTest, CopiesComeWhenTheyAreNeeded) {
  for (const char* engine : {"fixed", "counted"}) {
    TestGraph g(FakeRuntime({{"memory", "4M"}, {"delay_us", "100"}}));
    std::vector<Edge> feeds;
    Edge sum;
    for (int k = 0; k < 100; ++k) {
      feeds.push_back(g.Input(Shape({100000}), StrCat("x", k)));
      Edge there = g.Op("Neg", {feeds.back()}, {.device = "FAKE:0"});
      sum = k ? g.Op("AddV2", {sum, there}, {.device = "FAKE:0"}) : there;
    }
    auto session = g.NewSession({{"engine", engine}});
    auto out = Step(*session, {feeds, {sum}, {}}, std::vector<Tensor>(feeds.size(), FloatsOf(Shape({100000}))));
    ASSERT_TRUE(out.ok()) << engine << out.status();
    EXPECT_EQ(Values((*out)[0])[2], -300);
  }
}

TEST(QueuesTest, WhatTheHostNeedsInBetweenIsThere) {
  for (const char* without : {"", "wait", "streams"}) {
    for (const char* engine : {"fixed", "counted"}) {
      TestGraph g(FakeRuntime({{"delay_us", "1000"}, {"without", without}}));
      Edge x = g.Input(Shape({4}), "x"), y = x;
      for (int k = 0; k < 6; ++k) {
        Edge there = g.Op("Square", {g.Op("Neg", {y}, {.device = "FAKE:0"})}, {.device = k % 2 ? "FAKE:1" : "FAKE:0"});
        y = g.Op("Sqrt", {there}, {.device = "CPU:0"});
      }
      auto session = g.NewSession({{"engine", engine}});
      for (int step = 0; step < 3; ++step) {
        auto out = Step(*session, {{x}, {y}, {}}, {FloatsOf(Shape({4}), 2)});
        ASSERT_TRUE(out.ok()) << out.status();
        EXPECT_THAT(Values((*out)[0]), ElementsAre(2, 3, 4, 5));
      }
    }
  }
}

// One kernel of a step waits for a device's queues while other threads enqueue work.
TEST(QueuesTest, WhatIsUnderWayIsKeptWhileAnotherThreadSettlesTheQueues) {
  auto runtime = FakeRuntime({{"delay_us", "200"}});
  Device* device = FakeDevice(*runtime);
  auto queues = DeviceQueues::Create(device);
  ASSERT_TRUE(queues.ok()) << queues.status();
  std::atomic<bool> over{false};
  std::thread settler([&] {
    while (!over) EXPECT_TRUE((*queues)->Settle().ok());
  });
  struct Copied {
    Tensor there;
    QueueMark mark;
  };
  std::deque<Copied> under_way;
  const Tensor from = FloatsOf(Shape({8}));
  int lost = 0;
  for (int k = 0; k < 500; ++k) {
    auto there = Tensor::Make(TW_FLOAT, Shape({8}), device->pool());
    ASSERT_TRUE(there.ok()) << there.status();
    const tw_view& to = there->view();
    EXPECT_TRUE(device->CopyIn(from.data(), to.data, to.offset, to.bytes, (*queues)->compute()).ok());
    // The mark comes first: it is reached when the copy is over, however late this thread goes on.
    auto mark = (*queues)->Mark(DeviceQueues::kCompute);
    ASSERT_TRUE(mark.ok()) << mark.status();
    (*queues)->Keep(*there);
    under_way.push_back({*std::move(there), *mark});
    const auto ended = [](const Copied& c) { return c.mark.line->value() >= c.mark.value; };
    for (const Copied& c : under_way) lost += c.there.unique() && !ended(c);
    while (!under_way.empty() && (under_way.size() > 20 || ended(under_way.front()))) {
      if (ended(under_way.front())) under_way.pop_front();
    }
  }
  over = true;
  settler.join();
  EXPECT_EQ(lost, 0) << "memory that the queue was still to write was let go";
}

// The thread that ends a step collects the errors of all its queues while a late copy adds a queue.
TEST(QueuesTest, AQueueIsMadeWhileOthersAskWhatWentWrong) {
  auto runtime = FakeRuntime();
  for (int k = 0; k < 20; ++k) {
    auto queues = DeviceQueues::Create(FakeDevice(*runtime));
    ASSERT_TRUE(queues.ok()) << queues.status();
    std::thread asker([&] {
      uint64_t at = 0;
      for (int i = 0; i < 200; ++i) EXPECT_TRUE((*queues)->failure(&at).ok());
    });
    for (auto which : {DeviceQueues::kIn, DeviceQueues::kOut}) EXPECT_TRUE((*queues)->Queue(which).ok());
    asker.join();
  }
}

// The variable gets new memory because its value is referenced; the reference is released before
// the queue reaches the kernel that reads it.
TEST(QueuesTest, WhatAKernelReadsStaysWhereTheVariableGetsOtherMemory) {
  TestGraph g(FakeRuntime({{"delay_us", "2000"}, {"pools_itself", "1"}}));
  const std::map<std::string, AttrValue> type = {{"dtype", Float()}};
  Edge x = g.Input(Shape({64}), "x");
  Edge v = g.Op("VarHandleOp", {}, {.device = "FAKE:0", .attrs = {{"dtype", Float()}, {"shape", AttrValue::OfShape(Shape({64}))}}});
  const Node* init = g.Op("AssignVariableOp", {v, x}, {.device = "FAKE:0", .attrs = type}).node;
  Edge held = g.Op("ReadVariableOp", {v}, {.device = "FAKE:0", .attrs = type});
  Edge read = g.Op("ReadVariableOp", {v}, {.device = "FAKE:0", .attrs = type}), y = x;
  for (int k = 0; k < 40; ++k) y = g.Op("Neg", {y}, {.device = "FAKE:0"});
  Edge sum = g.Op("AddV2", {read, y}, {.device = "FAKE:0"});
  const Node* apply = g.Op("ResourceApplyGradientDescent", {v, g.Const(Scalar(1)), sum}).node;
  auto session = g.NewSession({{"capture", "false"}, {"optimize", "false"}, {"engine", "fixed"}, {"fallback", "allow"}});
  const Tensor fed = FloatsOf(Shape({64}));
  ASSERT_TRUE(Step(*session, {{x}, {}, {init}}, {fed}).ok());
  ASSERT_TRUE(Step(*session, {{x}, {}, {apply}}, {fed}).ok());  // the variable's first value is the feed's memory
  CallableSpec holding{{}, {held}, {}};
  holding.fetch_devices = {FakeDevice(g.runtime())};
  auto holder = Step(*session, holding);
  ASSERT_TRUE(holder.ok()) << holder.status();
  const int64_t before = Statistic(*FakeDevice(g.runtime()), "copies_inside");
  Status s;
  std::atomic<bool> over{false};
  std::thread step([&] {
    s = Step(*session, {{x}, {}, {apply}}, {fed}).status();
    over = true;
  });
  while (!over && Statistic(*FakeDevice(g.runtime()), "copies_inside") == before) std::this_thread::yield();
  EXPECT_FALSE(over) << "the variable was not copied while the step's kernels waited";
  holder->clear();
  step.join();
  EXPECT_TRUE(s.ok()) << s;
}

// ---- Limited memory ----

TEST(DeviceMemoryTest, ALimitIsOfOneDeviceOrOfAll) {
  RuntimeOptions options;
  options.threads = 2;
  ASSERT_TRUE(SetRuntimeOption(&options, "memory_limit.FAKE", "1M").ok());
  ASSERT_TRUE(SetRuntimeOption(&options, "memory_limit.fake:1", "4M").ok());
  auto runtime = FakeRuntime({}, options);
  EXPECT_EQ(FakeDevice(*runtime, 0)->pool()->stats().limit, 1u << 20);
  EXPECT_EQ(FakeDevice(*runtime, 1)->pool()->stats().limit, 4u << 20);
  TestGraph g(runtime);
  Edge x = g.Input(Shape(std::vector<int64_t>()), "x"), y = g.Op("Neg", {Counting(&g, x)}, {.name = "first", .device = "FAKE:0"});
  Edge z = g.Op("Add", {y, g.Op("Square", {y}, {.name = "second", .device = "FAKE:0"})}, {.name = "sum", .device = "FAKE:0"});
  for (const char* engine : {"fixed", "counted"}) {
    auto session = g.NewSession({{"engine", engine}});
    auto out = Step(*session, {{x}, {z}, {}}, {Scalar(90000)});  // 360,000 bytes each, of which two fit
    EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted) << out.status();
    EXPECT_THAT(Text(out.status()),
                AllOf(HasSubstr("Add 'sum' on FAKE:0"), HasSubstr("of 1048576 bytes are in use"), HasSubstr("the largest there are"),
                      HasSubstr("Neg 'first' on FAKE:0: float[90000] (360000 bytes)"), HasSubstr("Square 'second'")));
    EXPECT_TRUE(Step(*session, {{x}, {z}, {}}, {Scalar(1000)}).ok());
  }
}

TEST(DeviceMemoryTest, WhatAPlanNeedsIsToldWithItsLargestValues) {
  TestGraph g(FakeRuntime({{"memory", "64K"}}));
  Edge x = g.Input(Shape({-1}), "x"), y = g.Op("Neg", {g.Op("Square", {x}, {.name = "big", .device = "FAKE:0"})}, {.device = "FAKE:0"});
  Edge z = g.Op("Exp", {y}, {.device = "CPU:0"});
  auto session = g.NewSession();
  auto out = Step(*session, {{x}, {z}, {}}, {FloatsOf(Shape({100000}))});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(out.status()),
              AllOf(HasSubstr("FAKE:0"), HasSubstr("400000"), HasSubstr("fake-0 is full: 0 of 65536 bytes are in use")));
  EXPECT_TRUE(Step(*session, {{x}, {z}, {}}, {Floats({1})}).ok());
}

TEST(DeviceMemoryTest, ASessionThatIsClosedGivesItBack) {
  TestGraph g(FakeRuntime());
  Edge x = g.Input(Shape({-1}), "x"), y = g.Op("Neg", {g.Op("Square", {x}, {.device = "FAKE:0"})}, {.device = "FAKE:0"});
  auto session = g.NewSession();
  ASSERT_TRUE(Step(*session, {{x}, {y}, {}}, {FloatsOf(Shape({1000}))}).ok());
  const Device& device = *FakeDevice(g.runtime());
  EXPECT_GT(Statistic(device, "memory_used"), 0);
  ASSERT_TRUE(session->Close().ok());
  EXPECT_EQ(Statistic(device, "memory_used"), 0);
  EXPECT_GT(Statistic(device, "memory_peak"), 0);
}

TEST(DeviceMemoryTest, CopiesToTheHostGoThroughPinnedMemory) {
  TestGraph g(FakeRuntime());
  Edge x = g.Input(Shape({16}), "x"), y = g.Op("Neg", {x}, {.device = "FAKE:0"});
  auto session = g.NewSession();
  auto out = Step(*session, {{x}, {y}, {}}, {FloatsOf(Shape({16}))});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_GT(Statistic(*FakeDevice(g.runtime()), "pinned"), 0);
  EXPECT_EQ(Values((*out)[0])[3], -4);
}

TEST(DeviceMemoryTest, WhatIsCopiedToADeviceIsMadeInPinnedMemory) {
  TestGraph g(FakeRuntime());
  Edge x = g.Input(Shape({16}), "x"), made = g.Op("Exp", {x}, {.device = "CPU:0"}), y = g.Op("Neg", {made}, {.device = "FAKE:0"});
  auto session = g.NewSession();
  auto out = Step(*session, {{x}, {}, {y.node}}, {FloatsOf(Shape({16}))});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_GT(Statistic(*FakeDevice(g.runtime()), "pinned"), 0);
}

// ---- The choice of devices ----

TEST(VisibleDevicesTest, OnlyThoseThatAreListedAreUsed) {
  const auto names = [](const std::vector<std::string>& visible) {
    RuntimeOptions options;
    options.threads = 2;
    options.visible_devices = visible;
    auto runtime = FakeRuntime({{"devices", "3"}}, options);
    std::vector<std::string> uids;
    for (const Device* d : runtime->devices()) {
      if (d->kind() == "FAKE") uids.push_back(StrCat(d->index(), "=", d->uid()));
      if (d->kind() == "CPU") uids.push_back("CPU");
    }
    std::sort(uids.begin(), uids.end());
    return uids;
  };
  EXPECT_THAT(names({}), ElementsAre("0=fake-0", "1=fake-1", "2=fake-2", "CPU"));
  EXPECT_THAT(names({"FAKE"}), ElementsAre("0=fake-0", "1=fake-1", "2=fake-2", "CPU"));
  EXPECT_THAT(names({"fake:2"}), ElementsAre("0=fake-2", "CPU"));
  EXPECT_THAT(names({"FAKE:0", "FAKE:1"}), ElementsAre("0=fake-0", "1=fake-1", "CPU"));
  EXPECT_THAT(names({"CPU:0"}), ElementsAre("CPU"));
  EXPECT_THAT(names({"OTHER:3"}), ElementsAre("CPU"));
  EXPECT_THAT(names({" FAKE:1", "\tFAKE:2 "}), ElementsAre("0=fake-1", "1=fake-2", "CPU"));
}

TEST(VisibleDevicesTest, WhoAsksForOneThatIsLeftOutIsToldSo) {
  RuntimeOptions options;
  options.threads = 1;
  options.visible_devices = {"FAKE:-1", "CPU:0"};
  TestGraph g(FakeRuntime({}, options));
  Edge x = g.Input(Shape({1}), "x");
  auto out = Step(*g.NewSession(), {{x}, {g.Op("Neg", {x}, {.device = "FAKE:0"})}, {}}, {Floats({1})});
  EXPECT_THAT(Text(out.status()), AllOf(HasSubstr("device '/device:FAKE:0' not found"), HasSubstr("leaves out all 2 that there are")));
}

TEST(VisibleDevicesTest, TheEnvironmentListsThemAndWhatIsNotThereIsTold) {
  ASSERT_EQ(setenv("THALWEG_VISIBLE_DEVICES", "FAKE:1,FAKE:7", 1), 0);
  std::vector<std::string> lines;
  auto runtime = FakeRuntime();
  runtime->SetLog([](void* to, uint32_t, const char* t, uint64_t n) { static_cast<decltype(lines)*>(to)->emplace_back(t, n); }, &lines, 2);
  EXPECT_EQ(FakeDevice(*runtime)->uid(), "fake-1");
  unsetenv("THALWEG_VISIBLE_DEVICES");
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("there is no 'FAKE:7'"), HasSubstr("2 of kind FAKE"))));
  runtime->SetLog(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace thalweg
