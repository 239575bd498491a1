// Checks that cuDNN has engines for the plugin's requests, with the real library and the properties
// of devices that are not present (engines/dnn.cc). The plugin's own kernels compute the results.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/gpu/on_stub.h"

namespace thalweg {
namespace {

using gpu::Both;
using gpu::CudaRuntime;
using gpu::Draw;
using gpu::Settings;

template <class F>
F* EnginesFunction(const char* name) {
  static void* handle = dlopen(ENGINES, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  EXPECT_NE(handle, nullptr) << dlerror();
  return reinterpret_cast<F*>(dlsym(handle, name));
}

// The properties that cuDNN reads, from the devices' handbooks. Clocks and cache sizes only affect
// the choice between engines.
std::string Properties(const char* name, int capability, int processors, int shared_memory) {
  return StrCat(R"({"deviceName":")", name, R"(","deviceVer":)", capability, R"(,"multiProcessorCount":)", processors,
                R"(,"maxSharedMemoryPerBlockOptin":)", shared_memory, R"(,"driverVer":13000,"cudaDeviceId":0,"pciDeviceId":0,)",
                R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"warpSize":32,)",
                R"("maxSharedMemoryPerBlock":49152,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)",
                R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":80000000000,)",
                R"("smClockRateKHz":1800000,"memClockRateKHz":2600000,"l2CacheSize":52428800})");
}

// The graphs that cuDNN accepted, and those for which it has an engine that the plugin uses.
struct Asked {
  int graphs = 0, served = 0, made = 0;
  std::string wrong;
};
Asked Told() {
  Asked asked;
  bool open = false;
  const std::string text = EnginesFunction<const char*()>("engines_told")();
  for (size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
    const std::string line = text.substr(at, end - at);
    if (line == "graph") ++asked.graphs, open = true;
    if (line == "plan" && open) ++asked.served, open = false;
    if (line == "made") ++asked.made;
    if (line.compare(0, 5, "wrong") == 0) asked.wrong += line + "\n";
  }
  return asked;
}

class EnginesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(CUDNN).empty())
      GTEST_SKIP()
          << "there is no libcudnn.so.9 and libnvrtc.so beside the toolkit's headers, or a sanitizer is on, which they are not made for";
    static const char* const why = EnginesFunction<const char*(const char*, const char*, const char*, const char*)>("engines_open")(
        CUDNN, ENGINES_DRIVER, NVRTC, Properties("H200", 900, 132, 232448).c_str());
    ASSERT_EQ(why, nullptr) << why;
    gpu::Reset("");
  }
  // graphs: the number of requests; each has an engine. made: the least number of plans that could
  // be made without a driver.
  void Expect(int graphs, int made, const std::string& what) {
    const Asked asked = Told();
    EXPECT_EQ(asked.wrong, "") << what;
    EXPECT_EQ(asked.graphs, graphs) << what;
    EXPECT_EQ(asked.served, graphs) << what;
    EXPECT_GE(asked.made, made) << what;
    EXPECT_EQ(gpu::Wrong(), "") << what;
  }
  static Settings With(const char* precision = "float") {
    return {{"cudnn", ENGINES}, {"precision", precision}, {"cache_dir", "/dev/null/none"}};
  }
  static Both::How Of(uint32_t type, std::map<std::string, AttrValue> attrs, std::vector<size_t> cast) {
    Both::How how{std::move(attrs)};
    how.type = type;
    how.close = type == TW_FLOAT ? 1e-3f : type == TW_HALF ? 5e-2f : 3e-1f;
    how.cast = std::move(cast);
    return how;
  }
};

constexpr uint32_t kTypes[] = {TW_FLOAT, TW_HALF, TW_BFLOAT16};

TEST_F(EnginesTest, AreThereForConvolutionsOfEveryType) {
  for (const char* precision : {"float", "tf32"}) {
    Both both(With(precision));
    Draw draw;
    for (uint32_t type : kTypes) {
      const auto how = Of(type, {{"strides", AttrValue::Ints({1, 2, 2, 1})}, {"padding", AttrValue::String("SAME")}}, {0, 1});
      both.Compare("Conv2D", {draw.Of({2, 9, 9, 16}), draw.Of({3, 3, 16, 32})}, {}, how);
      both.Compare("Conv2D", {draw.Of({2, 9, 9, 3}), draw.Of({3, 3, 3, 8})}, {}, how);
      Expect(2, 2, StrCat("a convolution of type ", type, ", ", precision));
    }
    const std::map<std::string, AttrValue> attrs = {{"strides", AttrValue::Ints({1, 1, 1, 1})}, {"padding", AttrValue::String("SAME")}};
    both.CompareWith("Conv2DBackpropInput", {draw.Of({3, 3, 16, 32}), draw.Of({2, 9, 9, 32})}, 0, both.Ints({2, 9, 9, 16}), attrs);
    both.CompareWith("Conv2DBackpropFilter", {draw.Of({2, 9, 9, 16}), draw.Of({2, 9, 9, 32})}, 1, both.Ints({3, 3, 16, 32}), attrs);
    Expect(2, 2, StrCat("the gradients of a convolution, ", precision));
  }
}

TEST_F(EnginesTest, AreThereForPoolingAndNormalisation) {
  Both both(With());
  Draw draw;
  for (uint32_t type : kTypes) {
    const auto pool =
        Of(type,
           {{"ksize", AttrValue::Ints({1, 3, 3, 1})}, {"strides", AttrValue::Ints({1, 2, 2, 1})}, {"padding", AttrValue::String("SAME")}},
           {0});
    both.Compare("MaxPool", {draw.Of({2, 9, 9, 8})}, {}, pool);
    both.Compare("AvgPool", {draw.Of({2, 9, 9, 8})}, {}, pool);
    Expect(2, 0, StrCat("pooling of type ", type));
    auto norm = Of(type, {{"is_training", AttrValue::Bool(true)}, {"epsilon", AttrValue::Float(1e-4)}}, {0});
    const Tensor none = draw.Of({0});
    both.Compare("FusedBatchNormV2", {draw.Of({3, 4, 6, 8}), draw.Of({8}), draw.Of({8}), none, none}, {}, norm);
    norm.cast = {0, 1};
    Tensor variance = draw.Of({8});
    for (uint64_t i = 0; i < 8; ++i) variance.as<float>()[i] = 1 + float(i);
    both.Compare("FusedBatchNormGradV2", {draw.Of({3, 4, 6, 8}), draw.Of({3, 4, 6, 8}), draw.Of({8}), draw.Of({8}), variance}, {}, norm);
    Expect(2, 0, StrCat("normalisation of type ", type));
  }
  both.CompareWith(
      "AvgPoolGrad", {draw.Of({2, 5, 5, 8})}, 0, both.Ints({2, 9, 9, 8}),
      {{"ksize", AttrValue::Ints({1, 3, 3, 1})}, {"strides", AttrValue::Ints({1, 2, 2, 1})}, {"padding", AttrValue::String("SAME")}});
  Expect(1, 0, "the gradient of pooling");
}

// Also for its gradient, with an engine that sums in a fixed order.
TEST_F(EnginesTest, AreThereForAttentionInHalfPrecision) {
  Both both(With());
  Draw draw;
  for (uint32_t type : {TW_HALF, TW_BFLOAT16}) {
    for (bool causal : {false, true}) {
      const std::vector<int64_t> dims = {1, 2, 128, 64};
      auto how = Of(type, {{"is_causal", AttrValue::Bool(causal)}, {"N", AttrValue::Int(0)}}, {0, 1, 2});
      both.Compare("ScaledDotProductAttention", {draw.Of(dims), draw.Of(dims), draw.Of(dims)}, {}, how);
      Expect(1, 0, StrCat("attention of type ", type, causal ? ", causal" : ""));
      how.cast = {0, 1, 2, 3, 5};
      how.outputs = how.typed = 3;
      Tensor sums = draw.Of({1, 2, 128});
      for (uint64_t i = 0; i < sums.count(); ++i) sums.as<float>()[i] += 8;
      both.Compare("ScaledDotProductAttentionGrad", {draw.Of(dims), draw.Of(dims), draw.Of(dims), draw.Of(dims), sums, draw.Of(dims)}, {},
                   how);
      Expect(1, 0, StrCat("the gradient of attention of type ", type, causal ? ", causal" : ""));
    }
  }
}

}  // namespace
}  // namespace thalweg
