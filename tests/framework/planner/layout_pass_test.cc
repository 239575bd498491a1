// Convolutions declared with channels first run with channels last if their kernels prefer that:
// with two transposes for a chain, none if they do not pay, and the same results. Over the standard
// ops, the CPU plugin, and a kernel defined here that prefers channels last.
#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/autodiff/autodiff.h"
#include "framework/graph/builder.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/standard_runtime.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::Planning;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Values;

using Options = std::map<std::string, std::string>;

// ---- A kernel that prefers channels last, with the same sums in any order of axes ----

class PlainConv2D {
 public:
  explicit PlainConv2D(const tw::Node& n)
      : first_(n.s("data_format") == "NCHW"), same_(n.s("padding") == "SAME"), strides_(n.ints("strides")) {}
  void operator()(tw::In<float> x, tw::In<float> w, tw::Out<float> y) const {
    const int h = first_ ? 2 : 1, c = first_ ? 1 : 3;
    const auto at = [&](const int64_t* dims, int64_t n, int64_t i, int64_t j, int64_t k) {
      return uint64_t(first_ ? ((n * dims[1] + k) * dims[2] + i) * dims[3] + j : ((n * dims[1] + i) * dims[2] + j) * dims[3] + k);
    };
    int64_t before[2] = {0, 0};
    for (int k = 0; k < 2; ++k) {
      const int64_t all = (y.dim(h + k) - 1) * strides_[size_t(h + k)] + w.dim(k) - x.dim(h + k);
      before[k] = same_ ? std::max<int64_t>(0, all) / 2 : 0;
    }
    for (int64_t n = 0; n < y.dim(0); ++n) {
      for (int64_t i = 0; i < y.dim(h); ++i) {
        for (int64_t j = 0; j < y.dim(h + 1); ++j) {
          for (int64_t o = 0; o < y.dim(c); ++o) {
            float sum = 0;
            for (int64_t a = 0; a < w.dim(0); ++a) {
              for (int64_t b = 0; b < w.dim(1); ++b) {
                const int64_t row = i * strides_[size_t(h)] + a - before[0], column = j * strides_[size_t(h + 1)] + b - before[1];
                if (row < 0 || row >= x.dim(h) || column < 0 || column >= x.dim(h + 1)) continue;
                for (int64_t k = 0; k < w.dim(2); ++k) {
                  sum += x[at(x.dims(), n, row, column, k)] * w[uint64_t(((a * w.dim(1) + b) * w.dim(2) + k) * w.dim(3) + o)];
                }
              }
            }
            y[at(y.dims(), n, i, j, o)] = sum;
          }
        }
      }
    }
  }

 private:
  bool first_, same_;
  std::vector<int64_t> strides_;
};

void NeverRun(tw::In<float>, tw::In<float>, tw::Out<float>) {}  // the tests only make plans with it

tw_status* Init(const tw_host* h, tw_registrar* r, void**) {
  return tw::guard(h, [&] {
    tw::Plugin p{h, r};
    p.kernel<PlainConv2D>("Conv2D @CPU; ?prefers NHWC; priority 20");
    p.kernel<NeverRun>("Conv3D @CPU; ?prefers NDHWC; priority 20");
  });
}
const tw_plugin* Query(const tw_host_info*) {
  static const tw_plugin plugin = {TW_SIZED(tw_plugin), TW_EPOCH,     0,    0,      TW_MINOR, TW_S("org.test.layout"), TW_S("1"),
                                   TW_S("x"),           TW_S("test"), Init, nullptr};
  return &plugin;
}

// ---- Nets ----

class LayoutPassTest : public testing_support::StandardRuntimeTest {
 protected:
  static void SetUpTestSuite() { Shared() = testing_support::StandardRuntime(2, {{"layout", Query}}); }

  Edge Ints(const std::vector<int32_t>& v) { return g_.Const(*Tensor::Vector<int32_t>(TW_INT32, v)); }
  Edge Int(int32_t v) { return g_.Const(*ScalarTensor(TW_INT32, v)); }
  Tensor Random(const Shape& shape) {
    Tensor t = *Tensor::Make(TW_FLOAT, shape);
    std::normal_distribution<float> normal;
    for (uint64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = normal(random_);
    return t;
  }
  Edge Weights(const Shape& shape) { return g_.Const(Random(shape)); }
  static TestGraph::Extras Windows(const std::string& format, std::vector<int64_t> strides, const std::string& padding) {
    return {.attrs = {{"strides", AttrValue::Ints(std::move(strides))},
                      {"padding", AttrValue::String(padding)},
                      {"data_format", AttrValue::String(format)}}};
  }
  Edge Conv(Edge x, int64_t in, int64_t out, int64_t step = 1, const std::string& format = "NCHW", TestGraph::Extras more = {}) {
    TestGraph::Extras extras =
        Windows(format, format == "NCHW" ? std::vector<int64_t>{1, 1, step, 1} : std::vector<int64_t>{1, step, 1, 1}, "SAME");
    extras.controls = more.controls;
    extras.name = more.name;
    return g_.Op("Conv2D", {x, Weights({3, 3, in, out})}, extras);
  }
  Edge Pool(const std::string& op, Edge x) {
    TestGraph::Extras extras = Windows("NCHW", {1, 1, 2, 1}, "VALID");
    extras.attrs["ksize"] = AttrValue::Ints({1, 1, 3, 2});
    return g_.Op(op, {x}, extras);
  }
  Edge Norm(Edge x, int64_t channels, bool training = true) {
    const Edge ones = g_.Const(*FloatsFilled(channels, 1)), some = Weights({channels});
    return g_.Op("FusedBatchNormV3", {x, some, some, ones, ones},
                 {.attrs = {{"data_format", AttrValue::String("NCHW")}, {"is_training", AttrValue::Bool(training)}}});
  }
  static StatusOr<Tensor> FloatsFilled(int64_t n, float v) { return Tensor::Vector<float>(TW_FLOAT, std::vector<float>(size_t(n), v)); }
  Edge Bias(Edge x, int64_t channels) {
    return g_.Op("BiasAdd", {x, Weights({channels})}, {.attrs = {{"data_format", AttrValue::String("NCHW")}}});
  }
  Edge Relu(Edge x) { return g_.Op("Relu", {x}); }
  Edge Transposed(Edge x, const std::vector<int32_t>& perm) { return g_.Op("Transpose", {x, Ints(perm)}); }

  struct Made {
    int transposes = 0;
    std::vector<std::string> formats;  // of the convolutions that run, in order
    std::vector<LayoutNote> notes;
    bool ok = false;
  };
  Made Plan(const std::vector<Edge>& fetches, const std::vector<Shape>& shapes, PlanOptions options = {}) {
    Planning p(g_.graph(), {std::vector<Edge>(feeds_.begin(), feeds_.begin() + long(shapes.size())), fetches, {}}, shapes, options);
    p.Through("once");
    EXPECT_TRUE(p.status.ok()) << p.status;
    Made made;
    made.ok = p.status.ok();
    for (const WorkNode& n : p.w.nodes) {
      if (!n.node || n.dead || n.constant) continue;
      if (n.node->op().name == "Transpose") ++made.transposes;
      if (n.node->op().name == "Conv2D") made.formats.push_back(n.node->FindAttr("data_format")->strings()[0]);
      EXPECT_NE(n.kernel, nullptr) << n.node->title();
    }
    for (size_t k = 0; k < fetches.size(); ++k) {
      const WorkEdge& e = p.w.fetches[k];
      EXPECT_TRUE(fetches[k].node->shape(fetches[k].port).Admits(p.w.nodes[size_t(e.node)].shapes[size_t(e.port)])) << "fetch " << k;
    }
    made.notes = p.w.notes.layouts;
    return made;
  }

  // Compares steps with and without the pass, for these shapes one after the other; returns the
  // number of plans made with the pass.
  uint64_t Compare(const std::vector<Edge>& fetches, const std::vector<std::vector<Shape>>& shapes, const Options& more = {}) {
    Options off = more;
    off["disable_pass"] = "layout";
    auto with = g_.NewSession(more), without = g_.NewSession(off);
    for (const std::vector<Shape>& s : shapes) {
      std::vector<Tensor> feeds;
      for (const Shape& shape : s) feeds.push_back(Random(shape));
      const CallableSpec spec{std::vector<Edge>(feeds_.begin(), feeds_.begin() + long(s.size())), fetches, {}};
      auto found = Step(*with, spec, feeds), expected = Step(*without, spec, feeds);
      EXPECT_TRUE(found.ok()) << found.status();
      EXPECT_TRUE(expected.ok()) << expected.status();
      for (size_t k = 0; found.ok() && expected.ok() && k < fetches.size(); ++k) {
        ExpectSame((*found)[k], (*expected)[k], StrCat("fetch ", k));
      }
    }
    return with->Report().plans.misses;
  }
  static void ExpectSame(const Tensor& found, const Tensor& expected, const std::string& what) {
    ASSERT_EQ(found.shape(), expected.shape()) << what;
    const std::vector<float> a = Values(found), b = Values(expected);
    float most = 0;
    for (float v : b) most = std::max(most, std::abs(v));
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5f * most + 1e-6f) << what << " element " << i;
  }
  std::vector<Edge> Gradients(Edge y, const std::vector<Edge>& xs) {
    std::vector<Gradient> gradients;
    std::vector<Edge> edges;
    EXPECT_TRUE(AddGradients(&g_.graph(), {y}, {}, xs, &gradients, {}).ok());
    for (const Gradient& g : gradients) edges.push_back(g.values);
    return edges;
  }

  TestGraph g_{Shared()};
  std::mt19937 random_{7};
  Edge x_ = g_.Input(Shape({-1, 32, -1, -1}), "x");
  std::vector<Edge> feeds_ = {x_};
};

const Shape kImages({2, 32, 12, 10});

// ---- Plans ----

TEST_F(LayoutPassTest, AChainPaysTwoTransposes) {
  Edge y = Relu(Norm(Bias(Conv(x_, 32, 48, 2), 48), 48));
  y = Pool("MaxPool", y);
  y = g_.Op("AddV2", {Conv(y, 48, 64), Weights({64, 1, 1})});
  y = Relu(y);
  const Made made = Plan({y}, {kImages});
  EXPECT_THAT(made.formats, ElementsAre("NHWC", "NHWC"));
  EXPECT_EQ(made.transposes, 2);
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_EQ(made.notes[0].order, "NHWC");
  EXPECT_EQ(made.notes[0].transposes, 2);
  EXPECT_EQ(made.notes[0].nodes.size(), 8u);  // two convolutions, BiasAdd, norm, two Relu, MaxPool, AddV2
  Compare({y}, {{kImages}});
}

TEST_F(LayoutPassTest, IsSwitchedOff) {
  PlanOptions off;
  off.disabled_passes = {"layout"};
  const Made made = Plan({Conv(x_, 32, 32)}, {kImages}, off);
  EXPECT_THAT(made.formats, ElementsAre("NCHW"));
  EXPECT_EQ(made.transposes, 0);
  EXPECT_THAT(made.notes, IsEmpty());
}

TEST_F(LayoutPassTest, AFetchedMiddleIsAsTheGraphSays) {
  Edge middle = Relu(Conv(x_, 32, 32)), y = Conv(middle, 32, 32);
  const Made made = Plan({y, middle}, {kImages});
  EXPECT_THAT(made.formats, ElementsAre("NHWC", "NHWC"));
  EXPECT_EQ(made.transposes, 3);
  Compare({y, middle}, {{kImages}});
}

TEST_F(LayoutPassTest, WhatHasNoKnownSizesIsLeftAlone) {
  const Edge y = Conv(x_, 32, 32);
  EXPECT_THAT(Plan({y}, {Shape({-1, 32, -1, -1})}).formats, ElementsAre("NCHW"));
  feeds_ = {g_.Input(Shape())};
  EXPECT_THAT(Plan({Conv(feeds_[0], 32, 32)}, {Shape()}).formats, ElementsAre("NCHW"));
}

TEST_F(LayoutPassTest, OnePlanServesFeedsOfOtherSizes) {
  Edge y = Pool("AvgPool", Relu(Conv(Conv(x_, 32, 32), 32, 64)));
  y = g_.Op("Mean", {y, Ints({2, 3})});
  std::vector<Edge> fetches = Gradients(y, {x_});
  fetches.push_back(y);
  EXPECT_EQ(Compare(fetches, {{kImages}, {Shape({5, 32, 12, 10})}, {Shape({1, 32, 12, 10})}, {Shape({3, 32, 9, 14})}}), 1u);
}

TEST_F(LayoutPassTest, NothingIsTransposedThatCostsMoreThanItGains) {
  const Edge pool = Pool("MaxPool", x_);
  EXPECT_EQ(Plan({pool}, {kImages}).transposes, 0);
  EXPECT_EQ(Plan({Relu(x_)}, {kImages}).transposes, 0);
  Edge thin = g_.Input(Shape({-1, 2, -1, -1}));
  feeds_ = {thin};
  EXPECT_THAT(Plan({Conv(thin, 2, 2)}, {Shape({2, 2, 12, 10})}).formats, ElementsAre("NCHW"));
}

TEST_F(LayoutPassTest, SizesBeyondAnyMemoryAreCountedToo) {
  const int64_t huge = int64_t{1} << 27;
  Edge y = x_;
  for (int layer = 0; layer < 4; ++layer) y = Relu(Conv(y, 32, 32));
  EXPECT_EQ(Plan({y}, {Shape({huge, 32, huge, 1})}).transposes, 2);
}

TEST_F(LayoutPassTest, TransposesOfTheProgramVanish) {
  const Edge last = g_.Input(Shape({-1, -1, -1, 32}));
  feeds_ = {last};
  const Edge y = Transposed(Relu(Conv(Transposed(last, {0, 3, 1, 2}), 32, 32)), {0, 2, 3, 1});
  const Made made = Plan({y}, {Shape({2, 12, 10, 32})});
  EXPECT_THAT(made.formats, ElementsAre("NHWC"));
  EXPECT_EQ(made.transposes, 0);
  Compare({y}, {{Shape({2, 12, 10, 32})}});
}

TEST_F(LayoutPassTest, TransposesOfTheProgramToOtherOrdersAreJoined) {
  const Edge other = g_.Input(Shape({-1, -1, 32, -1}));
  feeds_ = {other};
  const Edge y = Transposed(Relu(Conv(Transposed(other, {0, 2, 3, -3}), 32, 32)), {1, 0, 3, 2});
  EXPECT_EQ(Plan({y}, {Shape({2, 12, 32, 10})}).transposes, 2);
  Compare({y}, {{Shape({2, 12, 32, 10})}});
}

TEST_F(LayoutPassTest, WhatAlreadyIsChannelsLastStays) {
  const Edge last = g_.Input(Shape({-1, -1, -1, 32}));
  feeds_ = {last};
  const Made made = Plan({Conv(last, 32, 32, 1, "NHWC")}, {Shape({2, 12, 10, 32})});
  EXPECT_EQ(made.transposes, 0);
  EXPECT_THAT(made.notes, IsEmpty());
}

TEST_F(LayoutPassTest, VolumesAreTurnedAsImagesAre) {
  const Edge volumes = g_.Input(Shape({-1, 32, -1, -1, -1}));
  feeds_ = {volumes};
  const Edge y = g_.Op("Conv3D", {volumes, Weights({3, 3, 3, 32, 32})},
                       {.attrs = {{"strides", AttrValue::Ints({1, 1, 1, 2, 1})},
                                  {"padding", AttrValue::String("SAME")},
                                  {"data_format", AttrValue::String("NCDHW")}}});
  const Edge ones = g_.Const(*FloatsFilled(32, 1));
  const Edge norm = g_.Op("FusedBatchNormV3", {y, ones, ones, ones, ones}, {.attrs = {{"data_format", AttrValue::String("NCDHW")}}});
  const Made made = Plan({Relu(norm)}, {Shape({2, 32, 4, 6, 5})});
  EXPECT_EQ(made.transposes, 2);
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_EQ(made.notes[0].order, "NDHWC");
  EXPECT_EQ(made.notes[0].nodes.size(), 3u);
}

TEST_F(LayoutPassTest, DepthwiseConvolutionsOfTheCpuPluginAreTurnedTogether) {
  Edge y = x_;
  for (int layer = 0; layer < 6; ++layer) {
    y = Relu(g_.Op("DepthwiseConv2dNative", {y, Weights({3, 3, 32, 1})}, Windows("NCHW", {1, 1, 1, 1}, "SAME")));
  }
  const Made made = Plan({y}, {kImages});
  EXPECT_EQ(made.transposes, 2);
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_EQ(made.notes[0].nodes.size(), 12u);
  std::vector<Edge> fetches = Gradients(y, {x_});
  fetches.push_back(y);
  Compare(fetches, {{kImages}, {Shape({3, 32, 9, 14})}});
}

TEST_F(LayoutPassTest, ControlEdgesStay) {
  const Edge first = g_.Op("NoOp", {});
  const Edge y = Conv(x_, 32, 32, 1, "NCHW", {.name = "conv", .controls = {first.node}});
  Planning p(g_.graph(), {{x_}, {y}, {}}, {kImages});
  p.Through("once");
  ASSERT_TRUE(p.status.ok()) << p.status;
  const auto conv = std::find_if(p.w.nodes.begin(), p.w.nodes.end(),
                                 [](const WorkNode& n) { return n.node && !n.dead && n.node->op().name == "Conv2D"; });
  ASSERT_NE(conv, p.w.nodes.end());
  EXPECT_EQ(conv->node->FindAttr("data_format")->strings()[0], "NHWC");
  ASSERT_EQ(conv->controls.size(), 1u);
  EXPECT_EQ(p.w.nodes[size_t(conv->controls[0])].node, first.node);
  EXPECT_EQ(conv->node->title(), "Conv2D 'conv'");  // the title in messages
}

// ---- Results ----

TEST_F(LayoutPassTest, AxesOfOtherOpsGoAlong) {
  const Edge a = Relu(Conv(x_, 32, 32)), b = Conv(x_, 32, 16);
  Edge joined = g_.Op("ConcatV2", {a, b, Int(1)}, {.attrs = {{"N", AttrValue::Int(2)}}});
  const Edge padded =
      g_.Op("Pad", {joined, g_.Const(*Ints({0, 0, 1, 2, 3, 4, 0, 1}).node->value(0).Reshape(std::vector<int64_t>{4, 2}.data(), 2))});
  const Edge split = g_.Op("Split", {Int(-3), joined}, {.attrs = {{"num_split", AttrValue::Int(3)}}});
  const Edge cut = g_.Op("Slice", {joined, Ints({0, 8, 1, 2}), Ints({-1, 20, -1, 3})});
  const Edge sums = g_.Op("Sum", {joined, Ints({2, -1})}),
             kept = g_.Op("Max", {joined, Ints({1})}, {.attrs = {{"keep_dims", AttrValue::Bool(true)}}});
  const Edge tiled = g_.Op("Tile", {cut, Ints({1, 2, 1, 3})});
  const Edge chosen = g_.Op("SelectV2", {g_.Op("Greater", {a, g_.Const(*ScalarTensor(TW_FLOAT, 0.5))}), a, Weights({32, 1, 10})});
  const Edge out = Conv(g_.Op("Mul", {chosen, Weights({1, 32, 1, 1})}), 32, 32);
  const std::vector<Edge> fetches = {padded, {split.node, 1}, cut, sums, kept, tiled, out};
  EXPECT_THAT(Plan(fetches, {kImages}).formats, ElementsAre("NHWC", "NHWC", "NHWC"));
  Compare(fetches, {{kImages}, {Shape({4, 32, 12, 10})}});
}

TEST_F(LayoutPassTest, FeedsThatOneNodeIsTheFirstToReadAreTurnedEachForItself) {
  const Shape images({2, 32, 12, 10});
  const Edge x = g_.Input(images, "images"), other = g_.Input(images, "other");
  const Edge mask = g_.Op("Placeholder", {}, {.attrs = {{"dtype", AttrValue::Type(TW_BOOL)}, {"shape", AttrValue::OfShape(images)}}});
  const Edge y = Conv(g_.Op("SelectV2", {mask, Conv(x, 32, 32), other}), 32, 32);
  Planning p(g_.graph(), {{x, mask, other}, {y}, {}}, {images, images, images});
  p.Through("once");
  ASSERT_TRUE(p.status.ok()) << p.status;
  std::vector<const Node*> turned;
  for (const WorkNode& n : p.w.nodes) {
    if (!n.node || n.dead || n.constant || n.node->op().name != "Transpose") continue;
    EXPECT_EQ(n.node->out_type(0), n.out_types[0]);
    turned.push_back(n.node);
  }
  ASSERT_EQ(turned.size(), 4u);
  std::sort(turned.begin(), turned.end());
  EXPECT_EQ(std::unique(turned.begin(), turned.end()), turned.end());
}

TEST_F(LayoutPassTest, AnOperandThatMayHaveMoreThanOneElementNextTimeGoesByAxes) {
  const Edge last = g_.Input(Shape({-1}), "last");
  feeds_ = {x_, last};
  const Edge y = g_.Op("AddV2", {Conv(x_, 32, 32), last});
  Compare({y}, {{Shape({2, 32, 12, 32}), Shape({1})}, {Shape({2, 32, 12, 32}), Shape({32})}});
}

TEST_F(LayoutPassTest, SizesThatAreWorkedOutAgainAreThoseOfTheGraph) {
  const Shape images({1, 32, 12, 10});
  const Edge x = g_.Input(Shape({-1}), "longer"), image = g_.Input(images, "image"), r = Relu(Conv(image, 32, 32));
  const Edge sizes = g_.Op("ShapeN", {x, r}, {.attrs = {{"N", AttrValue::Int(2)}}});
  const std::vector<Edge> fetches = {{sizes.node, 1}, Relu(Conv(r, 32, 32))};
  auto session = g_.NewSession();
  for (int64_t n : {3, 5}) {
    auto out = Step(*session, {{x, image}, fetches, {}}, {Random(Shape({n})), Random(images)});
    ASSERT_TRUE(out.ok()) << out.status();
    const int32_t* found = (*out)[0].as<int32_t>();
    EXPECT_THAT(std::vector<int32_t>(found, found + 4), ElementsAre(1, 32, 12, 10)) << n;
  }
}

TEST_F(LayoutPassTest, RandomNetsAndTheirGradientsStayWhatTheyWere) {
  for (int net = 0; net < 12; ++net) {
    const auto any = [&](int n) { return int(random_() % unsigned(n)); };
    Edge y = x_;
    std::vector<Edge> fetches, wanted = {x_};
    int64_t channels = 32;
    int turned = 0;
    for (int layer = 0; layer < 7; ++layer) {
      switch (any(10)) {
        case 0: y = Relu(y); break;
        case 1: y = Bias(y, channels); break;
        case 2: y = Norm(y, channels, any(2) == 0); break;
        case 3: y = g_.Op("Mul", {y, Weights({channels, 1, 1})}); break;
        case 4: y = g_.Op("Tanh", {g_.Op("AddV2", {y, Weights({1, channels, 1, 1})})}); break;
        case 5: y = g_.Op("AddV2", {y, Conv(y, channels, channels)}); break;
        case 6: fetches.push_back(y); break;
        case 7: y = layer < 4 ? Pool(any(2) ? "MaxPool" : "AvgPool", y) : y; break;
        default: {
          const int64_t next = 16 + 16 * any(3);
          y = Conv(y, channels, next, 1 + any(2));
          channels = next;
        }
      }
    }
    y = Relu(Conv(Conv(y, channels, 32), 32, 32));
    const Edge loss = g_.Op("Sum", {g_.Op("Mul", {y, y}), Ints({0, 1, 2, 3})});
    for (Edge g : Gradients(loss, wanted)) fetches.push_back(g);
    fetches.push_back(y);
    for (const std::string& f : Plan(fetches, {kImages}).formats) turned += f == "NHWC";
    EXPECT_GE(turned, 2) << net;
    SCOPED_TRACE(StrCat("net ", net));
    Compare(fetches, {{kImages}, {Shape({1, 32, 13, 11})}});
  }
}

}  // namespace
}  // namespace thalweg
