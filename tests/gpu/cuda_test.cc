// The CUDA plugin on the stub driver (stub/): right results, order of all work, nothing left behind, clear errors. Kernels run as host
// functions of the same source, so sizes are small.
#include <dlfcn.h>

#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ops/ops.h"
#include "tests/framework/support/test_ops.h"
#include "tests/gpu/stub/stub.h"
#include "tests/plugins/two_layers.h"

namespace thalweg {
namespace {

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

// The driver that the plugin finds, too.
template <class F>
F* StubFunction(const char* name) {
  static void* handle = dlopen(STUB, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  EXPECT_NE(handle, nullptr) << dlerror();
  return reinterpret_cast<F*>(dlsym(handle, name));
}
void Reset(const std::string& options) { StubFunction<decltype(stub_reset)>("stub_reset")(options.c_str()); }
std::string Wrong() { return StubFunction<decltype(stub_wrong)>("stub_wrong")(); }
int64_t Counted(const char* what) { return StubFunction<decltype(stub_count)>("stub_count")(what); }

std::shared_ptr<Runtime> CudaRuntime(const std::string& library = STUB) {
  RuntimeOptions options;
  options.threads = 2;
  options.static_plugins = {{"ops", tw_plugin_query_v0_ops}};
  options.disabled_plugins = {"*opencl*", "*onednn*"};
  options.plugin_settings["plugin.org.thalweg.cuda.library"] = library;
  auto runtime = Runtime::Create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  Status loaded = (*runtime)->LoadPlugin(CUDA_PLUGIN);
  EXPECT_TRUE(loaded.ok()) << loaded;
  return *runtime;
}

// Six steps; empty: one of them failed.
std::vector<float> Trained(const std::string& first, const std::string& second, std::string* failed = nullptr) {
  TestGraph g(CudaRuntime());
  TwoLayers net(&g, first, second);
  auto session = g.NewSession({{"fallback", "allow"}});
  std::vector<CallableSpec> specs(8, net.training());
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

// A sum in parts, which takes memory for the length of a call; 60,000 if it is right.
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

void ExpectNothingLeft() {
  EXPECT_EQ(Wrong(), "");
  for (const char* what : {"streams", "events", "modules", "memory", "pinned"}) EXPECT_EQ(Counted(what), 0) << what;
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

// Each leaves out the effect of one kind of call.
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
                                    "no_context"};

class CudaMutantTest : public testing::TestWithParam<const char*> {};
TEST_P(CudaMutantTest, IsNoticed) {
  const std::vector<float> here = Trained("CPU:0", "CPU:0");
  bool noticed = false;
  for (int seed = 1; !noticed && seed <= 5; ++seed) {
    Reset(StrCat("devices=2 delay=300 seed=", seed, " mutant=", GetParam()));
    const std::vector<float> there = Trained("CUDA:0", "CUDA:1");
    const bool sum = SumInParts() == 60000;
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
                                               {STUB, "version=11040", "is for CUDA 11.4 at most; CUDA devices need a driver for 12.0"},
                                               {STUB, "devices=0", "finds no GPU"},
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
        "cuEventCreate", "cuStreamWaitEvent", "cuModuleLoadData", "cuModuleGetFunction", "cuStreamSynchronize", "cuMemHostAlloc"}) {
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

// One op on both devices.
class Both {
 public:
  Both() : g_(CudaRuntime()) {}
  void Compare(const std::string& op, const std::vector<Tensor>& in, const std::vector<Edge>& more = {},
               const std::map<std::string, AttrValue>& attrs = {}) {
    std::vector<Edge> feeds;
    for (const Tensor& t : in) feeds.push_back(g_.Input(t.shape()));
    std::vector<Edge> all(feeds), out;
    all.insert(all.end(), more.begin(), more.end());
    for (const char* device : {"CUDA:0", "CPU:0"}) out.push_back(g_.Op(op, all, {.device = device, .attrs = attrs}));
    auto got = Step(*g_.NewSession(), {feeds, out, {}}, in);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_THAT(Values((*got)[0]), Pointwise(FloatNear(2e-4f), Values((*got)[1]))) << op;
  }
  Edge Ints(const std::vector<int32_t>& v) { return g_.Const(*Tensor::Vector<int32_t>(TW_INT32, v)); }

 private:
  TestGraph g_;
};

class Draw {
 public:
  int64_t Int(int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random_); }
  Tensor Of(const std::vector<int64_t>& dims) {
    Tensor t = FloatsOf(Shape(dims));
    for (uint64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = std::uniform_real_distribution<float>(-1, 1)(random_);
    return t;
  }

 private:
  std::mt19937 random_{7};
};

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

TEST(CudaTest, MatricesAreMultipliedAsOnTheCpu) {
  Reset("");
  Both both;
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
  both.Compare("Softmax", {draw.Of({9, 33})});
  EXPECT_EQ(Wrong(), "");
}

}  // namespace
}  // namespace thalweg
