// Helpers for the CUDA plugin on the stub driver (stub/): a runtime with both, the stub's findings,
// and one op on CUDA:0 and on CPU:0.
#pragma once
#include <dlfcn.h>

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ops/ops.h"
#include "tests/framework/support/test_ops.h"
#include "tests/gpu/stub/stub.h"

namespace thalweg::gpu {

using testing_support::FloatsOf;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Values;

using Settings = std::map<std::string, std::string>;

// Looks up a function in the driver that the plugin uses.
template <class F>
F* StubFunction(const char* name) {
  static void* handle = dlopen(STUB, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  EXPECT_NE(handle, nullptr) << dlerror();
  return reinterpret_cast<F*>(dlsym(handle, name));
}
inline void Reset(const std::string& options) { StubFunction<decltype(stub_reset)>("stub_reset")(options.c_str()); }
inline std::string Wrong() { return StubFunction<decltype(stub_wrong)>("stub_wrong")(); }
inline int64_t Counted(const char* what) { return StubFunction<decltype(stub_count)>("stub_count")(what); }

inline std::shared_ptr<Runtime> CudaRuntime(const std::string& library = STUB, Settings settings = {}) {
  RuntimeOptions options;
  options.threads = 2;
  options.static_plugins = {{"ops", tw_plugin_query_v0_ops}};
  options.disabled_plugins = {"*opencl*", "*onednn*"};
  settings.insert({{"library", library}, {"cublaslt", STUB}, {"cudnn", "none"}, {"nvrtc", "none"}});
  for (const auto& [key, value] : settings) options.plugin_settings["plugin.org.thalweg.cuda." + key] = value;
  auto runtime = Runtime::Create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  Status loaded = (*runtime)->LoadPlugin(CUDA_PLUGIN);
  EXPECT_TRUE(loaded.ok()) << loaded;
  return *runtime;
}

// One op on both devices.
class Both {
 public:
  explicit Both(const Settings& settings = {}) : g_(CudaRuntime(STUB, settings)) {}

  struct How {
    std::map<std::string, AttrValue> attrs;
    int32_t outputs = 1;       // number of compared outputs
    uint32_t type = TW_FLOAT;  // of the inputs in `cast`, and of the first `typed` results
    int32_t typed = 1;
    std::vector<size_t> cast = {0};  // if it is another
    float close = 2e-4f;
  };
  // in: floats, which precede the constants `more`.
  void Compare(const std::string& op, const std::vector<Tensor>& in, const std::vector<Edge>& more = {},
               const std::map<std::string, AttrValue>& attrs = {}) {
    Compare(op, in, more, How{attrs});
  }
  void Compare(const std::string& op, const std::vector<Tensor>& in, const std::vector<Edge>& more, const How& how) {
    std::vector<Edge> feeds = Feeds(in), all = Cast(feeds, how);
    all.insert(all.end(), more.begin(), more.end());
    CompareNodes(op, feeds, in, all, how);
  }
  // The same with a constant inserted as input `at`.
  void CompareWith(const std::string& op, const std::vector<Tensor>& in, size_t at, Edge constant,
                   const std::map<std::string, AttrValue>& attrs) {
    std::vector<Edge> feeds = Feeds(in), all = feeds;
    all.insert(all.begin() + int64_t(at), constant);
    CompareNodes(op, feeds, in, all, How{attrs});
  }
  Edge Ints(const std::vector<int32_t>& v) { return g_.Const(*Tensor::Vector<int32_t>(TW_INT32, v)); }

 private:
  std::vector<Edge> Feeds(const std::vector<Tensor>& in) {
    std::vector<Edge> feeds;
    for (const Tensor& t : in) feeds.push_back(g_.Input(t.shape()));
    return feeds;
  }
  Edge As(uint32_t type, Edge x) { return g_.Op("Cast", {x}, {.device = "CPU:0", .attrs = {{"DstT", AttrValue::Type(type)}}}); }
  std::vector<Edge> Cast(std::vector<Edge> edges, const How& how) {
    for (size_t k : how.cast)
      if (how.type != TW_FLOAT) edges[k] = As(how.type, edges[k]);
    return edges;
  }
  void CompareNodes(const std::string& op, const std::vector<Edge>& feeds, const std::vector<Tensor>& in, const std::vector<Edge>& all,
                    const How& how) {
    std::vector<Edge> out;
    for (const char* device : {"CUDA:0", "CPU:0"}) {
      const Edge first = g_.Op(op, all, {.device = device, .attrs = how.attrs});
      for (int32_t k = 0; k < how.outputs; ++k) {
        const Edge y{first.node, k};
        out.push_back(k < how.typed && how.type != TW_FLOAT ? As(TW_FLOAT, y) : y);
      }
    }
    auto got = Step(*g_.NewSession(), {feeds, out, {}}, in);
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t k = 0; k < out.size() / 2; ++k)
      EXPECT_THAT(Values((*got)[k]), testing::Pointwise(testing::FloatNear(how.close), Values((*got)[out.size() / 2 + k]))) << op << k;
  }

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

}  // namespace thalweg::gpu
