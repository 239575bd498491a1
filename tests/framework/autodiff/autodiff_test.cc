// Tests gradients over the standard ops and the CPU plugin, and over a few ops defined here.
#include "framework/autodiff/autodiff.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/builder.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/standard_runtime.h"
#include "tests/framework/support/test_ops.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

// ---- Ops of this test ----

tw_edge Mul(const tw::Grad& g, tw_edge a, tw_edge b) { return g.op("Mul", {a, b}); }

// Cube(x) = x^3 with captures of input and result: 3 x^2 = 3 y / x.
void CubeGradient(const tw::Grad& g) { g.dx(0, Mul(g, g.dy(), Mul(g, g.scalar(3), g.op("RealDiv", {g.y(), g.x(0)})))); }
// Halves(x) -> (low, high): dx = 10 dlow + 100 dhigh, where dhigh counts only if it arrives.
void HalvesGradient(const tw::Grad& g) {
  tw_edge low = Mul(g, g.dy(0), g.scalar(10));
  g.dx(0, g.has_dy(1) ? g.op("AddV2", {low, Mul(g, g.dy(1), g.scalar(100))}) : low);
}
void WrongTypeGradient(const tw::Grad& g) { g.dx(0, g.ints({1})); }
void ThrowingGradient(const tw::Grad&) { throw tw::Error{TW_INVALID_ARGUMENT, "not today"}; }
void NoSuchInputGradient(const tw::Grad& g) { g.dx(3, g.dy()); }
void WrongShapeGradient(const tw::Grad& g) {
  const int64_t three = 3;
  const float values[] = {1, 2, 3};
  g.dx(0, g.c->host->graph->constant(g.c->b, TW_FLOAT, &three, 1, values, sizeof values));
}
// Passes an index that is negative as int32 to each call that takes an index.
void HugeIndexGradient(const tw::Grad& g) {
  constexpr uint32_t kHuge = 0xfffffff0;
  const tw_graph_api* api = g.c->host->graph;
  tw_builder* b = g.c->b;
  const tw_edge dy = api->dy(b, 0);
  tw_edge rows = 0;
  switch (g.i("call")) {
    case 0: api->input(b, kHuge); break;
    case 1: api->result(b, kHuge); break;
    case 2: api->shape(b, kHuge); break;
    case 3: api->dy(b, kHuge); break;
    case 4: api->dy_sparse(b, kHuge, &rows); break;
    case 5: api->output(b, dy, kHuge); break;
    case 6: api->dx(b, kHuge, dy); break;
    case 7: api->dx_sparse(b, kHuge, dy, dy); break;
    default: api->dx(b, api->has_dy(b, kHuge), dy);
  }
}
// dx = -dy, by a node with a name, a device and a node that it waits for.
tw_status* ByRecordGradient(const tw_grad_call* c) noexcept {
  const tw_graph_api* api = c->host->graph;
  const tw_edge dy = api->dy(c->b, 0), before = api->input(c->b, 0);
  tw_new_node n = {TW_SIZED(tw_new_node), TW_S("Neg"), TW_S("turned"), TW_S("CPU:0"), &dy, nullptr, &before, 1, 0, 1, 0};
  api->dx(c->b, 0, api->add(c->b, &n));
  return nullptr;
}
// As above, with a mistake.
tw_status* BadRecordGradient(const tw_grad_call* c) noexcept {
  tw_new_node n = {TW_SIZED(tw_new_node), TW_S("Neg"), nullptr, 3, nullptr, 0, nullptr, nullptr, nullptr, 0, 0, 0, 0};
  c->host->graph->dx(c->b, 0, c->host->graph->add(c->b, &n));
  return nullptr;
}
tw_status* HugeNameGradient(const tw_grad_call* c) noexcept {
  const tw_edge dy = c->host->graph->dy(c->b, 0);
  const tw_attr attr = {"a", ~uint64_t{0}, nullptr, TW_ATTR_INT, 0, 1, 0};
  c->host->graph->dx(c->b, 0, c->host->graph->emit(c->b, "Neg", 3, &dy, 1, &attr, 1));
  return nullptr;
}

void Cube(tw::In<float> x, tw::Out<float> y) {
  for (uint64_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i] * x[i];
}

tw_status* Init(const tw_host* h, tw_registrar* r, void**) {
  return tw::guard(h, [&] {
    tw::Plugin p{h, r};
    p.op<CubeGradient>("Cube(x: float[*s]) -> (y: float[*s])").kernel<Cube>("Cube @CPU; inplace y=x");
    p.op<HalvesGradient>("Halves(x: float[*s]) -> (low: float[*s], high: float[*s])");
    p.op<WrongTypeGradient>("WrongType(x: float[*s]) -> (y: float[*s])");
    p.op<ThrowingGradient>("Throwing(x: float[*s]) -> (y: float[*s])");
    p.op<NoSuchInputGradient>("NoSuchInput(x: float[*s]) -> (y: float[*s])");
    p.op<WrongShapeGradient>("WrongShape(x: float[*s]) -> (y: float[*s])");
    p.op<HugeIndexGradient>("HugeIndex(x: float[*s]) -> (y: float[*s]); call: int");
    const std::string_view schema = "HugeName(x: float[*s]) -> (y: float[*s])";
    const tw_op_def huge_name = {TW_SIZED(tw_op_def), schema.data(), schema.size(), nullptr, nullptr, HugeNameGradient};
    tw::check(tw_add_op(r, &huge_name));
    const tw_op_def by_record = {TW_SIZED(tw_op_def), TW_S("ByRecord(x: float[*s]) -> (y: float[*s])"), nullptr, nullptr, ByRecordGradient};
    const tw_op_def bad_record = {TW_SIZED(tw_op_def), TW_S("BadRecord(x: float[*s]) -> (y: float[*s])"), nullptr, nullptr,
                                  BadRecordGradient};
    tw::check(tw_add_op(r, &by_record));
    tw::check(tw_add_op(r, &bad_record));
    p.op("Silent(x: float[*s]) -> (y: float[*s])");
    p.op("Step(x: float[*s]) -> (y: float[*s]); no_gradient \"it has steps\"");
  });
}
const tw_plugin* Query(const tw_host_info*) {
  static const tw_plugin plugin = {TW_SIZED(tw_plugin), TW_EPOCH,     0,    0,      TW_MINOR, TW_S("org.test.gradients"), TW_S("1"),
                                   TW_S("x"),           TW_S("test"), Init, nullptr};
  return &plugin;
}

class AutodiffTest : public testing_support::StandardRuntimeTest {
 protected:
  static void SetUpTestSuite() { Shared() = testing_support::StandardRuntime(1, {{"gradients", Query}}); }
  Edge Op(const std::string& op, std::vector<Edge> in, TestGraph::Extras extras = {}) {
    return g_.Op(op, std::move(in), std::move(extras));
  }
  Edge Number(float v) { return g_.Const(FloatsOf(Shape(std::vector<int64_t>{}), v)); }
  Edge Ints(const std::vector<int32_t>& v) { return g_.Const(*Tensor::Vector<int32_t>(TW_INT32, v)); }
  Edge Zero() { return g_.Const(*ScalarTensor(TW_INT32, 0)); }
  std::vector<Gradient> Gradients(const std::vector<Edge>& ys, const std::vector<Edge>& xs, const std::vector<Edge>& stop = {},
                                  const std::vector<Edge>& dys = {}) {
    std::vector<Gradient> out;
    Status s = AddGradients(&g_.graph(), ys, dys, xs, &out, stop);
    EXPECT_TRUE(s.ok()) << s;
    out.resize(xs.size());
    return out;
  }
  Edge Derivative(Edge y, Edge x) { return Gradients({y}, {x})[0].values; }
  Status Refusal(Edge y, Edge x) {
    std::vector<Gradient> out;
    return AddGradients(&g_.graph(), {y}, {}, {x}, &out);
  }
  std::vector<float> At(const std::vector<float>& x, Edge e) {
    auto session = g_.NewSession();
    auto out = Step(*session, {{x_}, {e}, {}}, {Floats(x)});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? Values((*out)[0]) : std::vector<float>();
  }
  size_t CountOps(const std::string& op) {
    size_t n = 0;
    for (int32_t i = 0; i < g_.graph().size(); ++i) n += g_.graph().node(i)->op().name == op;
    return n;
  }
  TestGraph g_{Shared()};
  Edge x_ = g_.Input(Shape({-1}), "x");
};

// ---- Values ----

TEST_F(AutodiffTest, SecondDerivativesAgreeWithTheFormula) {
  // y = exp(x) sin(x) + x^4: y' = exp(x) (sin + cos) + 4 x^3, y'' = 2 exp(x) cos(x) + 12 x^2, y''' = 2 exp(x) (cos - sin) + 24 x.
  Edge square = Op("Square", {x_}), y = Op("AddV2", {Op("Mul", {Op("Exp", {x_}), Op("Sin", {x_})}), Op("Mul", {square, square})});
  Edge d1 = Derivative(y, x_), d2 = Derivative(d1, x_), d3 = Derivative(d2, x_);
  const std::vector<float> at = {-1.5f, -0.25f, 0, 0.5f, 2};
  std::vector<float> e1, e2, e3;
  for (float f : at) {
    const double x = f, e = std::exp(x), s = std::sin(x), c = std::cos(x);
    e1.push_back(float(e * (s + c) + 4 * x * x * x));
    e2.push_back(float(2 * e * c + 12 * x * x));
    e3.push_back(float(2 * e * (c - s) + 24 * x));
  }
  EXPECT_THAT(At(at, d1), Pointwise(FloatNear(2e-5f), e1));
  EXPECT_THAT(At(at, d2), Pointwise(FloatNear(2e-5f), e2));
  EXPECT_THAT(At(at, d3), Pointwise(FloatNear(4e-5f), e3));
}

TEST_F(AutodiffTest, ANodeMadeByRecordHasItsNameDeviceAndPredecessors) {
  Edge d = Derivative(Op("ByRecord", {x_}, {.name = "r", .device = "CPU"}), x_);
  EXPECT_EQ(d.node->op().name, "Neg");
  EXPECT_THAT(d.node->name(), HasSubstr("turned"));
  EXPECT_EQ(d.node->device(), "CPU:0");
  EXPECT_THAT(d.node->controls(), ElementsAre(x_.node));
}

TEST_F(AutodiffTest, SecondDerivativesOfTanhAgreeWithTheFormula) {
  Edge d2 = Derivative(Derivative(Op("Tanh", {x_}), x_), x_);
  const std::vector<float> at = {-2, -0.5f, 0, 1};
  std::vector<float> expected;
  for (float x : at) expected.push_back(float(-2 * std::tanh(double(x)) * (1 - std::tanh(double(x)) * std::tanh(double(x)))));
  EXPECT_THAT(At(at, d2), Pointwise(FloatNear(1e-6f), expected));
}

TEST_F(AutodiffTest, AGivenDyWeighsItsY) {
  Edge a = Op("Square", {x_}), b = Op("Neg", {x_});
  auto g = Gradients({a, b}, {x_}, {}, {g_.Const({10, 100}), Edge{}});
  EXPECT_THAT(At({1, 2}, g[0].values), ElementsAre(19, 399));
  EXPECT_THAT(At({1, 2}, Gradients({a, b}, {x_})[0].values), ElementsAre(1, 3));
}

TEST_F(AutodiffTest, TheGradientOfAnXThatIsAY) {
  EXPECT_THAT(At({5, 6}, Derivative(x_, x_)), ElementsAre(1, 1));
  EXPECT_THAT(At({5, 6}, Gradients({x_, Op("Square", {x_})}, {x_})[0].values), ElementsAre(11, 13));
}

TEST_F(AutodiffTest, InnerValuesHaveGradientsToo) {
  Edge inner = Op("Square", {x_}), y = Op("Square", {inner});
  auto g = Gradients({y}, {inner, x_});
  EXPECT_THAT(At({2}, g[0].values), ElementsAre(8));
  EXPECT_THAT(At({2}, g[1].values), ElementsAre(32));
}

// ---- Sums ----

TEST_F(AutodiffTest, WhatIsUsedTwiceIsSummedOnce) {
  // v is read three times; the nodes before v must get a single sum.
  Edge v = Op("Exp", {x_}), y = Op("AddV2", {Op("Mul", {v, v}), Op("Neg", {v})});
  Edge before = Derivative(y, x_);
  EXPECT_EQ(CountOps("AddN"), 1u);
  auto at = At({0, 1}, before);
  EXPECT_NEAR(at[0], 2 - 1, 1e-6);
  EXPECT_NEAR(at[1], 2 * std::exp(2.0) - std::exp(1.0), 1e-5);
  // If gradients of both are requested, the sum at v is computed once and used for both.
  Gradients({y}, {v, x_, v});
  EXPECT_EQ(CountOps("AddN"), 2u);
}

TEST_F(AutodiffTest, ManyPathsGiveOneSumEach) {
  Edge v = x_;
  for (int i = 0; i < 30; ++i) v = Op("AddV2", {v, v});  // 2^30 paths
  EXPECT_THAT(At({1}, Derivative(v, x_)), ElementsAre(std::ldexp(1.0f, 30)));
  EXPECT_LE(CountOps("AddN"), 30u);
}

// ---- No flow of gradients ----

TEST_F(AutodiffTest, UnconnectedValuesHaveNone) {
  Edge other = g_.Input(Shape({2}), "other"), y = Op("Square", {x_});
  auto g = Gradients({y}, {other, x_});
  EXPECT_FALSE(g[0].values);
  EXPECT_FALSE(g[0].rows);
  EXPECT_TRUE(g[1].values);
  EXPECT_FALSE(Gradients({Op("Square", {other})}, {x_})[0].values);
  EXPECT_FALSE(Gradients({Op("StopGradient", {Op("Square", {x_})})}, {x_})[0].values);
  EXPECT_THAT(At({3}, Derivative(Op("Mul", {Op("StopGradient", {x_}), x_}), x_)), ElementsAre(3));
}

TEST_F(AutodiffTest, AnIntegerOnTheWayEndsThePath) {
  Edge i = Op("Cast", {x_}, {.attrs = {{"DstT", AttrValue::Type(TW_INT32)}}});
  Edge y = Op("Cast", {Op("Mul", {i, i})}, {.attrs = {{"DstT", AttrValue::Type(TW_FLOAT)}}});
  EXPECT_FALSE(Gradients({y}, {x_})[0].values);
}

TEST_F(AutodiffTest, StoppedValuesCountAsConstants) {
  Edge a = Op("Square", {x_}), y = Op("Mul", {a, x_});
  EXPECT_THAT(At({3}, Derivative(y, x_)), ElementsAre(27));
  EXPECT_THAT(At({3}, Gradients({y}, {x_}, {a})[0].values), ElementsAre(9));
  EXPECT_FALSE(Gradients({Op("Neg", {a})}, {x_}, {a})[0].values);
}

TEST_F(AutodiffTest, AStoppedXHasItsPartialDerivative) {
  Edge a = Op("Square", {x_}), y = Op("Mul", {a, x_});
  auto g = Gradients({y}, {a, x_}, {a, x_});
  EXPECT_THAT(At({3}, g[0].values), ElementsAre(3));
  EXPECT_THAT(At({3}, g[1].values), ElementsAre(9));
}

TEST_F(AutodiffTest, WhatIsNotDifferentiableIsRefusedByNameAndReason) {
  Edge step = Op("Step", {x_}, {.name = "the_step"});
  Status s = Refusal(Op("Square", {step}), x_);
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Text(s),
            "Step 'the_step': op Step is not differentiable: it has steps; stop the gradient before it (StopGradient) or use another op");
  EXPECT_EQ(Text(Refusal(Op("Square", {Op("Silent", {x_}, {.name = "silent"})}), x_)),
            "Silent 'silent': op Silent has no gradient; its plugin 'org.test.gradients' must register one");
  // Only nodes between an x and a y matter; a stopped gradient does not.
  Edge other = g_.Input(Shape({2}));
  EXPECT_TRUE(Refusal(Op("Mul", {Op("Step", {other}), x_}), x_).ok());
  EXPECT_TRUE(Refusal(Op("Mul", {Op("Step", {Op("StopGradient", {x_})}), x_}), x_).ok());
}

TEST_F(AutodiffTest, RefusesTypesWithoutGradients) {
  Edge i = g_.Op("Placeholder", {}, {.name = "i", .attrs = {{"dtype", AttrValue::Type(TW_INT32)}}});
  EXPECT_EQ(Refusal(i, x_).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(Refusal(x_, i)), HasSubstr("'i' is int32; only floating-point and complex values have gradients"));
  EXPECT_EQ(Refusal(Edge{}, x_).code(), absl::StatusCode::kInvalidArgument);
  std::vector<Gradient> out;
  EXPECT_EQ(AddGradients(&g_.graph(), {x_}, {i}, {x_}, &out).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AddGradients(&g_.graph(), {x_}, {x_, x_}, {x_}, &out).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(AddGradients(&g_.graph(), {g_.Input(Shape({2}))}, {g_.Const({1, 2, 3})}, {x_}, &out)),
              HasSubstr("has shape [3], not [2]"));
}

// ---- Gradients of plugins ----

TEST_F(AutodiffTest, APluginsGradientMayCaptureInputsAndResults) {
  Edge y = Op("Cube", {Op("Mul", {x_, Number(2)})});
  EXPECT_THAT(At({1, 2, -3}, Derivative(y, x_)), Pointwise(FloatNear(1e-4f), std::vector<float>{24, 96, 216}));
  // The gradient consists of ordinary ops, so it can be differentiated again.
  Edge second = Derivative(Derivative(Op("Cube", {x_}), x_), x_);
  EXPECT_THAT(At({1, 2, -3}, second), Pointwise(FloatNear(1e-4f), std::vector<float>{6, 12, -18}));
}

TEST_F(AutodiffTest, APluginSeesWhichGradientsArrive) {
  Edge halves = Op("Halves", {x_}), high{halves.node, 1};
  EXPECT_THAT(At({1}, Derivative(halves, x_)), ElementsAre(10));
  auto both = Gradients({halves, high}, {x_});
  EXPECT_THAT(At({1}, both[0].values), ElementsAre(110));
}

TEST_F(AutodiffTest, ZerosStandForGradientsThatDoNotArrive) {
  Edge halves = Op("Halves", {g_.Const({1, 2})}), high{halves.node, 1};
  auto g = Gradients({high}, {halves.node->inputs()[0]});
  // dlow is ZerosLike(low), so fetching it would need Halves itself; the test only checks its place
  // in the formula.
  EXPECT_EQ(CountOps("ZerosLike"), 1u);
  EXPECT_TRUE(g[0].values);
}

TEST_F(AutodiffTest, MistakesOfAPluginNameTheNode) {
  EXPECT_EQ(Text(Refusal(Op("Throwing", {x_}, {.name = "a"}), x_)), "gradient of Throwing 'a': not today");
  EXPECT_EQ(Text(Refusal(Op("WrongType", {x_}, {.name = "b"}), x_)),
            "gradient of WrongType 'b': the gradient of input 0 is int32, not float");
  EXPECT_EQ(Text(Refusal(Op("NoSuchInput", {x_}, {.name = "c"}), x_)), "gradient of NoSuchInput 'c': there is no input 3");
  EXPECT_EQ(Text(Refusal(Op("WrongShape", {x_}, {.name = "any"}), x_)), "");  // [?] may be [3]
  Edge two = g_.Input(Shape({2}));
  EXPECT_EQ(Text(Refusal(Op("WrongShape", {two}, {.name = "d"}), two)),
            "gradient of WrongShape 'd': the gradient of input 0 has shape [3], not [2]");
}

TEST_F(AutodiffTest, AnIndexAboveTwoToThe31IsNoInputOrOutput) {
  for (int64_t call = 0; call < 9; ++call) {
    Status s = Refusal(Op("HugeIndex", {x_}, {.attrs = {{"call", AttrValue::Int(call)}}}), x_);
    EXPECT_EQ(s.ok(), call == 8) << call;  // has_dy returns 0
    EXPECT_THAT(Text(s), HasSubstr(call < 8 ? "put 4294967280" : "")) << call;
  }
}

TEST_F(AutodiffTest, NamesWhoseLengthWasNeverFilledAreRefused) {
  EXPECT_THAT(Text(Refusal(Op("BadRecord", {x_}, {.name = "f"}), x_)), HasSubstr("gradient of BadRecord 'f': the name of a node is NULL"));
  EXPECT_THAT(Text(Refusal(Op("HugeName", {x_}, {.name = "e"}), x_)), HasSubstr("gradient of HugeName 'e': the name of attribute 0 has "));
}

// ---- Sparse ----

class SparseGradientTest : public AutodiffTest {
 protected:
  Edge Gather(Edge params, const std::vector<int32_t>& rows) { return Op("GatherV2", {params, Ints(rows), Zero()}); }
  std::vector<std::vector<float>> Fetch(const std::vector<Edge>& fetches, const std::vector<Edge>& feeds,
                                        const std::vector<Tensor>& values) {
    auto session = g_.NewSession();
    auto out = Step(*session, {feeds, fetches, {}}, values);
    EXPECT_TRUE(out.ok()) << out.status();
    std::vector<std::vector<float>> all;
    for (const Tensor& t : out.ok() ? *out : std::vector<Tensor>()) {
      all.emplace_back();
      for (uint64_t i = 0; i < t.count(); ++i) all.back().push_back(t.dtype() == TW_INT32 ? float(t.as<int32_t>()[i]) : t.as<float>()[i]);
    }
    return all;
  }
  const Tensor table_ = FloatsOf(Shape({4, 2}));
  Edge params_ = g_.Input(Shape({4, 2}), "params");
};

TEST_F(SparseGradientTest, GatheredRowsHaveGradientsAsRowsAndValues) {
  Edge y = Op("Square", {Gather(params_, {2, 0, 2})});
  auto g = Gradients({y}, {params_});
  ASSERT_TRUE(g[0].sparse());
  auto out = Fetch({g[0].rows, g[0].values}, {params_}, {table_});
  EXPECT_THAT(out[0], ElementsAre(2, 0, 2));
  EXPECT_THAT(out[1], ElementsAre(10, 12, 2, 4, 10, 12));
  Edge dense = *Densify(&g_.graph(), g[0], params_, "dense/");
  EXPECT_THAT(Fetch({dense}, {params_}, {table_})[0], ElementsAre(2, 4, 0, 0, 20, 24, 0, 0));
}

TEST_F(SparseGradientTest, SparseGradientsOfOneValueAreJoined) {
  Edge y = Op("Square", {Gather(params_, {1})}), z = Gather(params_, {3, 1});
  auto g = Gradients({y, z}, {params_});
  ASSERT_TRUE(g[0].sparse());
  auto out = Fetch({g[0].rows, g[0].values}, {params_}, {table_});
  std::vector<float> sums(8);
  for (size_t i = 0; i < out[0].size(); ++i) {
    for (size_t k = 0; k < 2; ++k) sums[size_t(out[0][i]) * 2 + k] += out[1][i * 2 + k];
  }
  EXPECT_EQ(out[0].size(), 3u);
  EXPECT_THAT(sums, ElementsAre(0, 0, 7, 9, 0, 0, 1, 1));
}

TEST_F(SparseGradientTest, RowsOfTwoIntegerTypesAreJoined) {
  Edge wide = g_.Const(*Tensor::Vector<int64_t>(TW_INT64, {3}));
  Edge z = Op("GatherV2", {params_, wide, Zero()});
  auto g = Gradients({Gather(params_, {0}), z, Gather(params_, {1})}, {params_});
  ASSERT_TRUE(g[0].sparse());
  EXPECT_EQ(g[0].rows.node->out_type(g[0].rows.port), uint32_t{TW_INT64});
  EXPECT_EQ(Fetch({g[0].values}, {params_}, {table_})[0].size(), 6u);
}

TEST_F(SparseGradientTest, SparseAndDenseAddUpToDense) {
  Edge y = Gather(params_, {1, 1}), z = Op("Neg", {params_});
  auto g = Gradients({y, z}, {params_});
  EXPECT_FALSE(g[0].sparse());
  EXPECT_THAT(Fetch({g[0].values}, {params_}, {table_})[0], ElementsAre(-1, -1, 1, 1, -1, -1, -1, -1));
}

TEST_F(SparseGradientTest, WhatIsBeforeAGatherSeesADenseGradient) {
  Edge y = Gather(Op("Square", {params_}), {3, 0, 3});
  auto g = Gradients({y}, {params_});
  EXPECT_FALSE(g[0].sparse());
  EXPECT_THAT(Fetch({g[0].values}, {params_}, {table_})[0], ElementsAre(2, 4, 0, 0, 0, 0, 28, 32));
}

}  // namespace
}  // namespace thalweg
