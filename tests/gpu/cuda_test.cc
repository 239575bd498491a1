// The CUDA plugin on the stub driver (stub/): correct results, order of all work, no leaks, clear
// errors. Kernels run as host functions of the same source, so sizes are small.
#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ops/ops.h"
#include "tests/framework/support/test_ops.h"
#include "tests/gpu/on_stub.h"
#include "tests/plugins/two_layers.h"

namespace thalweg {
namespace {

using gpu::Both;
using gpu::Counted;
using gpu::CudaRuntime;
using gpu::Draw;
using gpu::Reset;
using gpu::Settings;
using gpu::Wrong;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::TwoLayers;
using testing_support::Values;

// Returns an empty list if a step failed.
std::vector<float> Trained(const std::string& first, const std::string& second, std::string* failed = nullptr,
                           const std::string& capture = "true", size_t steps = 6) {
  TestGraph g(CudaRuntime());
  TwoLayers net(&g, first, second);
  auto session = g.NewSession({{"fallback", "allow"}, {"capture", capture}});
  std::vector<CallableSpec> specs(steps + 2, net.training());
  specs.front() = net.initializing();
  specs.back() = net.reading();
  std::vector<float> weights;
  for (const CallableSpec& spec : specs) {
    auto out = Step(*session, spec, spec.feeds.empty() ? std::vector<Tensor>() : net.feeds());
    if (!out.ok()) {
      if (failed) *failed = StrCat(out.status().message());
      return {};
    }
    if (spec.targets.empty()) {
      for (const Tensor& t : *out) {
        for (float v : Values(t)) weights.push_back(v);
      }
    }
  }
  return weights;
}

// Sums in parts, which allocates memory for one call; returns 60,000 if correct.
float SumInParts() {
  TestGraph g(CudaRuntime());
  Edge x = g.Input(Shape({300, 200}), "x");
  Edge y = g.Op("Sum", {x, g.Const(*Tensor::Vector<int32_t>(TW_INT32, {0, 1}))}, {.device = "CUDA:0"});
  Tensor ones = FloatsOf(Shape({300, 200}));
  std::fill_n(ones.as<float>(), ones.count(), 1.f);
  auto session = g.NewSession();
  float sum = 0;
  for (int k = 0; k < 3; ++k) {
    auto out = Step(*session, {{x}, {y}, {}}, {ones});
    sum = out.ok() ? Values((*out)[0])[0] : 0;
  }
  return sum;
}

// Runs a chain of kernels in one session; one kernel allocates memory for its call. Returns the
// results of `steps` steps for the feeds 1, 2, ... Alternating between two sizes updates the
// recording in place.
std::vector<float> Chained(int steps, bool two_sizes, const std::string& capture = "true", std::string* failed = nullptr) {
  TestGraph g(CudaRuntime());
  Edge x = g.Input(Shape({-1}), "x"), y = x;
  const auto there = [&](const std::string& op, std::vector<Edge> in) { return g.Op(op, std::move(in), {.device = "CUDA:0"}); };
  for (int k = 0; k < 3; ++k) y = there("Neg", {there("Square", {y})});
  Edge sum = there("Sum", {y, g.Const(*Tensor::Vector<int32_t>(TW_INT32, {0}))});
  Edge z = there("Neg", {there("AddV2", {sum, there("Neg", {sum})})}), out = there("AddV2", {sum, z});
  auto session = g.NewSession({{"capture", capture}});
  std::vector<float> sums;
  for (int k = 0; k < steps; ++k) {
    Tensor in = FloatsOf(Shape({two_sizes && k / 5 % 2 ? 40000 : 60000}));
    std::fill_n(in.as<float>(), in.count(), k % 2 ? 1.f : 0.5f);
    auto got = Step(*session, {{x}, {out}, {}}, {in});
    if (!got.ok()) {
      if (failed) *failed = StrCat(got.status().message());
      return {};
    }
    sums.push_back(Values((*got)[0])[0]);
  }
  return sums;
}

// Returns a product that a library computes, between kernels; empty if it failed.
std::vector<float> Multiplied() {
  TestGraph g(CudaRuntime());
  Edge a = g.Input(Shape({80, 70}), "a"), b = g.Input(Shape({70, 90}), "b");
  const auto there = [&](const std::string& op, std::vector<Edge> in) { return g.Op(op, std::move(in), {.device = "CUDA:0"}); };
  Edge y = there("Neg", {there("MatMul", {there("Neg", {a}), there("Square", {b})})});
  auto session = g.NewSession();
  std::vector<float> all;
  for (int k = 0; k < 3; ++k) {
    auto out = Step(*session, {{a, b}, {y}, {}}, {FloatsOf(Shape({80, 70})), FloatsOf(Shape({70, 90}))});
    if (!out.ok()) return {};
    all = Values((*out)[0]);
  }
  return all;
}

void ExpectNothingLeft() {
  EXPECT_EQ(Wrong(), "");
  for (const char* what : {"streams", "events", "modules", "memory", "pinned", "graphs"}) EXPECT_EQ(Counted(what), 0) << what;
}

TEST(CudaTest, TrainsAsTheCpuDoes) {
  Reset("delay=100");
  std::string failed;
  const std::vector<float> there = Trained("CUDA:0", "CUDA:0", &failed);
  EXPECT_EQ(failed, "");
  EXPECT_THAT(there, Pointwise(FloatNear(1e-4f), Trained("CPU:0", "CPU:0")));
  EXPECT_GT(Counted("cuLaunchKernel"), 50);
  ExpectNothingLeft();
}

TEST(CudaTest, MemoryForACallGoesBackInOrder) {
  Reset("delay=300");
  EXPECT_EQ(SumInParts(), 60000);
  ExpectNothingLeft();
}

// Simulates a device that reads all of the host's memory, so that the driver stages no copies.
TEST(CudaTest, WhatACopyReadsStaysUntilItHas) {
  Reset("delay=300 unstaged=1");
  EXPECT_THAT(Trained("CUDA:0", "CUDA:0"), Pointwise(FloatNear(1e-4f), Trained("CPU:0", "CPU:0")));
  Reset("delay=2000 unstaged=1");
  TestGraph g(CudaRuntime());
  Edge x = g.Input(Shape({4}), "x"), y = x;
  const Edge backwards = g.Const(*Tensor::Vector<int32_t>(TW_INT32, {3, 2, 1, 0})), axis = g.Const(*Tensor::Vector<int32_t>(TW_INT32, {0}));
  const Edge first = g.Op("Squeeze", {axis}, {.device = "CPU:0"});
  for (int k = 0; k < 8; ++k) y = g.Op("GatherV2", {y, backwards, first}, {.device = "CUDA:0"});
  auto out = Step(*g.NewSession(), {{x}, {y}, {}}, {Floats({1, 2, 3, 4})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Values((*out)[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(Wrong(), "");
}

TEST(CudaTest, TwoDevicesAndTheHostTakeTurnsInOrder) {
  const std::vector<float> here = Trained("CPU:0", "CPU:0");
  for (const auto& [first, second] : {std::pair("CUDA:0", "CUDA:1"), std::pair("CUDA:0", "CPU:0"), std::pair("CPU:0", "CUDA:1")}) {
    for (int seed = 1; seed <= 4; ++seed) {
      Reset(StrCat("devices=2 delay=200 seed=", seed));
      EXPECT_THAT(Trained(first, second), Pointwise(FloatNear(1e-4f), here)) << first << second << seed;
      ExpectNothingLeft();
    }
  }
}

TEST(CudaTest, WhatIsEnqueuedAgainAndAgainIsRecorded) {
  for (bool two_sizes : {false, true}) {
    Reset("delay=100");
    const std::vector<float> plain = Chained(40, two_sizes, "false");
    EXPECT_EQ(Counted("cuGraphLaunch"), 0);
    Reset("delay=100");
    EXPECT_EQ(Chained(40, two_sizes), plain);
    EXPECT_GT(Counted("cuGraphLaunch"), two_sizes ? 5 : 30);
    EXPECT_EQ(Counted("cuStreamBeginCapture"), Counted("cuStreamEndCapture"));
    EXPECT_LT(Counted("cuLaunchKernel"), two_sizes ? 400 : 120) << "of 480 that are launched one by one";
    if (two_sizes) {
      EXPECT_GT(Counted("cuGraphExecUpdate"), 0);
    }
    ExpectNothingLeft();
  }
}

TEST(CudaTest, RecordedStepsTrainAsOthersDo) {
  Reset("delay=100");
  const std::vector<float> plain = Trained("CUDA:0", "CUDA:0", nullptr, "false", 20);
  EXPECT_EQ(Counted("cuGraphLaunch"), 0);
  EXPECT_EQ(Trained("CUDA:0", "CUDA:0", nullptr, "true", 20), plain);
  EXPECT_GT(Counted("cuGraphLaunch"), 10);
  ExpectNothingLeft();
}

TEST(CudaTest, WhatCannotBeRecordedRunsOneByOne) {
  Reset("");
  const std::vector<float> plain = Chained(12, false, "false");
  for (const char* fails : {"cuStreamBeginCapture:1", "cuStreamEndCapture:1", "cuGraphInstantiateWithFlags:1"}) {
    for (const char* with : {"999", "2"}) {  // 2: out of memory
      Reset(StrCat("fail=", fails, " with=", with));
      std::string failed;
      EXPECT_EQ(Chained(12, false, "true", &failed), plain) << fails << failed;
      ExpectNothingLeft();
    }
  }
}

TEST(CudaTest, AReplayThatFailsFailsTheStep) {
  Reset("fail=cuGraphLaunch:1");
  std::string failed;
  EXPECT_THAT(Chained(12, false, "true", &failed), testing::IsEmpty());
  EXPECT_THAT(failed, HasSubstr("recorded work failed with"));
  ExpectNothingLeft();
}

TEST(CudaTest, TwoDevicesCopyWithoutTheHost) {
  for (int peers : {1, 0}) {
    Reset(StrCat("devices=2 delay=100 peers=", peers));
    TestGraph g(CudaRuntime());
    Edge x = g.Input(Shape({1000}), "x"), y = g.Op("Neg", {g.Op("Square", {x}, {.device = "CUDA:0"})}, {.device = "CUDA:1"});
    auto out = Step(*g.NewSession(), {{x}, {y}, {}}, {FloatsOf(Shape({1000}), 2)});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(Values((*out)[0])[1], -9);
    EXPECT_EQ(Counted("cuMemcpyPeerAsync"), peers);
    EXPECT_EQ(Counted("cuMemcpyDtoHAsync"), peers ? 1 : 2);
  }
  EXPECT_EQ(Wrong(), "");
}

TEST(CudaTest, ADeviceTellsWhenItsWorkRan) {
  Reset("delay=200");
  TestGraph g(CudaRuntime());
  Edge x = g.Input(Shape({1000}), "x"), y = g.Op("Square", {x}, {.name = "watched", .device = "CUDA:0"});
  auto session = g.NewSession();
  StepStats stats;
  RunOptions options;
  options.stats = &stats;
  Tensor fed = FloatsOf(Shape({1000})), out;
  ASSERT_TRUE(session->Run({{x}, {y}, {}}, &fed, options, &out).ok());
  const StepStats* all[] = {&stats};
  const std::string trace = TraceJson(all);
  EXPECT_THAT(trace, AllOf(HasSubstr("compute"), HasSubstr("copies"), HasSubstr("watched")));
  EXPECT_GT(Counted("cuEventElapsedTime"), 3);
  session.reset();
  EXPECT_EQ(Wrong(), "");
}

// Each mutant disables the effect of one kind of call.
constexpr const char* kMutants[] = {"no_wait_event",
                                    "wait_event_on_another_stream",
                                    "no_stream_synchronize",
                                    "no_event_synchronize",
                                    "no_event_record",
                                    "record_on_another_stream",
                                    "copy_in_on_another_stream",
                                    "copy_out_on_another_stream",
                                    "kernel_on_another_stream",
                                    "memory_from_another_stream",
                                    "memory_back_at_once",
                                    "memory_back_on_another_stream",
                                    "capture_left_open",
                                    "captured_memory_back_early",
                                    "graph_not_launched",
                                    "graph_not_updated",
                                    "graph_on_another_stream",
                                    "peer_copy_on_another_stream",
                                    "library_on_another_stream",
                                    "no_context"};

class CudaMutantTest : public testing::TestWithParam<const char*> {};
TEST_P(CudaMutantTest, IsNoticed) {
  Reset("");
  const std::vector<float> here = Trained("CPU:0", "CPU:0"), sums = Chained(40, true, "false"), product = Multiplied();
  bool noticed = false;
  for (int seed = 1; !noticed && seed <= 5; ++seed) {
    Reset(StrCat("devices=2 delay=300 seed=", seed, " mutant=", GetParam()));
    const std::vector<float> there = Trained("CUDA:0", "CUDA:1");
    const bool sum = SumInParts() == 60000 && Chained(40, true) == sums && Multiplied() == product;
    noticed = !Wrong().empty() || !sum || !testing::Matches(Pointwise(FloatNear(1e-4f), here))(there);
  }
  EXPECT_TRUE(noticed);
}
INSTANTIATE_TEST_SUITE_P(All, CudaMutantTest, testing::ValuesIn(kMutants), [](const auto& i) { return std::string(i.param); });

TEST(CudaTest, SaysWhatIsMissingAndLeavesTheOthersUsable) {
  struct Missing {
    std::string library, options, says;
  };
  for (const Missing& m : std::vector<Missing>{{"/nowhere/libcuda.so.1", "", "'/nowhere/libcuda.so.1', which cannot be opened"},
                                               {STUB, "version=11040", "is for CUDA 11.4 at most; CUDA devices need a driver for 1"},
                                               {STUB, "devices=0", "finds no GPU"},
                                               {STUB, "capability=5", "compute capability 5.0: the plugin was built for "},
                                               {STUB, "fail=cuInit:1 with=100", "finds no GPU"},
                                               {STUB, "fail=cuInit:1 with=999", "cuInit failed with"}}) {
    Reset(m.options);
    TestGraph g(CudaRuntime(m.library));
    Edge x = g.Input(Shape({2}), "x"), y = g.Op("Neg", {x}, {.device = "CPU:0"});
    EXPECT_EQ(Values((*Step(*g.NewSession(), {{x}, {y}, {}}, {Floats({1, 2})}))[0]), (std::vector<float>{-1, -2}));
    for (Device* d : g.runtime().devices()) EXPECT_NE(d->kind(), "CUDA");
    std::string reasons;
    for (const auto& p : g.runtime().plugins()) reasons += StrCat(p.reason, "\n");
    EXPECT_THAT(reasons, HasSubstr(m.says));
  }
}

TEST(CudaTest, ASecondPluginForTheSameGpuIsToldSo) {
  Reset("");
  auto runtime = CudaRuntime();
  const std::string folder = testing::TempDir() + "another_cuda", copy = folder + "/libanother_cuda.so";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(CUDA_PLUGIN, copy, std::filesystem::copy_options::overwrite_existing);
  Status second = runtime->LoadPlugin(copy);
  std::string told = StrCat(second.message());
  for (const auto& p : runtime->plugins()) told += p.path == copy ? p.reason : "";
  EXPECT_THAT(told, HasSubstr("a file with the same contents is loaded from '"));
  int found = 0;
  for (Device* d : runtime->devices()) found += d->kind() == "CUDA";
  EXPECT_EQ(found, 1);
}

TEST(CudaTest, OneBrokenDeviceLeavesTheOthers) {
  Reset("devices=2 fail=cuDeviceTotalMem:1");
  auto runtime = CudaRuntime();
  int found = 0;
  for (Device* d : runtime->devices()) found += d->kind() == "CUDA";
  EXPECT_EQ(found, 1);
}

TEST(CudaTest, EveryCallMayFail) {
  const std::vector<float> here = Trained("CPU:0", "CPU:0");
  for (const char* function :
       {"cuLaunchKernel", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemAllocFromPoolAsync", "cuStreamCreate", "cuEventRecord",
        "cuEventCreate", "cuStreamWaitEvent", "cuModuleLoadData", "cuModuleGetFunction", "cuStreamSynchronize", "cuMemHostAlloc",
        "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuStreamBeginCapture", "cuStreamEndCapture"}) {
    int failures = 0;
    for (int n = 1; n <= 9; n += 4) {
      Reset(StrCat("delay=50 fail=", function, ":", n));
      std::string failed;
      const std::vector<float> there = Trained("CUDA:0", "CUDA:0", &failed);
      if (failed.empty()) {
        EXPECT_THAT(there, Pointwise(FloatNear(1e-4f), here)) << function << n;
      }
      failures += !failed.empty();
      EXPECT_EQ(Wrong(), "") << function << n;
      EXPECT_EQ(Counted("streams"), 0) << function << n;
    }
    if (std::string(function) == "cuLaunchKernel") {
      EXPECT_EQ(failures, 3);
    }
  }
}

TEST(CudaTest, ALateFailureFailsTheStepByName) {
  for (int n : {1, 5, 20}) {
    Reset(StrCat("delay=50 late=", n));
    std::string failed;
    EXPECT_THAT(Trained("CUDA:0", "CUDA:0", &failed), testing::IsEmpty());
    EXPECT_THAT(failed, AllOf(HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"), HasSubstr("the device is lost to this process")));
    EXPECT_EQ(Counted("streams"), 0);
  }
}

TEST(CudaTest, AFullDeviceSaysSoAndGoesOn) {
  Reset("memory=65536");
  TestGraph g(CudaRuntime());
  Edge x = g.Input(Shape({-1}), "x"), y = g.Op("Neg", {x}, {.device = "CUDA:0"});
  auto session = g.NewSession();
  auto out = Step(*session, {{x}, {y}, {}}, {FloatsOf(Shape({100000}))});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted) << out.status();
  auto small = Step(*session, {{x}, {y}, {}}, {Floats({1, 2})});
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(Values((*small)[0]), (std::vector<float>{-1, -2}));
}

TEST(CudaTest, ElementsAreWalkedAsOnTheCpu) {
  Reset("");
  Both both;
  Draw draw;
  for (int i = 0; i < 30; ++i) {
    std::vector<int64_t> a, b;
    for (int64_t k = draw.Int(0, 5); k > 0; --k) {
      const int64_t size = draw.Int(1, 5), which = draw.Int(0, 3);
      a.push_back(which == 1 ? 1 : size), b.push_back(which == 2 ? 1 : size);
    }
    if (draw.Int(0, 1)) b.erase(b.begin(), b.begin() + draw.Int(0, int64_t(b.size())));
    both.Compare("AddV2", {draw.Of(a), draw.Of(b)});
    both.Compare("Mul", {draw.Of(b), draw.Of(a)});
  }
  EXPECT_EQ(Wrong(), "");
}

// The terms are summed in float and rounded once, whatever the number of calls.
TEST(CudaTest, LongListsAreAddedWithTheBitsOfTheCpu) {
  Reset("");
  Both both;
  Draw draw;
  for (uint32_t type : {uint32_t(TW_HALF), uint32_t(TW_BFLOAT16)}) {
    for (size_t n : {20u, 1000u}) {
      Both::How how{.type = type, .close = 0};
      how.cast.resize(n);
      std::iota(how.cast.begin(), how.cast.end(), 0);
      std::vector<Tensor> terms;
      for (size_t k = 0; k < n; ++k) terms.push_back(draw.Of({30}));
      both.Compare("AddN", terms, {}, how);
    }
  }
  EXPECT_EQ(Wrong(), "");
}

TEST(CudaTest, AxesAreReducedAsOnTheCpu) {
  Reset("");
  Both both;
  Draw draw;
  for (int i = 0; i < 30; ++i) {
    std::vector<int64_t> dims;
    std::vector<int32_t> axes;
    for (int64_t k = draw.Int(1, 4), n = 0; n < k; ++n) {
      dims.push_back(draw.Int(1, i < 25 ? 7 : 60));
      if (draw.Int(0, 1)) axes.push_back(int32_t(n));
    }
    for (const char* op : {"Sum", "Mean", "Max"}) both.Compare(op, {draw.Of(dims)}, {both.Ints(axes)});
  }
  both.Compare("Sum", {draw.Of({300, 200})}, {both.Ints({0, 1})});  // in parts
  EXPECT_EQ(Wrong(), "");
}

class CudaProductTest : public testing::TestWithParam<const char*> {};
TEST_P(CudaProductTest, IsAsOnTheCpu) {
  Reset("");
  const bool by_library = std::string(GetParam()) == "library";
  Both both(Settings{{"cublaslt", by_library ? STUB : "none"}});
  Draw draw;
  for (int i = 0; i < 24; ++i) {
    const int64_t m = draw.Int(1, 140), n = draw.Int(1, 140), depth = draw.Int(1, 70);
    const bool a = i & 1, b = i & 2;
    both.Compare("MatMul",
                 {draw.Of(a ? std::vector<int64_t>{depth, m} : std::vector<int64_t>{m, depth}),
                  draw.Of(b ? std::vector<int64_t>{n, depth} : std::vector<int64_t>{depth, n})},
                 {}, {{"transpose_a", AttrValue::Bool(a)}, {"transpose_b", AttrValue::Bool(b)}});
  }
  both.Compare("BatchMatMulV2", {draw.Of({3, 1, 5, 7}), draw.Of({4, 7, 2})});
  both.Compare("BatchMatMulV2", {draw.Of({3, 70, 7}), draw.Of({3, 7, 80})});
  both.Compare("BatchMatMulV2", {draw.Of({3, 70, 7}), draw.Of({7, 80})});  // one b for all
  both.Compare("Softmax", {draw.Of({9, 33})});
  EXPECT_EQ(Wrong(), "");
  EXPECT_EQ(Counted("cublasLtMatmul") > 10, by_library);
}
INSTANTIATE_TEST_SUITE_P(By, CudaProductTest, testing::Values("library", "own_kernel"), [](const auto& i) { return std::string(i.param); });

// Programs outside the plugin's build: one of another type, and one with a number in its text.
TEST(CudaTest, WhatIsNotBuiltInIsCompiledOnceAndKept) {
  const std::string folder = testing::TempDir() + "cuda_programs";
  std::filesystem::remove_all(folder);
  for (int start : {1, 2}) {
    Reset("");
    Both both(Settings{{"nvrtc", STUB}, {"cache_dir", folder}});
    Draw draw;
    both.Compare("LeakyRelu", {draw.Of({5, 7})}, {}, {{"alpha", AttrValue::Float(0.3f)}});
    EXPECT_EQ(Counted("nvrtcCompileProgram"), start == 1 ? 1 : 0);
    EXPECT_EQ(Wrong(), "");
  }
  for (const auto& file : std::filesystem::directory_iterator(folder)) std::filesystem::resize_file(file, 100);  // damages the files
  Reset("");
  Both both(Settings{{"nvrtc", STUB}, {"cache_dir", folder}});
  Draw draw;
  both.Compare("LeakyRelu", {draw.Of({5, 7})}, {}, {{"alpha", AttrValue::Float(0.3f)}});
  EXPECT_EQ(Counted("nvrtcCompileProgram"), 1);
}

TEST(CudaTest, ChainsAreFusedWhereThereIsACompiler) {
  const std::string folder = testing::TempDir() + "cuda_chains";
  std::filesystem::remove_all(folder);
  std::vector<float> one_by_one;
  for (const char* compiler : {"none", STUB}) {
    Reset("delay=50");
    TestGraph g(CudaRuntime(STUB, {{"nvrtc", compiler}, {"cache_dir", folder}}));
    Edge x = g.Input(Shape({300}), "x"), y = x;
    for (int k = 0; k < 4; ++k) y = g.Op("AddV2", {g.Op("Tanh", {y}, {.device = "CUDA:0"}), x}, {.device = "CUDA:0"});
    auto session = g.NewSession();
    std::vector<float> got;
    for (int k = 0; k < 8; ++k) {
      auto out = Step(*session, {{x}, {y}, {}}, {FloatsOf(Shape({300}), 0.01f)});
      ASSERT_TRUE(out.ok()) << out.status();
      got = Values((*out)[0]);
    }
    const bool fused = std::string(compiler) != "none";
    EXPECT_EQ(Counted("nvrtcCompileProgram"), fused);
    if (fused) {
      EXPECT_EQ(Counted("cuLaunchKernel"), 8) << "one a step";
      EXPECT_THAT(got, Pointwise(FloatNear(1e-6f), one_by_one));
    }
    one_by_one = got;
    EXPECT_EQ(Wrong(), "");
  }
}

TEST(CudaTest, WhatDoesNotCompileIsToldByTheCompiler) {
  Reset("rtc=0");
  TestGraph g(CudaRuntime(STUB, {{"nvrtc", STUB}, {"cache_dir", testing::TempDir() + "cuda_none"}}));
  Edge x = g.Input(Shape({3}), "x"), y = g.Op("LeakyRelu", {x}, {.device = "CUDA:0", .attrs = {{"alpha", AttrValue::Float(0.37f)}}});
  auto out = Step(*g.NewSession(), {{x}, {y}, {}}, {FloatsOf(Shape({3}))});
  EXPECT_THAT(StrCat(out.status().message()), HasSubstr("it was told not to compile"));
}

TEST(CudaTest, LibrariesThatAreMissingOrRefuseAreDoneWithout) {
  struct Case {
    std::string options, library;
  };
  for (const Case& c :
       std::vector<Case>{{"", "/nowhere/libcublasLt.so"}, {"", CUDA_PLUGIN}, {"blas=0", STUB}, {"fail=cublasLtCreate:1", STUB}}) {
    Reset(c.options);
    Both both(Settings{{"cublaslt", c.library}});
    Draw draw;
    both.Compare("MatMul", {draw.Of({80, 70}), draw.Of({70, 90})});
    EXPECT_EQ(Counted("cublasLtMatmul"), 0);
    EXPECT_EQ(Wrong(), "");
  }
}

}  // namespace
}  // namespace thalweg
