// Nodes without effect are removed, and results keep their bits. Over the standard ops and the CPU
// plugin.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/builder.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/standard_runtime.h"

namespace thalweg {
namespace {

using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Planning;
using testing_support::Step;
using testing_support::TestGraph;

class SimplifyPassTest : public testing_support::StandardRuntimeTest {
 protected:
  Edge Scalar(double v, uint32_t dtype = TW_FLOAT) { return g_.Const(*ScalarTensor(dtype, v)); }
  Edge Ints(const std::vector<int32_t>& v) { return g_.Const(*Tensor::Vector<int32_t>(TW_INT32, v)); }
  Edge Input(uint32_t dtype, const Shape& shape) {
    return g_.Op("Placeholder", {}, {.attrs = {{"dtype", AttrValue::Type(dtype)}, {"shape", AttrValue::OfShape(shape)}}});
  }
  Edge Cast(Edge x, uint32_t to) { return g_.Op("Cast", {x}, {.attrs = {{"DstT", AttrValue::Type(to)}}}); }
  // Returns the value that replaces `y` after planning; empty for a node that runs, or a constant.
  Edge StandsFor(Edge y, Edge feed, const Shape& shape) {
    Planning p(g_.graph(), {{feed}, {y}, {}}, {shape});
    p.Through("prune");
    EXPECT_TRUE(p.status.ok()) << p.status;
    const WorkNode& n = p.w.nodes[size_t(p.w.fetches[0].node)];
    if (n.feed >= 0) return feed;
    return n.node == y.node ? Edge() : Edge{n.node, p.w.fetches[0].port};
  }
  TestGraph g_{Shared()};
  Edge x_ = Input(TW_FLOAT, Shape({-1, 3}));
};

TEST_F(SimplifyPassTest, LeavesOutWhatPassesItsInputOn) {
  for (const char* op : {"Identity", "StopGradient"}) EXPECT_EQ(StandsFor(g_.Op(op, {x_}), x_, Shape({2, 3})), x_) << op;
  EXPECT_EQ(StandsFor(g_.Op("Identity", {x_}), x_, Shape()), x_);
  EXPECT_EQ(StandsFor(Cast(x_, TW_FLOAT), x_, Shape({2, 3})), x_);
  EXPECT_EQ(StandsFor(Cast(x_, TW_INT32), x_, Shape({2, 3})), Edge());
}

TEST_F(SimplifyPassTest, LeavesOutNumbersThatChangeNothing) {
  auto gone = [&](const std::string& op, Edge a, Edge b) { return StandsFor(g_.Op(op, {a, b}), x_, Shape({2, 3})) == x_; };
  EXPECT_TRUE(gone("Mul", x_, Scalar(1)));
  EXPECT_TRUE(gone("Mul", Scalar(1), x_));
  EXPECT_TRUE(gone("Sub", x_, Scalar(0)));
  EXPECT_TRUE(gone("RealDiv", x_, Scalar(1)));
  EXPECT_TRUE(gone("AddV2", Scalar(-0.0), x_));
  EXPECT_TRUE(gone("Mul", x_, g_.Const({1, 1, 1})));
  EXPECT_FALSE(gone("AddV2", x_, Scalar(0)));  // -0 + 0 is 0
  EXPECT_FALSE(gone("Sub", x_, Scalar(-0.0)));
  EXPECT_FALSE(gone("Sub", Scalar(0), x_));
  EXPECT_FALSE(gone("RealDiv", Scalar(1), x_));
  EXPECT_FALSE(gone("Mul", x_, Scalar(0)));  // wrong for NaN and infinity
  EXPECT_FALSE(gone("Mul", x_, g_.Const({1, 1, 2})));
}

TEST_F(SimplifyPassTest, WholeNumbersHaveOneZero) {
  Edge x = Input(TW_INT32, Shape({-1}));
  EXPECT_EQ(StandsFor(g_.Op("AddV2", {x, Scalar(0, TW_INT32)}), x, Shape({4})), x);
}

TEST_F(SimplifyPassTest, ComplexNumbersAreLeftAlone) {
  Edge x = Input(TW_COMPLEX64, Shape({-1}));
  EXPECT_EQ(StandsFor(g_.Op("Mul", {x, Scalar(1, TW_COMPLEX64)}), x, Shape({4})), Edge());
}

TEST_F(SimplifyPassTest, KeepsWhatBroadcasts) {
  Edge ones = g_.Const(*FloatsOf(Shape({1})).Reshape(std::vector<int64_t>{1, 1}.data(), 2));
  Edge scalar = Input(TW_FLOAT, Shape(std::vector<int64_t>{}));
  EXPECT_EQ(StandsFor(g_.Op("Mul", {scalar, ones}), scalar, Shape(std::vector<int64_t>{})), Edge());
  EXPECT_EQ(StandsFor(g_.Op("Mul", {x_, ones}), x_, Shape({2, 3})), x_);
}

TEST_F(SimplifyPassTest, UndoesWhatUndoesItself) {
  Edge twice = g_.Op("Neg", {g_.Op("Neg", {x_})});
  EXPECT_EQ(StandsFor(twice, x_, Shape({2, 3})), x_);
  EXPECT_EQ(StandsFor(g_.Op("Neg", {g_.Op("Neg", {twice})}), x_, Shape({2, 3})), x_);
  EXPECT_NE(StandsFor(g_.Op("Neg", {twice}), x_, Shape({2, 3})), x_);
  Edge once = g_.Op("Relu", {x_});
  EXPECT_EQ(StandsFor(g_.Op("Relu", {once}), x_, Shape({2, 3})), once);
  EXPECT_EQ(StandsFor(g_.Op("Abs", {once}), x_, Shape({2, 3})), Edge());
}

TEST_F(SimplifyPassTest, FollowsElementsThroughNewDims) {
  Edge flat = g_.Op("Reshape", {x_, Ints({-1})}), back = g_.Op("Reshape", {flat, Ints({-1, 3})});
  EXPECT_EQ(StandsFor(back, x_, Shape({2, 3})), x_);
  EXPECT_EQ(StandsFor(g_.Op("Squeeze", {g_.Op("ExpandDims", {x_, Ints({0})})}), x_, Shape({2, 3})), x_);
  Edge other = g_.Op("Reshape", {g_.Op("ExpandDims", {flat, Scalar(0, TW_INT32)}), Ints({3, 2})});
  Planning p(g_.graph(), {{x_}, {other}, {}}, {Shape({2, 3})});
  p.Through("prune");
  EXPECT_TRUE(p.Runs(other));
  EXPECT_FALSE(p.Runs(flat));  // the last reshape of several reads the first value
}

TEST_F(SimplifyPassTest, UndoesPermutations) {
  auto transpose = [&](Edge x, const std::vector<int32_t>& perm) { return g_.Op("Transpose", {x, Ints(perm)}); };
  EXPECT_EQ(StandsFor(transpose(x_, {0, 1}), x_, Shape({2, 3})), x_);
  EXPECT_EQ(StandsFor(transpose(x_, {-2, -1}), x_, Shape({2, 3})), x_);
  EXPECT_EQ(StandsFor(transpose(transpose(x_, {1, 0}), {1, 0}), x_, Shape({2, 3})), x_);
  Edge y = Input(TW_FLOAT, Shape({-1, -1, -1}));
  EXPECT_EQ(StandsFor(transpose(transpose(y, {1, 2, 0}), {2, 0, 1}), y, Shape({2, 3, 4})), y);
  EXPECT_EQ(StandsFor(transpose(transpose(y, {1, 2, 0}), {1, 2, 0}), y, Shape({2, 3, 4})), Edge());
  Edge any = Input(TW_FLOAT, Shape());  // its axes may differ from the feed's
  EXPECT_EQ(StandsFor(transpose(any, {0, 1}), any, Shape()), Edge());
  EXPECT_EQ(StandsFor(transpose(any, {0, 1}), any, Shape({2, 3})), any);
}

TEST_F(SimplifyPassTest, DropsTheBranchThatIsNeverTaken) {
  Edge other = g_.Op("Exp", {x_}), yes = Scalar(1, TW_BOOL), no = Scalar(0, TW_BOOL);
  EXPECT_EQ(StandsFor(g_.Op("SelectV2", {yes, x_, other}), x_, Shape({2, 3})), x_);
  EXPECT_EQ(StandsFor(g_.Op("SelectV2", {no, x_, other}), x_, Shape({2, 3})), other);
  EXPECT_EQ(StandsFor(g_.Op("SelectV2", {yes, g_.Op("Sum", {x_, Ints({0, 1})}), other}), x_, Shape({2, 3})), Edge());  // it broadcasts
  Planning p(g_.graph(), {{x_}, {g_.Op("SelectV2", {yes, x_, other})}, {}}, {Shape({2, 3})});
  p.Through("prune");
  EXPECT_FALSE(p.Runs(other));
}

TEST_F(SimplifyPassTest, KeepsWhatHasAnEffect) {
  const Node* before = g_.Op("NoOp", {}).node;
  Edge ordered = g_.Op("Neg", {x_}, {.controls = {before}});
  EXPECT_EQ(StandsFor(g_.Op("Neg", {ordered}), x_, Shape({2, 3})), Edge());
  EXPECT_EQ(StandsFor(g_.Op("Identity", {x_}, {.controls = {before}}), x_, Shape({2, 3})), Edge());
  Edge one = g_.Const(*ScalarTensor(TW_FLOAT, 1), {.controls = {before}});
  EXPECT_EQ(StandsFor(g_.Op("Mul", {x_, one}), x_, Shape({2, 3})), Edge());
  Edge chosen = g_.Op("SelectV2", {Scalar(1, TW_BOOL), x_, ordered});
  EXPECT_EQ(StandsFor(chosen, x_, Shape({2, 3})), Edge());
}

TEST_F(SimplifyPassTest, ReshapesKeepTheEffectsOfTheirDims) {
  const Node* before = g_.Op("NoOp", {}).node;
  Edge dims = g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {2, 3}), {.controls = {before}});
  EXPECT_EQ(StandsFor(g_.Op("Reshape", {x_, dims}), x_, Shape({2, 3})), Edge());
  Edge drawn = g_.Op("RandomUniformInt", {Ints({2}), Scalar(1, TW_INT32), Scalar(6, TW_INT32)});
  EXPECT_EQ(StandsFor(g_.Op("Reshape", {g_.Op("Reshape", {x_, drawn}), Ints({2, 3})}), x_, Shape({2, 3})), Edge());
  Edge exp = g_.Op("Exp", {x_});
  EXPECT_EQ(StandsFor(g_.Op("Reshape", {exp, g_.Op("Shape", {x_})}), x_, Shape({2, 3})), exp);
}

TEST_F(SimplifyPassTest, KeepsWhatMayYetRefuseItsInput) {
  auto runs = [&](Edge node, Edge fetch, const std::vector<Edge>& feeds, const std::vector<Shape>& shapes) {
    Planning p(g_.graph(), {feeds, {fetch}, {}}, shapes);
    return p.Through("prune").Runs(node);
  };
  Edge dims = Input(TW_INT32, Shape({2})), inner = g_.Op("Reshape", {x_, dims}), y = Input(TW_FLOAT, Shape({-1, -1}));
  EXPECT_TRUE(runs(inner, g_.Op("Reshape", {inner, Ints({2, 3})}), {x_, dims}, {Shape({2, 3}), Shape({2})}));
  Edge three = g_.Op("EnsureShape", {y}, {.attrs = {{"shape", AttrValue::OfShape(Shape({-1, 3}))}}});
  EXPECT_TRUE(runs(three, g_.Op("Reshape", {three, Ints({-1})}), {y}, {Shape()}));
  EXPECT_FALSE(runs(three, g_.Op("Reshape", {three, Ints({-1})}), {y}, {Shape({2, 3})}));
  Edge taken = g_.Op("Exp", {g_.Op("Reshape", {x_, Ints({2, 3})})}), other = g_.Op("Neg", {y});
  Edge chosen = g_.Op("SelectV2", {Scalar(1, TW_BOOL), taken, other});
  EXPECT_TRUE(runs(other, chosen, {x_, y}, {Shape(), Shape()}));
  EXPECT_FALSE(runs(other, chosen, {x_, y}, {Shape({2, 3}), Shape({1, 3})}));
}

TEST_F(SimplifyPassTest, ControlsAndTargetsMoveToWhatIsLeft) {
  Edge y = g_.Op("Exp", {x_}), same = g_.Op("Identity", {y}, {.name = "same"});
  const Node* end = g_.Op("NoOp", {}, {.controls = {same.node}}).node;
  Planning p(g_.graph(), {{x_}, {}, {end, same.node}}, {Shape({2, 3})});
  p.Through("prune");
  EXPECT_TRUE(p.Runs(y));
  EXPECT_FALSE(p.Runs(same));
  ASSERT_EQ(p.Find(end)->controls.size(), 1u);
  EXPECT_EQ(p.w.nodes[size_t(p.Find(end)->controls[0])].node, y.node);
  ASSERT_EQ(p.w.notes.removed.size(), 1u);
  EXPECT_EQ(p.w.notes.removed[0].first, same.node);
  EXPECT_EQ(p.w.notes.removed[0].second, y);
}

TEST_F(SimplifyPassTest, CanBeSwitchedOff) {
  Edge y = g_.Op("Identity", {g_.Op("Exp", {x_})});
  auto nodes = [&](const std::map<std::string, std::string>& options) {
    auto session = g_.NewSession(options);
    return (*session->MakeCallable({{x_}, {y}, {}}))->Report({Shape({2, 3})})->nodes;
  };
  EXPECT_EQ(nodes({}), 1u);
  EXPECT_EQ(nodes({{"disable_pass", "simplify"}}), 2u);
  EXPECT_EQ(nodes({{"optimize", "false"}}), 2u);
}

// ---- Bits ----

constexpr float kInf = std::numeric_limits<float>::infinity();
const std::vector<float> kNumbers = {0.0f, -0.0f, 1, -1, 1.5f, -2.25f, 1e-40f, -1e-40f, 3e38f, kInf, -kInf, std::nanf("")};

// Chains of ops that planning may remove, over numbers of every kind.
class RandomChains {
 public:
  RandomChains(TestGraph* g, Edge x, uint64_t seed) : g_(*g), random_(seed) {
    values_ = {x};
    for (int i = 0; i < 40; ++i) values_.push_back(Next());
  }
  const std::vector<Edge>& values() const { return values_; }

 private:
  Edge Pick() { return values_[values_.size() - 1 - random_() % std::min<size_t>(values_.size(), 5)]; }
  Edge Number(float v) { return g_.Const(*ScalarTensor(TW_FLOAT, v)); }
  Edge Ints(const std::vector<int32_t>& v) { return g_.Const(*Tensor::Vector<int32_t>(TW_INT32, v)); }
  // Every value is a matrix of 3 by 4.
  Edge Next() {
    Edge x = Pick(), y = Pick();
    const float number = std::vector<float>{0.0f, -0.0f, 1, 2}[random_() % 4];
    switch (random_() % 14) {
      case 0: return g_.Op("AddV2", {x, Number(number)});
      case 1: return g_.Op("Sub", {x, Number(number)});
      case 2: return g_.Op("Mul", {Number(number), x});
      case 3: return g_.Op("RealDiv", {x, Number(number)});
      case 4: return g_.Op("Neg", {x});
      case 5: return g_.Op(std::vector<std::string>{"Relu", "Abs", "Floor", "Sign"}[random_() % 4], {x});
      case 6: return g_.Op("Identity", {x});
      case 7: return g_.Op("Reshape", {g_.Op("Reshape", {x, Ints({2, 6})}), Ints({3, -1})});
      case 8: return g_.Op("Transpose", {g_.Op("Transpose", {x, Ints({1, 0})}), Ints({1, 0})});
      case 9: return g_.Op("SelectV2", {g_.Const(*ScalarTensor(TW_BOOL, double(random_() % 2))), x, y});
      case 10: return g_.Op("Maximum", {x, y});
      case 11: return g_.Op("Squeeze", {g_.Op("ExpandDims", {x, Ints({1})})});
      case 12: return g_.Op("Mul", {x, g_.Const({1, 1, 1, number})});
      default: return g_.Op("AddV2", random_() % 2 ? std::vector{x, y} : std::vector{y, x});
    }
  }
  TestGraph& g_;
  std::mt19937_64 random_;
  std::vector<Edge> values_;
};

// Treats all NaNs as equal: payloads are not preserved.
uint32_t Bits(float f) { return std::isnan(f) ? 0x7fc00000u : std::bit_cast<uint32_t>(f); }

TEST_F(SimplifyPassTest, ResultsKeepTheirBits) {
  size_t removed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    TestGraph g(Shared());
    Edge x = g.Input(seed % 2 ? Shape({3, 4}) : Shape({-1, 4}));
    RandomChains chains(&g, x, seed);
    const Tensor feed = *Floats(kNumbers).Reshape(std::vector<int64_t>{3, 4}.data(), 2);
    std::vector<std::vector<Tensor>> all;
    for (const char* optimize : {"false", "true"}) {
      for (const char* threads : {"1", "2"}) {
        auto session = g.NewSession({{"optimize", optimize}, {"threads", threads}});
        auto out = Step(*session, {{x}, chains.values(), {}}, {feed});
        ASSERT_TRUE(out.ok()) << out.status();
        all.push_back(*std::move(out));
      }
    }
    for (size_t k = 0; k < chains.values().size(); ++k) {
      for (const auto& other : all) {
        ASSERT_EQ(other[k].shape(), all[0][k].shape());
        for (uint64_t i = 0; i < other[k].count(); ++i) {
          ASSERT_EQ(Bits(other[k].as<float>()[i]), Bits(all[0][k].as<float>()[i])) << chains.values()[k].node->title() << " at " << i;
        }
      }
    }
    Planning p(g.graph(), {{x}, chains.values(), {}}, {Shape({3, 4})});
    removed += p.Through("prune").w.notes.removed.size();
  }
  EXPECT_GT(removed, 200u);
}

}  // namespace
}  // namespace thalweg
