// Work for cuDNN, on the stand-in that checks and computes each graph (stub/dnn.cc): gives the
// results of the CPU and of runs without cuDNN.
#include <filesystem>

#include "tests/gpu/on_stub.h"

namespace thalweg {
namespace {

using gpu::Both;
using gpu::Counted;
using gpu::CudaRuntime;
using gpu::Draw;
using gpu::Reset;
using gpu::Settings;
using gpu::Wrong;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Values;

int64_t EnginesRun() { return Counted("engine with tensor cores") + Counted("engine without tensor cores"); }

// The convolution and both gradients, by cuDNN and by the plugin's own kernels. tf32 permits tensor
// cores.
struct ByDnn {
  const char *name, *library, *precision;
};
class DnnConvolutionTest : public testing::TestWithParam<ByDnn> {};
TEST_P(DnnConvolutionTest, IsAsOnTheCpu) {
  Reset("");
  const std::string folder = testing::TempDir() + "cuda_plans_" + GetParam().precision;
  std::filesystem::remove_all(folder);
  for (int start : {1, 2}) {
    Reset("");
    Both both(Settings{{"cudnn", GetParam().library}, {"cache_dir", folder}, {"precision", GetParam().precision}});
    Draw draw;
    const auto sizes = [&](const std::vector<int32_t>& v) { return both.Ints(v); };
    for (const char* padding : {"SAME", "VALID"}) {
      for (int stride : {1, 2}) {
        const std::map<std::string, AttrValue> attrs = {{"strides", AttrValue::Ints({1, stride, stride, 1})},
                                                        {"padding", AttrValue::String(padding)}};
        const bool same = std::string(padding) == "SAME";
        const int64_t out = same ? (9 + stride - 1) / stride : (9 - 3) / stride + 1;
        const Tensor x = draw.Of({2, 9, 9, 3}), filter = draw.Of({3, 3, 3, 5}), dy = draw.Of({2, out, out, 5});
        both.Compare("Conv2D", {x, filter}, {}, attrs);
        both.CompareWith("Conv2DBackpropFilter", {x, dy}, 1, sizes({3, 3, 3, 5}), attrs);
        both.CompareWith("Conv2DBackpropInput", {filter, dy}, 0, sizes({2, 9, 9, 3}), attrs);
      }
    }
    const bool by_library = std::string(GetParam().library) == STUB, tensor_cores = std::string(GetParam().precision) == "tf32";
    EXPECT_EQ(Counted("engine with tensor cores"), by_library && tensor_cores ? 12 : 0);
    EXPECT_EQ(Counted("engine without tensor cores"), by_library && !tensor_cores ? 12 : 0);
    EXPECT_EQ(Counted("a kept plan"), by_library && start == 2 ? 12 : 0);
    EXPECT_EQ(Wrong(), "");
  }
}
INSTANTIATE_TEST_SUITE_P(By, DnnConvolutionTest,
                         testing::ValuesIn(std::vector<ByDnn>{
                             {"own_kernels", "none", "float"}, {"cudnn", STUB, "float"}, {"cudnn_with_tensor_cores", STUB, "tf32"}}),
                         [](const auto& i) { return std::string(i.param.name); });

// Returns a variance, which is not negative.
Tensor Spread(Draw* draw) {
  Tensor t = draw->Of({5});
  for (uint64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = t.as<float>()[i] * t.as<float>()[i] + 0.1f;
  return t;
}

// Runs each test with the library and with the plugin's own kernels.
class DnnTest : public testing::TestWithParam<const char*> {
 protected:
  DnnTest() { Reset(""); }
  bool by_library() const { return std::string(GetParam()) == "cudnn"; }
  Settings settings(const std::string& folder = "") const {
    Settings s = {{"cudnn", by_library() ? STUB : "none"}};
    if (!folder.empty()) s["cache_dir"] = testing::TempDir() + "dnn_" + folder;
    return s;
  }
  ~DnnTest() override { EXPECT_EQ(Wrong(), ""); }
};

TEST_P(DnnTest, PoolsAsTheCpuDoes) {
  Both both(settings("pools"));
  Draw draw;
  int pools = 0;
  for (const char* padding : {"SAME", "VALID"}) {
    for (int stride : {1, 2}) {
      for (uint32_t type : {TW_FLOAT, TW_HALF}) {
        const bool same = std::string(padding) == "SAME";
        const int64_t out = same ? (9 + stride - 1) / stride : (9 - 3) / stride + 1;
        Both::How how{{{"ksize", AttrValue::Ints({1, 3, 3, 1})},
                       {"strides", AttrValue::Ints({1, stride, stride, 1})},
                       {"padding", AttrValue::String(padding)}}};
        how.type = type;
        how.close = type == TW_FLOAT ? 1e-5f : 4e-3f;
        const Tensor x = draw.Of({2, 9, 9, 5});
        both.Compare("MaxPool", {x}, {}, how);
        both.Compare("AvgPool", {x}, {}, how);
        if (type == TW_FLOAT) both.CompareWith("AvgPoolGrad", {draw.Of({2, out, out, 5})}, 0, both.Ints({2, 9, 9, 5}), how.attrs);
        pools += type == TW_FLOAT ? 3 : 2;
      }
    }
  }
  EXPECT_EQ(EnginesRun(), by_library() ? pools : 0);
}

// The manual of our op, not the library's, decides which of several maxima gets the slope.
TEST_P(DnnTest, TheSlopeOfTheLargestGoesToTheFirst) {
  Both both(settings());
  const Tensor x = testing_support::FloatsOf(Shape({1, 4, 4, 1}), 3), dy = testing_support::FloatsOf(Shape({1, 2, 2, 1}));
  std::fill_n(x.as<float>(), 16, 1.f);
  const std::map<std::string, AttrValue> attrs = {
      {"ksize", AttrValue::Ints({1, 2, 2, 1})}, {"strides", AttrValue::Ints({1, 2, 2, 1})}, {"padding", AttrValue::String("VALID")}};
  both.Compare("MaxPoolGrad", {x, dy, dy}, {}, attrs);
  EXPECT_EQ(EnginesRun(), 0);
}

TEST_P(DnnTest, NormalisesByBatchAsTheCpuDoes) {
  Both both(settings("norms"));
  Draw draw;
  int norms = 0;
  for (const char* format : {"NHWC", "NCHW"}) {
    for (uint32_t type : {TW_FLOAT, TW_HALF}) {
      const bool first = std::string(format) == "NCHW";
      const std::vector<int64_t> dims = first ? std::vector<int64_t>{3, 5, 4, 6} : std::vector<int64_t>{3, 4, 6, 5};
      Both::How how{
          {{"data_format", AttrValue::String(format)}, {"is_training", AttrValue::Bool(true)}, {"epsilon", AttrValue::Float(1e-3)}}};
      how.type = type;
      how.close = type == TW_FLOAT ? 1e-4f : 1e-2f;
      how.outputs = 3;  // running mean and variance, too
      const Tensor scale = draw.Of({5}), none = draw.Of({0});
      both.Compare("FusedBatchNormV2", {draw.Of(dims), scale, draw.Of({5}), none, none}, {}, how);
      how.cast = {0, 1};
      both.Compare("FusedBatchNormGradV2", {draw.Of(dims), draw.Of(dims), scale, draw.Of({5}), Spread(&draw)}, {}, how);
      norms += 2;
    }
  }
  EXPECT_EQ(EnginesRun(), by_library() ? norms : 0);
}

TEST_P(DnnTest, SoftmaxOfLongRowsIsAsOnTheCpu) {
  Both both(settings());
  Draw draw;
  int calls = 0;
  for (int64_t n : {5, 40, 1000}) {
    for (const char* op : {"Softmax", "LogSoftmax"}) {
      both.Compare(op, {draw.Of({7, n})});
      calls += n >= 32;
    }
  }
  EXPECT_EQ(Counted("cudnnSoftmaxForward"), by_library() ? calls : 0);
}

// The plugin itself computes the gradient if the number of keys is no multiple of 128, and
// everything with a bias or in float.
TEST_P(DnnTest, AttendsAsTheCpuDoes) {
  Both both(settings("attention"));
  Draw draw;
  int calls = 0;
  for (uint32_t type : {TW_FLOAT, TW_HALF, TW_BFLOAT16}) {
    for (int64_t keys : {7, 128}) {
      for (bool causal : {false, true}) {
        for (bool biased : {false, true}) {
          const auto dims = [&](int64_t rows, int64_t columns) {
            return causal ? std::vector<int64_t>{2, 3, rows, columns} : std::vector<int64_t>{2, rows, columns};
          };
          const std::vector<int64_t> per_row = causal ? std::vector<int64_t>{2, 3, 9} : std::vector<int64_t>{2, 9};
          std::vector<Tensor> in = {draw.Of(dims(9, 16)), draw.Of(dims(keys, 16)), draw.Of(dims(keys, 8))};
          if (biased) in.push_back(draw.Of({1, 9, keys}));
          Both::How how{{{"is_causal", AttrValue::Bool(causal)}, {"N", AttrValue::Int(biased)}, {"scale", AttrValue::Float(0.5)}}};
          how.type = type;
          how.close = type == TW_FLOAT ? 1e-5f : type == TW_HALF ? 4e-3f : 3e-2f;
          how.outputs = 2;
          how.cast = {0, 1, 2};
          if (biased) how.cast.push_back(3);
          both.Compare("ScaledDotProductAttention", in, {}, how);
          Tensor sums = draw.Of(per_row);
          for (uint64_t i = 0; i < sums.count(); ++i) sums.as<float>()[i] += 4;
          how.cast.push_back(in.size());
          how.cast.push_back(in.size() + 2);
          in.insert(in.end(), {draw.Of(dims(9, 8)), sums, draw.Of(dims(9, 8))});
          how.outputs = how.typed = 3;
          both.Compare("ScaledDotProductAttentionGrad", in, {}, how);
          if (type != TW_FLOAT && !biased) calls += keys == 128 ? 2 : 1;
        }
      }
    }
  }
  EXPECT_EQ(EnginesRun(), by_library() ? calls : 0);
}

INSTANTIATE_TEST_SUITE_P(By, DnnTest, testing::Values("cudnn", "own_kernels"), [](const auto& i) { return std::string(i.param); });

TEST(DnnFailureTest, WithoutEnginesTheOwnKernelsServe) {
  for (const char* options : {"dnn=0", "fail=cudnnCreate:1"}) {
    Reset(options);
    Both both(Settings{{"cudnn", STUB}, {"cache_dir", testing::TempDir() + "dnn_none"}});
    Draw draw;
    both.Compare(
        "AvgPool", {draw.Of({2, 9, 9, 5})}, {},
        {{"ksize", AttrValue::Ints({1, 3, 3, 1})}, {"strides", AttrValue::Ints({1, 2, 2, 1})}, {"padding", AttrValue::String("SAME")}});
    EXPECT_EQ(EnginesRun(), 0);
    EXPECT_EQ(Wrong(), "");
  }
}

TEST(DnnFailureTest, ACallThatFailsFailsTheStepByName) {
  Reset("fail=cudnnBackendExecute:1");
  TestGraph g(CudaRuntime(STUB, {{"cudnn", STUB}, {"cache_dir", testing::TempDir() + "dnn_fails"}}));
  Edge x = g.Input(Shape({2, 9, 9, 5}), "x");
  Edge y = g.Op(
      "AvgPool", {x},
      {.name = "pooled",
       .device = "CUDA:0",
       .attrs = {
           {"ksize", AttrValue::Ints({1, 3, 3, 1})}, {"strides", AttrValue::Ints({1, 2, 2, 1})}, {"padding", AttrValue::String("SAME")}}});
  auto session = g.NewSession();
  const Tensor fed = testing_support::FloatsOf(Shape({2, 9, 9, 5}));
  auto failed = Step(*session, {{x}, {y}, {}}, {fed});
  EXPECT_THAT(StrCat(failed.status().message()), testing::AllOf(HasSubstr("pooled"), HasSubstr("cudnnBackendExecute failed with")));
  auto next = Step(*session, {{x}, {y}, {}}, {fed});
  EXPECT_TRUE(next.ok()) << next.status();
}

// Chains that a single cuDNN graph computes.
struct Fused {
  std::vector<float> results;
  int64_t engines;
};

// The result of the last of n steps, and the library's calls in all steps.
template <class SessionPointer>
Fused RunSteps(SessionPointer session, const std::vector<Edge>& feeds, const std::vector<Tensor>& fed, Edge fetch, int n) {
  Fused fused{};
  for (int k = 0; k < n; ++k) {
    auto out = Step(*session, {feeds, {fetch}, {}}, fed);
    EXPECT_TRUE(out.ok()) << out.status();
    if (out.ok()) fused.results = Values((*out)[0]);
  }
  fused.engines = EnginesRun();
  session.reset();
  EXPECT_EQ(Wrong(), "");
  return fused;
}

// A convolution, an addition and, if `relu`, the rectifier; by the pattern or node by node.
Fused Convolved(const std::string& compilers, bool relu, const std::string& library, int steps = 3) {
  Reset("delay=50");
  TestGraph g(CudaRuntime(STUB, {{"cudnn", library}, {"cache_dir", testing::TempDir() + "dnn_fused"}, {"precision", "tf32"}}));
  Edge x = g.Input(Shape({2, 8, 8, 4}), "x"), filter = g.Input(Shape({3, 3, 4, 6}), "filter"), bias = g.Input(Shape({6}), "bias");
  const auto there = [&](const std::string& op, std::vector<Edge> in, std::map<std::string, AttrValue> attrs = {}) {
    return g.Op(op, std::move(in), {.device = "CUDA:0", .attrs = std::move(attrs)});
  };
  Edge y =
      there("BiasAdd",
            {there("Conv2D", {x, filter}, {{"strides", AttrValue::Ints({1, 2, 2, 1})}, {"padding", AttrValue::String("SAME")}}), bias});
  if (relu) y = there("Relu", {y});
  y = there("Neg", {y});
  auto session = g.NewSession({{"compilers", compilers}, {"capture", "false"}});
  Draw draw;
  const std::vector<Tensor> fed = {draw.Of({2, 8, 8, 4}), draw.Of({3, 3, 4, 6}), draw.Of({6})};
  return RunSteps(std::move(session), {x, filter, bias}, fed, y, steps);
}

TEST(DnnPatternTest, AConvolutionWithItsBiasAndRectifierIsOneGraph) {
  for (bool relu : {false, true}) {
    const Fused alone = Convolved("off", relu, "none"), fused = Convolved("on", relu, STUB);
    EXPECT_THAT(fused.results, Pointwise(FloatNear(1e-4f), alone.results));
    EXPECT_EQ(alone.engines, 0);
    EXPECT_EQ(fused.engines, 3) << "one a step";
  }
}

// Two convolutions of different sizes on one device, with engines for the smaller one only. The
// plugin asks about each separately, in any order.
TEST(DnnPatternTest, EachConvolutionIsAskedAboutByItself) {
  for (bool small_first : {true, false}) {
    std::vector<std::vector<float>> results;
    for (const char* compilers : {"off", "require"}) {
      Reset("dnn_elements=1000");
      const std::string folder = testing::TempDir() + "dnn_two";
      std::filesystem::remove_all(folder);
      TestGraph g(CudaRuntime(STUB, {{"cudnn", STUB}, {"cache_dir", folder}}));
      const auto there = [&](const std::string& op, std::vector<Edge> in, std::map<std::string, AttrValue> attrs = {}) {
        return g.Op(op, std::move(in), {.device = "CUDA:0", .attrs = std::move(attrs)});
      };
      std::vector<Edge> feeds, fetches;
      std::vector<Tensor> fed;
      Draw draw;
      const auto input = [&](const std::vector<int64_t>& dims) {
        feeds.push_back(g.Input(Shape(dims)));
        fed.push_back(draw.Of(dims));
        return feeds.back();
      };
      for (bool is_small : {small_first, !small_first}) {
        const int64_t size = is_small ? 6 : 20;
        const Edge y = there("Conv2D", {input({1, size, size, 4}), input({3, 3, 4, 5})},
                             {{"strides", AttrValue::Ints({1, 1, 1, 1})}, {"padding", AttrValue::String("SAME")}});
        const Edge biased = there("BiasAdd", {y, input({5})});
        fetches.push_back(is_small ? there("Relu", {biased}) : biased);
      }
      auto session = g.NewSession({{"compilers", compilers}, {"capture", "false"}});
      auto out = Step(*session, {feeds, fetches, {}}, fed);
      ASSERT_TRUE(out.ok()) << out.status();
      for (const Tensor& t : *out) results.push_back(Values(t));
      EXPECT_EQ(EnginesRun(), 1) << "for the smaller one";
      EXPECT_EQ(Counted("several operations at once"), compilers == std::string("require")) << "with small_first " << small_first;
      EXPECT_EQ(Counted("a plan"), 1) << "none for shapes of one with the rectifier of the other";
      session.reset();
      EXPECT_EQ(Wrong(), "");
    }
    EXPECT_THAT(results[2], Pointwise(FloatNear(1e-4f), results[0]));
    EXPECT_THAT(results[3], Pointwise(FloatNear(1e-4f), results[1]));
  }
}

int64_t PlansThatAreThere() { return Counted("a plan") + Counted("a kept plan") - Counted("the end of a plan"); }

// Four poolings of different shapes per step, of whose plans only two are kept. The others are
// destroyed when their work is over, or, if they are recorded, with the recording.
TEST(DnnPlansTest, OnlyTheLastAreKept) {
  std::vector<float> own;
  for (const char* library : {"none", STUB}) {
    for (const char* capture : {"false", "true"}) {
      Reset("delay=50");
      const std::string folder = testing::TempDir() + "dnn_plans";
      std::filesystem::remove_all(folder);
      TestGraph g(CudaRuntime(STUB, {{"cudnn", library}, {"cache_dir", folder}, {"plans", "2"}}));
      std::vector<Edge> feeds, sums;
      std::vector<Tensor> fed;
      Draw draw;
      for (int64_t size : {4, 6, 8, 10}) {
        feeds.push_back(g.Input(Shape({1, size, size, 2})));
        fed.push_back(draw.Of({1, size, size, 2}));
        const Edge pooled = g.Op("AvgPool", {feeds.back()},
                                 {.device = "CUDA:0",
                                  .attrs = {{"ksize", AttrValue::Ints({1, size, size, 1})},
                                            {"strides", AttrValue::Ints({1, 1, 1, 1})},
                                            {"padding", AttrValue::String("VALID")}}});
        sums.push_back(sums.empty() ? pooled : g.Op("AddV2", {sums.back(), pooled}, {.device = "CUDA:0"}));
      }
      const Fused pooled = RunSteps(g.NewSession({{"compilers", "off"}, {"capture", capture}}), feeds, fed, sums.back(), 8);
      if (own.empty()) own = pooled.results;
      EXPECT_THAT(pooled.results, Pointwise(FloatNear(1e-5f), own));
      EXPECT_EQ(PlansThatAreThere(), library == std::string("none") ? 0 : 2) << "capture " << capture;
      EXPECT_EQ(Counted("a plan"), library == std::string("none") ? 0 : 4) << "others are read from disk";
    }
  }
}

TEST(DnnPlansTest, ANumberThatIsNoneIsRefused) {
  Reset("");
  for (const char* plans : {"0", "-1", "many", "1k"}) {
    const auto runtime = CudaRuntime(STUB, {{"plans", plans}});
    for (Device* d : runtime->devices()) EXPECT_NE(d->kind(), "CUDA");
    std::string reasons;
    for (const auto& p : runtime->plugins()) reasons += StrCat(p.reason, "\n");
    EXPECT_THAT(reasons, HasSubstr(StrCat("setting 'plans' cannot be '", plans, "'; it takes a number from 1 on")));
  }
}

// half: softmax(q k' / 2) v, recorded or not; scaled by a division, or not at all.
Fused Attended(const std::string& compilers, const std::string& scale, bool four_axes) {
  Reset("delay=50");
  TestGraph g(CudaRuntime(STUB, {{"cudnn", compilers == "off" ? "none" : STUB}, {"cache_dir", testing::TempDir() + "dnn_attention"}}));
  const auto dims = [&](int64_t length, int64_t depth) {
    return four_axes ? std::vector<int64_t>{2, 3, length, depth} : std::vector<int64_t>{3, length, depth};
  };
  const auto there = [&](const std::string& op, std::vector<Edge> in, std::map<std::string, AttrValue> attrs = {}) {
    return g.Op(op, std::move(in), {.device = "CUDA:0", .attrs = std::move(attrs)});
  };
  const auto cast = [&](uint32_t type, Edge e) { return there("Cast", {e}, {{"DstT", AttrValue::Type(type)}}); };
  Edge q = g.Input(Shape(dims(5, 8))), k = g.Input(Shape(dims(7, 8))), v = g.Input(Shape(dims(7, 4)));
  Edge scores = there("BatchMatMulV2", {cast(TW_HALF, q), cast(TW_HALF, k)}, {{"adj_y", AttrValue::Bool(true)}});
  const uint16_t half_of_half = 0x3800, half_of_two = 0x4000;  // 0.5 and 2
  Tensor number = *Tensor::Make(TW_HALF, Shape({}));
  std::memcpy(number.data(), scale == "Mul" ? &half_of_half : &half_of_two, sizeof(uint16_t));
  if (scale != "none") scores = there(scale, {scores, g.Const(number)});
  Edge y = cast(TW_FLOAT, there("BatchMatMulV2", {there("Softmax", {scores}), cast(TW_HALF, v)}));
  auto session = g.NewSession({{"compilers", compilers}});
  Draw draw;
  const std::vector<Tensor> fed = {draw.Of(dims(5, 8)), draw.Of(dims(7, 8)), draw.Of(dims(7, 4))};
  return RunSteps(std::move(session), {q, k, v}, fed, y, 8);
}

TEST(DnnPatternTest, AttentionIsOneGraph) {
  for (bool four_axes : {false, true}) {
    for (const char* scale : {"none", "Mul", "RealDiv"}) {
      const Fused alone = Attended("off", scale, four_axes), fused = Attended("on", scale, four_axes);
      EXPECT_THAT(fused.results, Pointwise(FloatNear(2e-3f), alone.results)) << scale;
      EXPECT_EQ(alone.engines, 0);
      EXPECT_GT(fused.engines, 0) << scale;
    }
  }
}

// A sequence of cells of which only the outputs named in `reads` are read, by the pattern or step
// by step.
struct Cells {
  std::string op = "BlockLSTMV2";
  std::map<std::string, AttrValue> attrs;
  int64_t length = 6;  // of the sequences; the input has 6 steps
  bool reads_gate = false;
  std::string precision = "float", options;
};
Fused Remembered(const std::string& library, const Cells& cells) {
  Reset("delay=50 " + cells.options);
  // NVRTC compiles kernels that are not built in: cells with unusual attributes.
  TestGraph g(CudaRuntime(
      STUB, {{"cudnn", library}, {"nvrtc", STUB}, {"precision", cells.precision}, {"cache_dir", testing::TempDir() + "dnn_cells"}}));
  const auto there = [&](const std::string& op, std::vector<Edge> in, std::map<std::string, AttrValue> attrs = {}) {
    return g.Op(op, std::move(in), {.device = "CUDA:0", .attrs = std::move(attrs)});
  };
  constexpr int64_t kSteps = 6, kBatch = 3, kInputs = 5, kUnits = 7;
  Tensor length = *Tensor::Make(TW_INT64, Shape({}));
  length.as<int64_t>()[0] = cells.length;
  std::vector<Edge> feeds, in = {g.Const(length)};
  std::vector<Tensor> fed;
  Draw draw;
  const std::vector<std::vector<int64_t>> shapes = {{kSteps, kBatch, kInputs},
                                                    {kBatch, kUnits},
                                                    {kBatch, kUnits},
                                                    {kInputs + kUnits, 4 * kUnits},
                                                    {kUnits},
                                                    {kUnits},
                                                    {kUnits},
                                                    {4 * kUnits}};
  for (const auto& shape : shapes) {
    feeds.push_back(g.Input(Shape(shape)));
    fed.push_back(draw.Of(shape));
    in.push_back(feeds.back());
  }
  const Edge first = there(cells.op, in, cells.attrs);
  Edge y = there("Neg", {Edge{first.node, 6}});
  if (cells.reads_gate) y = there("AddV2", {y, Edge{first.node, 2}});
  return RunSteps(g.NewSession(), feeds, fed, y, 8);
}

TEST(DnnPatternTest, SequencesOfCellsAreOneCall) {
  const std::map<std::string, AttrValue> plain = {{"forget_bias", AttrValue::Float(0)}, {"cell_clip", AttrValue::Float(0)}};
  for (const Cells& cells : {Cells{}, Cells{.op = "BlockLSTM", .attrs = plain}, Cells{.precision = "tf32"}}) {
    const Fused alone = Remembered("none", cells), fused = Remembered(STUB, cells);
    const bool tensor_cores = cells.precision == "tf32";
    EXPECT_GT(Counted("cudnnRNNForward"), 0) << cells.op;
    EXPECT_GT(Counted(tensor_cores ? "a layer with tensor cores" : "a layer without tensor cores"), 0);
    EXPECT_EQ(Counted(tensor_cores ? "a layer without tensor cores" : "a layer with tensor cores"), 0);
    EXPECT_THAT(fused.results, Pointwise(FloatNear(1e-4f), alone.results)) << cells.op;
  }
}

TEST(DnnPatternTest, WhatTheLibraryDoesNotSayOfCellsIsOurs) {
  const std::vector<Cells> all = {{.op = "BlockLSTM"},  // with a limit, and a bias of the forget gate
                                  {.attrs = {{"cell_clip", AttrValue::Float(1)}}},
                                  {.attrs = {{"use_peephole", AttrValue::Bool(true)}}},
                                  {.length = 4},
                                  {.reads_gate = true},
                                  {.options = "lstm=0"}};
  for (const Cells& cells : all) {
    const Fused alone = Remembered("none", cells), asked = Remembered(STUB, cells);
    EXPECT_EQ(Counted("cudnnRNNForward"), 0) << &cells - all.data();
    EXPECT_THAT(asked.results, Pointwise(FloatNear(1e-4f), alone.results)) << &cells - all.data();
  }
}

}  // namespace
}  // namespace thalweg
