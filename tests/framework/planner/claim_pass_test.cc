// Graph compilers: the parts that they see, the sets that become one node, the results of such a
// node, and fallbacks from faulty compilers.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/shown_part.h"
#include "framework/json/json.h"
#include "framework/planner/compilers/part.h"
#include "framework/runtime/runtime_of.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/planner/test_compiler.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/random_graph.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using testing_support::Fail;
using testing_support::Floats;
using testing_support::NameOf;
using testing_support::OpOf;
using testing_support::RandomGraph;
using testing_support::Step;
using testing_support::Take;
using testing_support::TestCompiler;
using testing_support::TestGraph;
using testing_support::TestStates;
using testing_support::Text;
using testing_support::Values;

class ClaimTest : public testing::Test {
 protected:
  std::unique_ptr<Plan> Compile(const Signature& s, const std::vector<Shape>& shapes = {}, const PlanOptions& options = {}) {
    std::vector<Shape> all = shapes;
    all.resize(s.feeds.size());
    auto plan = CompilePlan(g_.graph(), s, all, options, &states_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : nullptr;
  }
  static std::vector<std::string> Names(const Plan& p) {
    std::vector<std::string> all;
    for (const PlanNode& n : p.nodes) all.push_back(n.run.node->name());
    return all;
  }
  std::vector<float> Run(Edge fetch, const std::vector<float>& feed, const std::map<std::string, std::string>& options = {}) {
    auto session = g_.NewSession(options);
    auto result = Step(*session, {{x_}, {fetch}, {}}, {Floats(feed)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? Values((*result)[0]) : std::vector<float>();
  }
  static void Collect(void* arg, uint32_t level, const char* text, uint64_t len) {
    if (level >= 2) static_cast<std::vector<std::string>*>(arg)->emplace_back(text, len);
  }

  TestGraph g_{2};
  TestStates states_{&g_.runtime()};
  TestCompiler c_;
  Edge x_ = g_.Input(Shape({-1}), "x");
  std::vector<std::string> log_;
  ClaimTest() { g_.runtime().SetLog(Collect, &log_, 0); }
};

// ---- Claims ----

TEST_F(ClaimTest, ASetRunsAsOneNodeAndGivesTheSame) {
  c_.Register(&g_, "all");
  c_.claim = Take({"Neg", "Next", "Mul"});
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("Next", {a}, {.name = "b"}), y = g_.Op("Mul", {a, b}, {.name = "y"});
  auto p = Compile({{x_}, {y}, {}}, {Shape({3})});
  EXPECT_THAT(Names(*p), ElementsAre("a+b+y"));
  EXPECT_EQ(p->nodes[0].run.node->op().name, "all");
  EXPECT_THAT(c_.shown, ElementsAre("a", "b", "y"));
  for (const char* engine : {"fixed", "counted"}) {
    for (const char* threads : {"1", "2"}) {
      EXPECT_THAT(Run(y, {1, 2, 3}, {{"engine", engine}, {"threads", threads}}), ElementsAre(0, 2, 6));
    }
  }
  p.reset();
  EXPECT_EQ(c_.compiled, c_.destroyed);
  EXPECT_THAT(Run(y, {1, 2, 3}, {{"compilers", "off"}}), ElementsAre(0, 2, 6));
  EXPECT_THAT(Run(y, {1, 2, 3}, {{"disable_pass", "claim"}}), ElementsAre(0, 2, 6));
  EXPECT_EQ(c_.compiled, c_.destroyed);
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(ClaimTest, AnOutputLiesWhereAnInputLiesIfTheCompilerAllowsItAndNobodyReadsThatLater) {
  c_.inplace = [](uint32_t out, uint32_t in) { return out == 0 && in == 0; };
  c_.Register(&g_, "all");
  c_.claim = Take({"a", "b"});
  Edge made = g_.Op("Next", {x_}, {.name = "made"}), a = g_.Op("Neg", {made}, {.name = "a"}), b = g_.Op("Next", {a}, {.name = "b"});
  Edge end = g_.Op("Neg", {b}, {.name = "end"}), late = g_.Op("Add", {end, made}, {.name = "late"});
  auto in_place_of = [&](Edge fetch) {
    auto p = Compile({{x_}, {fetch}, {}}, {Shape({3})});
    EXPECT_THAT(Names(*p), testing::Contains("a+b"));
    for (const PlanNode& n : p->nodes) {
      if (n.run.node->name() == "a+b") return p->shapes->values[size_t(n.out[0])].in_place_of == n.in[0];
    }
    return false;
  };
  EXPECT_TRUE(in_place_of(end));
  EXPECT_FALSE(in_place_of(late));
  EXPECT_THAT(Run(end, {1, 2, 3}), ElementsAre(1, 2, 3));
  c_.inplace = [](uint32_t, uint32_t) { return false; };
  EXPECT_FALSE(in_place_of(end));
}

TEST_F(ClaimTest, AFetchInTheMiddleAndAReaderOutsideAreOutputs) {
  c_.Register(&g_, "all");
  c_.claim = Take({"a", "b", "c"});
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("Next", {a}, {.name = "b"}), c = g_.Op("Neg", {b}, {.name = "c"});
  Edge outside = g_.Op("Add", {a, c}, {.name = "outside"});
  auto p = Compile({{x_}, {b, outside}, {}}, {Shape({2})});
  EXPECT_THAT(Names(*p), ElementsAre("a+b+c", "outside"));
  EXPECT_EQ(p->nodes[0].out.size(), 3u);
  auto session = g_.NewSession();
  auto result = Step(*session, {{x_}, {b, outside}, {}}, {Floats({1, 5})});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Values((*result)[0]), ElementsAre(0, -4));
  EXPECT_THAT(Values((*result)[1]), ElementsAre(-1, -1));
}

// Asks the set for the limits of a part's values.
int64_t LimitOf(const tw_part& part, int32_t node, uint32_t port = 0, uint32_t axis = 0) {
  return LimitsSet()->limit(&part, node, port, axis);
}

TEST_F(ClaimTest, SizesThatOnlyRunningTellsHaveLimits) {
  Edge some = g_.Op("Positive", {x_}, {.name = "some"}), a = g_.Op("Neg", {some}, {.name = "a"});
  Edge b = g_.Op("Add", {a, some}, {.name = "b"}), rows = g_.Op("Rows", {b}, {.name = "rows", .attrs = {{"columns", AttrValue::Int(2)}}});
  Edge y = g_.Op("Neg", {rows}, {.name = "y"});
  c_.Register(&g_, "all");
  bool seen = false;
  c_.claim = [&](const tw_part& part, tw_claims* to) -> tw_status* {
    seen = true;
    EXPECT_EQ(part.n_nodes, 5u);
    EXPECT_EQ(part.nodes[0]->shapes[1].dims[0], -1);
    for (int32_t n = 0; n < 3; ++n) EXPECT_EQ(LimitOf(part, n), 5) << n;  // some, a, b
    EXPECT_EQ(LimitOf(part, -1), 5);                                      // a known size
    EXPECT_EQ(LimitOf(part, 3), -1);                                      // no hint says how many rows there are
    EXPECT_EQ(LimitOf(part, 4), -1);
    EXPECT_EQ(LimitOf(part, 3, 0, 1), 2);
    EXPECT_EQ(LimitOf(part, 4, 0, 1), 2);
    EXPECT_EQ(LimitOf(part, 0, 0, 1), -1);  // it has one axis
    EXPECT_EQ(LimitOf(part, 0, 1), -1);
    EXPECT_EQ(LimitOf(part, 5), -1);
    EXPECT_EQ(LimitOf(part, -2), -1);
    EXPECT_EQ(LimitOf(part, -1, 1), -1);
    const tw_part copy = part;
    EXPECT_EQ(LimitOf(copy, 0), -1);
    return Take({"a", "b"})(part, to);
  };
  auto p = Compile({{x_}, {y}, {}}, {Shape({5})});
  EXPECT_TRUE(seen);
  EXPECT_THAT(Names(*p), ElementsAre("some", "a+b", "rows", "y"));
}

// A state that relies on a limit gets another plan for feeds for which that limit may be wrong.
TEST_F(ClaimTest, APartThatAskedForALimitServesOnlyItsFeeds) {
  Edge some = g_.Op("Positive", {x_}), y = g_.Op("Next", {g_.Op("Neg", {some}, {.name = "a"})}, {.name = "y"});
  c_.Register(&g_, "all");
  c_.claim = Take({"a", "y"});
  for (const bool asks : {false, true}) {
    std::vector<int64_t> limits;
    c_.on_compile_part = [&](const tw_part& part) {
      if (!asks) return;
      limits.push_back(LimitOf(part, -1));
      EXPECT_EQ(LimitOf(part, 1), limits.back());
    };
    c_.compiled = 0;
    auto session = g_.NewSession();
    for (const std::vector<float>& feed : {std::vector<float>{1, -2, 3}, {1, 2, 3, 4, -5}}) {
      auto result = Step(*session, {{x_}, {y}, {}}, {Floats(feed)});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(Values((*result)[0]).size(), feed.size() - 1);
      EXPECT_EQ(Values((*result)[0])[0], 0);
    }
    EXPECT_EQ(c_.compiled, asks ? 2 : 1);
    EXPECT_THAT(limits, asks ? testing::ElementsAreArray({3, 5}) : testing::ElementsAreArray(std::vector<int>()));
  }
}

TEST_F(ClaimTest, WhatCompilersAreShownIsResolved) {
  c_.Register(&g_, "all");
  Edge k = g_.Const({2, 3}), a = g_.Op("Traced", {x_}, {.name = "a", .attrs = {{"tag", AttrValue::Int(7)}}});
  const Node* mark = g_.Mark(1, {a.node});
  Edge y = g_.Op("Mul", {a, k}, {.name = "y", .controls = {mark}});
  bool seen = false;
  c_.claim = [&](const tw_part& part, tw_claims*) -> tw_status* {
    seen = true;
    EXPECT_EQ(part.size, sizeof(tw_part));
    EXPECT_EQ(part.n_nodes, 3u);
    EXPECT_EQ(part.n_in, 2u);  // x, and the constant
    const tw_part_node &first = *part.nodes[0], &last = *part.nodes[2];
    const tw_attr* tag = tw_find_attr(first.attrs, first.n_attrs, TW_S("tag"));
    EXPECT_TRUE(tag && static_cast<const int64_t*>(tag->data)[0] == 7);
    EXPECT_EQ(last.in[0].node, 0);
    EXPECT_EQ(last.in[1].node, -1);
    EXPECT_EQ(last.value[0], nullptr);
    EXPECT_TRUE(last.value[1] && static_cast<const float*>(last.value[1]->data)[1] == 3);
    EXPECT_EQ(last.shapes[2].dims[0], 2);
    EXPECT_EQ(last.types[2], uint32_t{TW_FLOAT});
    EXPECT_EQ(last.n_after, 1u);
    EXPECT_EQ(NameOf(*part.nodes[last.after[0]]), mark->name());
    EXPECT_TRUE(part.nodes[last.after[0]]->flags & TW_PART_NODE_STATEFUL);
    EXPECT_EQ(part.n_out, 1u);
    EXPECT_EQ(part.out[0].node, 2);
    return nullptr;
  };
  Compile({{x_}, {y}, {}}, {Shape({2})});
  EXPECT_TRUE(seen);
}

TEST_F(ClaimTest, WhatTouchesFilesOrBlocksIsNotShown) {
  c_.Register(&g_, "all");
  c_.claim = Take({});
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("SaveAs", {a}, {.name = "b", .attrs = {{"prefix", AttrValue::String("none")}}});
  Edge c = g_.Op("GatedAside", {b}, {.name = "c"}), d = g_.Op("Neg", {c}, {.name = "d"});
  Compile({{x_}, {d}, {}}, {Shape({2})});
  EXPECT_THAT(c_.shown, ElementsAre("a", "d"));
}

// ---- Sets that cannot become one node ----

TEST_F(ClaimTest, APathThatLeavesAndComesBackIsRefused) {
  c_.Register(&g_, "some");
  c_.claim = Take({"a", "c"});
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("Next", {a}, {.name = "b"}), c = g_.Op("Add", {a, b}, {.name = "c"});
  auto p = Compile({{x_}, {c}, {}}, {Shape({2})});
  EXPECT_THAT(Names(*p), ElementsAre("a", "b", "c"));
  ASSERT_EQ(p->notes.claims.size(), 1u);
  EXPECT_EQ(p->notes.claims[0].refused, "a path leaves the set and comes back, by way of 'b'");
  EXPECT_THAT(Run(c, {1, 2}), ElementsAre(-1, -3));
  EXPECT_EQ(c_.compiled, 0);
}

TEST_F(ClaimTest, APathOfControlEdgesCounts) {
  c_.Register(&g_, "some");
  c_.claim = Take({"a", "c"});
  Edge a = g_.Op("Neg", {x_}, {.name = "a"});
  const Node* mark = g_.Mark(5, {a.node});
  Edge c = g_.Op("Next", {x_}, {.name = "c", .controls = {mark}});
  auto p = Compile({{x_}, {a, c}, {}}, {Shape({2})});
  EXPECT_THAT(p->notes.claims[0].refused, HasSubstr("by way of '" + mark->name() + "'"));
}

TEST_F(ClaimTest, ASetThatNobodyReadsIsLeft) {
  c_.Register(&g_, "some");
  c_.claim = Take({"a", "b"});
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("Next", {a}, {.name = "b"});
  Edge c = g_.Op("Next", {x_}, {.name = "c", .controls = {b.node}});
  auto p = Compile({{x_}, {c}, {}}, {Shape({2})});
  EXPECT_EQ(p->notes.claims[0].refused, "nobody reads what it makes");
  EXPECT_EQ(c_.compiled, 0);
  EXPECT_THAT(Run(c, {1, 2}, {}), ElementsAre(2, 3));
}

TEST_F(ClaimTest, TwoSetsThatWaitForEachOtherAreNotBothTaken) {
  c_.Register(&g_, "some");
  c_.claim = [](const tw_part& part, tw_claims* to) -> tw_status* {
    if (tw_status* s = Take({"a1", "a2"}, 2)(part, to)) return s;
    return Take({"b1", "b2"}, 1)(part, to);
  };
  Edge a1 = g_.Op("Neg", {x_}, {.name = "a1"}), b1 = g_.Op("Next", {x_}, {.name = "b1"});
  Edge a2 = g_.Op("Neg", {b1}, {.name = "a2"}), b2 = g_.Op("Next", {a1}, {.name = "b2"});
  auto p = Compile({{x_}, {a2, b2}, {}}, {Shape({2})});
  EXPECT_THAT(Names(*p), UnorderedElementsAre("a1+a2", "b1", "b2"));
  ASSERT_EQ(p->notes.claims.size(), 2u);
  EXPECT_EQ(p->notes.claims[0].refused, "");
  EXPECT_THAT(p->notes.claims[1].refused, HasSubstr("a path leaves the set"));
}

TEST_F(ClaimTest, OfSetsThatOverlapTheHigherPriorityWinsThenTheLowerId) {
  TestCompiler other;
  c_.Register(&g_, "one", true, false, "org.test.b");
  other.Register(&g_, "two", true, false, "org.test.a");
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("Next", {a}, {.name = "b"}), c = g_.Op("Neg", {b}, {.name = "c"});
  c_.claim = Take({"a", "b"}, 1);
  other.claim = Take({"b", "c"}, 1);
  EXPECT_THAT(Names(*Compile({{x_}, {c}, {}}, {Shape({2})})), ElementsAre("a", "b+c"));  // the lower id
  c_.claim = Take({"a", "b"}, 2);
  auto p = Compile({{x_}, {c}, {}}, {Shape({2})});
  EXPECT_THAT(Names(*p), ElementsAre("a+b", "c"));
  EXPECT_EQ(p->notes.claims[1].refused, "'b' is in a part of 'one' already");
  other.on_compile = c_.on_compile = [] { return Fail(TW_UNIMPLEMENTED, "no"); };
  EXPECT_THAT(Names(*Compile({{x_}, {c}, {}}, {Shape({2})})), ElementsAre("a", "b", "c"));
  other.on_compile = nullptr;  // nodes that the first compiler could not compile are free again
  EXPECT_THAT(Names(*Compile({{x_}, {c}, {}}, {Shape({2})})), ElementsAre("a", "b+c"));
}

TEST_F(ClaimTest, RandomSetsOfRandomGraphsChangeNoResult) {
  size_t parts = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    TestGraph g(SharedRuntimeOf(g_.graph()));
    RandomGraph random(&g, seed, {.nodes = 60, .views = true, .dynamic = true, .elsewhere = false});
    std::mt19937_64 dice(seed);
    TestCompiler c;
    c.Register(&g, "random", seed % 2 == 0, false, "org.test.r" + std::to_string(seed));
    c.claim = [&](const tw_part& part, tw_claims* to) -> tw_status* {
      for (int k = 0; k < 12; ++k) {
        std::vector<uint32_t> set;
        const uint32_t start = uint32_t(dice() % part.n_nodes);
        for (uint32_t i = start; i < part.n_nodes && set.size() < 6; ++i) {
          const std::string op = OpOf(*part.nodes[i]);
          const bool can = op == "Add" || op == "Mul" || op == "Neg" || op == "Next";
          const tw_shape& out = part.nodes[i]->shapes[part.nodes[i]->n_in];
          if (can && Shape(out).known() && dice() % 3 == 0) set.push_back(i);
        }
        if (set.empty()) continue;
        if (tw_status* s = to->take(to, set.data(), uint32_t(set.size()), int32_t(dice() % 3))) return s;
      }
      return nullptr;
    };
    for (const char* engine : {"fixed", "counted"}) {
      auto session = g.NewSession({{"engine", engine}});
      for (int twice = 0; twice < 2; ++twice) {
        auto result = Step(*session, random.spec(), random.Feeds());
        ASSERT_TRUE(result.ok()) << result.status();
        const auto want = random.Expected();
        for (size_t k = 0; k < want.size(); ++k) ASSERT_EQ(Values((*result)[k]), want[k]) << "seed " << seed << ", fetch " << k;
      }
    }
    parts += size_t(c.compiled);
    EXPECT_EQ(c.compiled, c.destroyed);
    g.runtime().registry().Remove("org.test.r" + std::to_string(seed));
  }
  EXPECT_GT(parts, 100u);
}

// ---- State ----

TEST_F(ClaimTest, NodesWithStateKeepTheirOrderAndOpenTheirVariables) {
  c_.Register(&g_, "all");
  c_.claim = Take({"Put", "Get", "Next"});
  Edge v = g_.Op("Box", {}, {.name = "v", .attrs = {{"key", AttrValue::String("claimed")}, {"shape", AttrValue::OfShape(Shape({2}))}}});
  Edge first = g_.Op("Put", {v, x_}, {.name = "first"});
  Edge old = g_.Op("Get", {v}, {.name = "old", .controls = {first.node}});
  Edge more = g_.Op("Next", {old}, {.name = "more"});
  Edge second = g_.Op("Put", {v, more}, {.name = "second"});
  Edge now = g_.Op("Get", {v}, {.name = "now", .controls = {second.node}});
  auto session = g_.NewSession({{"compilers", "off"}});
  ASSERT_TRUE(Step(*session, {{x_}, {}, {first.node}}, {Floats({0, 0})}).ok());
  auto compiled = g_.NewSession();
  auto result = Step(*compiled, {{x_}, {now}, {}}, {Floats({4, 5})});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Values((*result)[0]), ElementsAre(5, 6));
  EXPECT_EQ(c_.compiled, 1);
}

// ---- Other shapes ----

TEST_F(ClaimTest, OnePlanServesShapesThatPrepareAgreesTo) {
  c_.Register(&g_, "all");
  c_.claim = Take({"Neg", "Next"});
  Edge y = g_.Op("Next", {g_.Op("Neg", {x_})});
  auto session = g_.NewSession();
  for (size_t n : {3u, 5u, 0u, 3u}) {
    auto result = Step(*session, {{x_}, {y}, {}}, {Floats(std::vector<float>(n, 1))});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Values((*result)[0]), std::vector<float>(n, 0));
  }
  EXPECT_EQ(c_.compiled, 1);
  EXPECT_EQ(session->Report().plans.plans, 1u);
}

TEST_F(ClaimTest, WithoutPrepareOtherShapesAreCompiledAnewAndInTheEndOnceForAll) {
  c_.Register(&g_, "all", false);
  c_.claim = Take({"Neg", "Next"});
  Edge y = g_.Op("Next", {g_.Op("Neg", {x_})});
  auto session = g_.NewSession({{"max_shape_plans", "2"}});
  for (size_t n : {3u, 5u, 3u, 7u, 8u, 9u}) {
    auto result = Step(*session, {{x_}, {y}, {}}, {Floats(std::vector<float>(n, 1))});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Values((*result)[0]), std::vector<float>(n, 0));
  }
  EXPECT_EQ(c_.compiled, 3);  // for 3, for 5, for all others
}

TEST_F(ClaimTest, APartOfUnknownShapesIsJudgedByTheShapeRules) {
  c_.Register(&g_, "all");
  c_.claim = Take({"Add", "Neg"});
  Edge w = g_.Input(Shape({-1}), "w");
  Edge y = g_.Op("Neg", {g_.Op("Add", {x_, w}, {.name = "sum"})}, {.name = "end"});
  auto session = g_.NewSession({{"max_shape_plans", "1"}});
  auto step = [&](std::vector<float> a, std::vector<float> b) { return Step(*session, {{x_, w}, {y}, {}}, {Floats(a), Floats(b)}); };
  ASSERT_TRUE(step({1}, {1}).ok());
  c_.on_prepare = [] { return Fail(TW_UNIMPLEMENTED, "only one size"); };
  auto all = step({1, 2}, {3, 4});
  EXPECT_THAT(Text(all.status()), HasSubstr("only one size"));  // an executable for unknown sizes must serve all sizes
  c_.on_prepare = nullptr;
  all = step({1, 2, 3}, {3, 4, 5});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(Values((*all)[0]), ElementsAre(-4, -6, -8));
  EXPECT_THAT(Text(step({1, 2}, {3, 4, 5}).status()), HasSubstr("'sum'"));
}

// ---- Bad compilers ----

TEST_F(ClaimTest, WhateverACompilerDoesTheRunGoesOnWithoutIt) {
  c_.Register(&g_, "bad", true, false);
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), y = g_.Op("Next", {a}, {.name = "y"});
  const auto good = Take({"a", "y"});
  struct Case {
    TestCompiler::Claim claim;
    std::function<tw_status*()> compile, prepare;
    std::string part;
  };
  const Case cases[] = {
      {[](const tw_part&, tw_claims*) -> tw_status* { throw std::runtime_error("boom"); }, nullptr, nullptr, "claim: "},
      {[](const tw_part&, tw_claims*) { return Fail(TW_INTERNAL, "no idea"); }, nullptr, nullptr, "claim: no idea"},
      {[](const tw_part&, tw_claims* to) {
         const uint32_t wrong[] = {0, 99};
         return to->take(to, wrong, 2, 0);
       },
       nullptr, nullptr, "there is no node 99; there are 2"},
      {[](const tw_part&, tw_claims* to) -> tw_status* {
         const uint32_t twice[] = {1, 1};
         (void)FromC(to->take(to, twice, 2, 0));  // ignored
         return nullptr;
       },
       nullptr, nullptr, "node 1 stands twice in a set"},
      {[](const tw_part&, tw_claims* to) { return to->take(to, nullptr, 0, 0); }, nullptr, nullptr, "a set without nodes"},
      {[](const tw_part&, tw_claims* to) { return to->refuse(to, 5, TW_S("x")); }, nullptr, nullptr, "refuse: there is no node 5"},
      {good, [] { return Fail(TW_UNIMPLEMENTED, "not this"); }, nullptr, "2 nodes from 'a' on: not this; they run one by one"},
      {good, []() -> tw_status* { throw 7; }, nullptr, "2 nodes from 'a' on:"},
      {good, nullptr, [] { return Fail(TW_RESOURCE_EXHAUSTED, "too large"); }, "prepare: too large"},
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.part);
    log_.clear();
    c_.claim = bad.claim;
    c_.on_compile = bad.compile;
    c_.on_prepare = bad.prepare;
    EXPECT_THAT(Run(y, {1, 2}), ElementsAre(0, -1));
    ASSERT_EQ(log_.size(), 1u);
    EXPECT_THAT(log_[0], HasSubstr("graph compiler 'bad' of plugin 'org.test.c':"));
    EXPECT_THAT(log_[0], HasSubstr(bad.part));
    auto session = g_.NewSession({{"compilers", "require"}});
    EXPECT_THAT(Text(Step(*session, {{x_}, {y}, {}}, {Floats({1, 2})}).status()), HasSubstr("graph compiler 'bad'"));
  }
}

TEST_F(ClaimTest, AFailureOfAPartNamesItsNodes) {
  c_.Register(&g_, "fragile");
  c_.claim = Take({"a", "y"});
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), y = g_.Op("Next", {a}, {.name = "y"});
  auto session = g_.NewSession();
  auto step = [&] { return Step(*session, {{x_}, {y}, {}}, {Floats({1, 2})}).status(); };
  c_.on_execute = [] { return Fail(TW_INTERNAL, "it broke"); };
  EXPECT_EQ(Text(step()), "fragile 'a+y' on CPU:0: it broke (inputs: float[2])");
  c_.on_execute = []() -> tw_status* { throw std::runtime_error("boom"); };
  EXPECT_THAT(Text(step()), HasSubstr("fragile 'a+y' on CPU:0:"));
  c_.on_execute = [] { return static_cast<tw_status*>(nullptr); };  // leaves the output memory unchanged
  EXPECT_TRUE(step().ok());
  c_.on_execute = nullptr;
  EXPECT_TRUE(step().ok());
}

// ---- Reports ----

TEST_F(ClaimTest, ThePlanTellsWhatWasTakenAndLeftAndWhy) {
  c_.Register(&g_, "all");
  c_.claim = [](const tw_part& part, tw_claims* to) {
    if (tw_status* s = to->refuse(to, 2, TW_S("too odd"))) return s;
    return Take({"a", "b"})(part, to);
  };
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("Next", {a}, {.name = "b"}), c = g_.Op("Neg", {b}, {.name = "c"});
  auto session = g_.NewSession();
  auto callable = session->MakeCallable({{x_}, {c}, {}});
  const std::vector<Shape> shapes = {Shape({2})};
  const std::string json = *(*callable)->PlanText(&shapes);
  EXPECT_THAT(json,
              HasSubstr(R"("claims": [{"compiler": "all", "plugin": "org.test.c", "nodes": ["a", "b"], "loaded": false, "refused": ""}])"));
  EXPECT_THAT(json, HasSubstr(R"("left": [{"compiler": "all", "plugin": "org.test.c", "node": "c", "why": "too odd"}])"));
  EXPECT_THAT(json, HasSubstr(R"("part": ["a", "b"])"));
  EXPECT_THAT(json, HasSubstr(R"("name": "b")"));  // the value keeps its name
}

}  // namespace
}  // namespace thalweg
