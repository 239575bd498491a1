// Graph rewriters: what they see, substitutions that are applied and those that are refused, the
// results of rewritten plans, and faulty rewriters.
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/runtime_of.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/planner/test_rewriter.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/random_graph.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::At;
using testing_support::ClearJournal;
using testing_support::Fail;
using testing_support::Floats;
using testing_support::Journal;
using testing_support::NameOf;
using testing_support::OpOf;
using testing_support::RandomGraph;
using testing_support::Step;
using testing_support::Substitution;
using testing_support::TestGraph;
using testing_support::TestRewriter;
using testing_support::TestStates;
using testing_support::Text;
using testing_support::Values;

class RewriteTest : public testing::Test {
 protected:
  RewriteTest() {
    g_.runtime().SetLog(
        [](void* arg, uint32_t level, const char* text, uint64_t len) {
          if (level >= 2) static_cast<std::vector<std::string>*>(arg)->emplace_back(text, len);
        },
        &log_, 0);
    r_.Register(&g_);
  }
  std::vector<std::string> Ops(const std::vector<Edge>& fetches, const std::vector<Shape>& shapes = {}, const PlanOptions& options = {},
                               std::vector<const Node*> targets = {}) {
    auto plan = CompilePlan(g_.graph(), {{x_}, fetches, std::move(targets)}, shapes.empty() ? std::vector<Shape>{Shape({2})} : shapes,
                            options, &states_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    std::vector<std::string> all;
    if (!plan.ok()) return all;
    for (const PlanNode& n : (*plan)->nodes) all.push_back(n.run.node->op().name);
    notes_ = (*plan)->notes;
    return all;
  }
  std::vector<float> Run(Edge fetch, const std::vector<float>& feed, const std::map<std::string, std::string>& options = {}) {
    auto session = g_.NewSession(options);
    auto result = Step(*session, {{x_}, {fetch}, {}}, {Floats(feed)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? Values((*result)[0]) : std::vector<float>();
  }
  // Makes the plan of y = Next(Neg(x)) with one substitution, and returns its refusal.
  std::string Refusal(std::function<void(const tw_part&, Substitution*)> fill) {
    if (!y_.node) y_ = g_.Op("Next", {g_.Op("Neg", {x_}, {.name = "a"})}, {.name = "y"});
    std::string said;
    r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
      Substitution s(part);
      fill(part, &s);
      said = Text(FromC(s.Send(to)));
      return nullptr;
    };
    EXPECT_THAT(Ops({y_}), ElementsAre("Neg", "Next"));
    EXPECT_EQ(r_.calls, ++refusals_);
    if (notes_.rewrites.size() != 1 || notes_.rewrites[0].refused.empty()) ADD_FAILURE() << "the plan has no note of it";
    return said;
  }

  TestGraph g_{2};
  TestStates states_{&g_.runtime()};
  TestRewriter r_;
  Edge x_ = g_.Input(Shape({-1}), "x"), y_;
  PlanNotes notes_;
  std::vector<std::string> log_;
  int refusals_ = 0;
};

// Next(Neg(v)) becomes 1 - v: one product and one sum with constants of the value's shape.
tw_status* Fuse(const tw_part& part, tw_rewriting* to) {
  for (uint32_t i = 0; i < part.n_nodes; ++i) {
    const tw_part_node& next = *part.nodes[i];
    if (OpOf(next) != "Next" || next.in[0].node < 0 || OpOf(*part.nodes[next.in[0].node]) != "Neg") continue;
    const tw_shape& shape = next.shapes[1];
    if (shape.rank != 1 || shape.dims[0] < 0) continue;
    const auto neg = uint32_t(next.in[0].node);
    Substitution s(part, "1 - x");
    const int32_t less = s.Constant(std::vector<float>(size_t(shape.dims[0]), -1)),
                  more = s.Constant(std::vector<float>(size_t(shape.dims[0]), 1));
    const int32_t product = s.Add("Mul", {part.nodes[neg]->in[0], {less, 0}});
    const int32_t sum = s.Add("Add", {{product, 0}, {more, 0}});
    s.Goes({neg, i}).Stands({sum, 0}, {int32_t(i), 0}).Stands({product, 0}, {int32_t(neg), 0});
    if (tw_status* status = s.Send(to)) return status;
  }
  return nullptr;
}

// ---- Substitutions ----

TEST_F(RewriteTest, APatternBecomesOtherNodesWithTheSameResult) {
  r_.rewrite = Fuse;
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), y = g_.Op("Next", {a}, {.name = "y"}), z = g_.Op("Neg", {y}, {.name = "z"});
  EXPECT_THAT(Ops({z}), ElementsAre("Mul", "Add", "Neg"));
  EXPECT_EQ(r_.calls, 2);                             // the second time it finds nothing
  EXPECT_THAT(r_.shown, ElementsAre("a", "a", "z"));  // new nodes have the name of the first node that went
  ASSERT_EQ(notes_.rewrites.size(), 1u);
  EXPECT_EQ(notes_.rewrites[0].rule, "1 - x");
  EXPECT_THAT(notes_.rewrites[0].added, ElementsAre("Const", "Const", "Mul", "Add"));
  EXPECT_EQ(notes_.rewrites[0].nodes, (std::vector<const Node*>{a.node, y.node}));
  for (const char* engine : {"fixed", "counted"}) {
    EXPECT_THAT(Run(z, {1, 5}, {{"engine", engine}}), ElementsAre(0, 4));
    EXPECT_THAT(Run(y, {1, 5}, {{"engine", engine}}), ElementsAre(0, -4));
    EXPECT_THAT(Run(a, {1, 5}, {{"engine", engine}}), ElementsAre(-1, -5));
  }
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(RewriteTest, ValuesThatAreFetchedInsideThePatternAreStoodForToo) {
  r_.rewrite = Fuse;
  Edge a = g_.Op("Neg", {x_}), y = g_.Op("Next", {a});
  EXPECT_THAT(Ops({a, y}), ElementsAre("Mul", "Add"));
  auto session = g_.NewSession();
  auto result = Step(*session, {{x_}, {a, y, a}, {}}, {Floats({3})});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Values((*result)[0]), ElementsAre(-3));
  EXPECT_THAT(Values((*result)[1]), ElementsAre(-2));
  EXPECT_THAT(Values((*result)[2]), ElementsAre(-3));
}

TEST_F(RewriteTest, ARuleBuildsOnTheResultOfAnother) {
  // Two Next become one Add; two Add of constants become one. Eight Next need three rounds and more.
  r_.rewrite = [](const tw_part& part, tw_rewriting* to) -> tw_status* {
    std::set<int32_t> gone;
    for (uint32_t i = 0; i < part.n_nodes; ++i) {
      const tw_part_node& n = *part.nodes[i];
      const int32_t from = n.in[0].node;
      if (from < 0 || gone.count(from)) continue;
      const tw_part_node& p = *part.nodes[from];
      Substitution s(part, OpOf(n));
      int32_t sum = -1;
      if (OpOf(n) == "Next" && OpOf(p) == "Next") {
        sum = s.Add("Add", {p.in[0], {s.Constant({2}), 0}});
      } else if (OpOf(n) == "Add" && OpOf(p) == "Add" && n.value[1] && p.value[1]) {
        const float both = *static_cast<const float*>(n.value[1]->data) + *static_cast<const float*>(p.value[1]->data);
        sum = s.Add("Add", {p.in[0], {s.Constant({both}), 0}});
      }
      if (sum < 0) continue;
      s.Goes({uint32_t(from), i}).Stands({sum, 0}, {int32_t(i), 0});
      if (tw_status* status = s.Send(to)) return status;
      gone.insert({from, int32_t(i)});
    }
    return nullptr;
  };
  Edge y = x_;
  for (int k = 0; k < 8; ++k) y = g_.Op("Next", {y});
  EXPECT_THAT(Ops({y}, {Shape({1})}), ElementsAre("Add"));
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_THAT(Run(y, {5}), ElementsAre(13));
}

TEST_F(RewriteTest, ARewriterThatNeverEndsIsAskedSixteenTimes) {
  r_.rewrite = [](const tw_part& part, tw_rewriting* to) {
    const tw_part_node& n = *part.nodes[0];
    Substitution s(part);
    const int32_t twin = s.Add(OpOf(n), {n.in[0]});
    return s.Goes({0}).Stands({twin, 0}, {0, 0}).Send(to);
  };
  EXPECT_THAT(Ops({g_.Op("Neg", {x_})}), ElementsAre("Neg"));
  EXPECT_EQ(r_.calls, 16);
}

TEST_F(RewriteTest, ALaterSubstitutionOfACallMeansWhatStandsForAValue) {
  r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
    if (r_.calls > 1) return nullptr;
    const uint32_t a = At(part, "a"), y = At(part, "y");
    Substitution first(part), second(part);
    const int32_t sum = first.Add("Add", {part.nodes[a]->in[0], part.nodes[a]->in[0]});
    if (tw_status* s = first.Goes({a}).Stands({sum, 0}, {int32_t(a), 0}).Send(to)) return s;
    const int32_t neg = second.Add("Neg", {{int32_t(a), 0}});  // a went
    return second.Goes({y}).Stands({neg, 0}, {int32_t(y), 0}).Send(to);
  };
  Edge y = g_.Op("Next", {g_.Op("Mirror", {x_}, {.name = "a"})}, {.name = "y"});
  EXPECT_THAT(Ops({y}), ElementsAre("Add", "Neg"));
  EXPECT_THAT(Run(y, {1, 2}), ElementsAre(3, 2));  // another plan, in which the rewriter does nothing
  r_.calls = 0;
  EXPECT_THAT(Run(y, {1, 2, 3}), ElementsAre(-2, -4, -6));
}

TEST_F(RewriteTest, AValueOrAnInputMayStandForAnother) {
  r_.rewrite = [](const tw_part& part, tw_rewriting* to) -> tw_status* {
    for (uint32_t i = 0; i < part.n_nodes; ++i) {
      if (OpOf(*part.nodes[i]) != "Traced") continue;
      Substitution s(part, "nothing is traced");
      s.Goes({i}).Stands(part.nodes[i]->in[0], {int32_t(i), 0});
      if (tw_status* status = s.Send(to)) return status;
    }
    return nullptr;
  };
  const auto traced = [&](Edge e, int64_t tag) { return g_.Op("Traced", {e}, {.attrs = {{"tag", AttrValue::Int(tag)}}}); };
  Edge y = traced(g_.Op("Neg", {traced(traced(x_, 1), 2)}), 3);
  EXPECT_THAT(Ops({y}), ElementsAre("Neg"));
  ClearJournal();
  EXPECT_THAT(Run(y, {2}), ElementsAre(-2));
  EXPECT_THAT(Run(traced(x_, 4), {2}), ElementsAre(2));  // the feed is fetched
  EXPECT_THAT(Journal(), IsEmpty());
}

// ---- Order and state ----

TEST_F(RewriteTest, AddedNodesWaitAndAreWaitedForLikeTheNodesThatWent) {
  r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
    if (r_.calls > 1) return nullptr;
    const uint32_t a = At(part, "a");
    Substitution s(part);
    const int64_t tag = 7;
    const int32_t traced = s.Add("Traced", {part.nodes[a]->in[0]}, {{TW_S("tag"), &tag, TW_ATTR_INT, 1, 0, 0}});
    const int32_t neg = s.Add("Neg", {{traced, 0}});
    return s.Goes({a}).Stands({neg, 0}, {int32_t(a), 0}).Send(to);
  };
  const Node* before = g_.Mark(1);
  Edge a = g_.Op("Neg", {x_}, {.name = "a", .controls = {before}});
  const Node* after = g_.Mark(2, {a.node});
  auto session = g_.NewSession({{"threads", "2"}});
  ClearJournal();
  auto result = Step(*session, {{x_}, {a}, {after}}, {Floats({1})});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Values((*result)[0]), ElementsAre(-1));
  EXPECT_THAT(Journal(), ElementsAre(1, 7, 2));
}

TEST_F(RewriteTest, AnUpdateOfAVariableMayBecomeAnother) {
  Edge v = g_.Op("Box", {}, {.name = "v", .attrs = {{"key", AttrValue::String("rewritten")}, {"shape", AttrValue::OfShape(Shape({2}))}}});
  Edge put = g_.Op("Put", {v, x_}, {.name = "put"});
  Edge now = g_.Op("Get", {v}, {.name = "now", .controls = {put.node}});
  r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
    if (r_.calls > 1) return nullptr;
    const uint32_t i = At(part, "put");
    const tw_part_node& n = *part.nodes[i];
    EXPECT_EQ(n.flags, uint32_t{TW_PART_NODE_STATEFUL});
    EXPECT_EQ(n.types[0], uint32_t{TW_RESOURCE});
    Substitution s(part);
    const int32_t neg = s.Add("Neg", {n.in[1]});
    s.Add("Put", {n.in[0], {neg, 0}});
    return s.Goes({i}).Send(to);
  };
  auto session = g_.NewSession();
  auto result = Step(*session, {{x_}, {now}, {put.node}}, {Floats({4, 5})});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Values((*result)[0]), ElementsAre(-4, -5));
}

TEST_F(RewriteTest, ATargetThatGoesRunsAsWhatCame) {
  const Node* first = g_.Mark(1);
  const Node* mark = g_.Mark(2, {first});
  r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
    if (r_.calls > 1) return nullptr;
    Substitution s(part);
    const int64_t tag = 9;
    s.Add("Mark", {}, {{TW_S("tag"), &tag, TW_ATTR_INT, 1, 0, 0}});
    for (uint32_t i = 0; i < part.n_nodes; ++i) {
      if (part.nodes[i]->n_after) s.Goes({i});
    }
    return s.Send(to);
  };
  auto session = g_.NewSession();
  ClearJournal();
  ASSERT_TRUE(Step(*session, {{}, {}, {mark}}).ok());
  EXPECT_THAT(Journal(), ElementsAre(1, 9));
}

// ---- Shapes ----

TEST_F(RewriteTest, OneRewrittenPlanServesOtherShapes) {
  r_.rewrite = [](const tw_part& part, tw_rewriting* to) -> tw_status* {
    for (uint32_t i = 0; i < part.n_nodes; ++i) {
      if (OpOf(*part.nodes[i]) != "Neg") continue;
      Substitution s(part);
      const int32_t first = s.Add("Mirror", {part.nodes[i]->in[0]}), second = s.Add("Mirror", {{first, 0}});
      s.Goes({i}).Stands({second, 0}, {int32_t(i), 0});
      if (tw_status* status = s.Send(to)) return status;
    }
    return nullptr;
  };
  Edge y = g_.Op("Add", {g_.Op("Neg", {x_}), x_});
  auto session = g_.NewSession();
  for (size_t n : {3u, 5u, 0u, 3u}) {
    auto result = Step(*session, {{x_}, {y}, {}}, {Floats(std::vector<float>(n, 2))});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Values((*result)[0]), std::vector<float>(n, 4));
  }
  EXPECT_EQ(session->Report().plans.plans, 1u);
}

TEST_F(RewriteTest, RandomSubstitutionsInRandomGraphsChangeNoResult) {
  size_t applied = 0, refused = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    TestGraph g(SharedRuntimeOf(g_.graph()));
    RandomGraph random(&g, seed, {.nodes = 60, .views = true, .dynamic = true, .elsewhere = false});
    std::mt19937_64 dice(seed);
    // Replaces random sets of nodes by the same nodes, made anew, in one substitution.
    r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
      std::vector<bool> gone(part.n_nodes);
      for (int k = 0; k < 12; ++k) {
        std::map<int32_t, int32_t> twin;
        Substitution s(part);
        std::vector<uint32_t> set;
        for (auto i = uint32_t(dice() % part.n_nodes); i < part.n_nodes && set.size() < 5; ++i) {
          const std::string op = OpOf(*part.nodes[i]);
          const bool can = op == "Add" || op == "Mul" || op == "Neg" || op == "Next" || op == "Two" || op == "Mirror" || op == "Flat";
          if (!can || gone[i] || dice() % 3) continue;
          const tw_part_node& n = *part.nodes[i];
          std::vector<tw_part_edge> in(n.in, n.in + n.n_in);
          for (tw_part_edge& e : in) {
            if (auto it = twin.find(e.node); it != twin.end()) e.node = it->second;
          }
          if (op == "Add" && dice() % 2) std::swap(in[0], in[1]);
          twin[int32_t(i)] = s.Add(op, in);
          for (uint32_t o = 0; o < n.n_out; ++o) s.Stands({twin[int32_t(i)], o}, {int32_t(i), o});
          set.push_back(i);
        }
        if (set.empty()) continue;
        Status status = FromC(s.Goes(set).Send(to));
        if (status.ok()) {
          ++applied;
          for (uint32_t i : set) gone[i] = true;
        } else {
          EXPECT_THAT(Text(status), HasSubstr("would wait for themselves"));
          ++refused;
        }
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
  }
  EXPECT_GT(applied, 1000u);
  EXPECT_GT(refused, 0u);
  EXPECT_THAT(log_, IsEmpty());
}

// ---- Refusals ----

TEST_F(RewriteTest, BrokenRecordsAreRefusedAndChangeNothing) {
  const auto replace = [](const tw_part& part, Substitution* s, const std::string& op, std::vector<tw_part_edge> in,
                          std::vector<tw_attr> attrs = {}) {
    const uint32_t y = At(part, "y");
    const int32_t made = s->Add(op, std::move(in), std::move(attrs));
    s->Goes({y}).Stands({made, 0}, {int32_t(y), 0});
  };
  EXPECT_THAT(Refusal([](const tw_part&, Substitution*) {}), HasSubstr("no nodes go"));
  EXPECT_THAT(Refusal([](const tw_part&, Substitution* s) { s->Goes({7}); }), HasSubstr("there is no node 7; there are 2"));
  EXPECT_THAT(Refusal([](const tw_part&, Substitution* s) { s->Goes({1, 1}); }), HasSubstr("node 1 goes twice"));
  EXPECT_THAT(Refusal([](const tw_part& p, Substitution* s) { s->Goes({At(p, "y")}); }),
              HasSubstr("output 0 of 'y' is read by the program, but nothing stands for it"));
  EXPECT_THAT(Refusal([](const tw_part& p, Substitution* s) { s->Goes({At(p, "a")}); }),
              HasSubstr("output 0 of 'a' is read by 'y', but nothing stands for it"));
  EXPECT_THAT(Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Nonsense", {{-1, 0}}); }),
              HasSubstr("rule 'rule': added node 0: no loaded plugin defines the op 'Nonsense'"));
  EXPECT_THAT(Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Add", {{-1, 0}}); }), HasSubstr("added node 0:"));
  EXPECT_THAT(Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Neg", {{-1, 4}}); }), HasSubstr("the part has no input 4"));
  EXPECT_THAT(Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Neg", {{-2, 0}}); }), HasSubstr("the part has no input"));
  EXPECT_THAT(Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Neg", {{2, 0}}); }),
              HasSubstr("it reads node 2, which does not come before it"));
  EXPECT_THAT(Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Neg", {{int32_t(At(p, "y")), 0}}); }),
              HasSubstr("which goes"));
  EXPECT_THAT(Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Neg", {{int32_t(At(p, "a")), 3}}); }),
              HasSubstr("it reads output 3 of node 0, which has 1"));
  EXPECT_THAT(Refusal([](const tw_part& p, Substitution* s) { s->Goes({At(p, "y")}).Stands({-1, 0}, {int32_t(At(p, "a")), 0}); }),
              HasSubstr("value 0: node 0 does not go"));
  EXPECT_THAT(Refusal([](const tw_part& p, Substitution* s) { s->Goes({At(p, "y")}).Stands({-1, 0}, {int32_t(At(p, "y")), 2}); }),
              HasSubstr("node 1 has no output 2"));
  EXPECT_THAT(Refusal([](const tw_part& p, Substitution* s) {
                const auto y = int32_t(At(p, "y"));
                s->Goes({uint32_t(y)}).Stands({-1, 0}, {y, 0}).Stands({-1, 0}, {y, 0});
              }),
              HasSubstr("output 0 of 'y' is replaced twice"));
  const int64_t tag = 1;
  EXPECT_THAT(
      Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Neg", {{-1, 0}}, {{TW_S("tag"), &tag, TW_ATTR_INT, 1, 0, 0}}); }),
      HasSubstr("attribute 'tag' with value 1 is not one of op Neg"));
  EXPECT_THAT(
      Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Neg", {{-1, 0}}, {{TW_S("tag"), nullptr, TW_ATTR_INT, 1, 0, 0}}); }),
      HasSubstr("attribute 'tag'"));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(RewriteTest, WhatCannotRunIsRefused) {
  const auto replace = [](const tw_part& part, Substitution* s, const std::string& op, std::vector<tw_attr> attrs = {}) {
    const uint32_t y = At(part, "y");
    const int32_t made = s->Add(op, {{-1, 0}}, std::move(attrs));
    s->Goes({y}).Stands({made, 0}, {int32_t(y), 0});
  };
  EXPECT_THAT(Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Nowhere"); }),
              HasSubstr("rule 'rule': added node 0 (Nowhere): "));
  EXPECT_THAT(Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Positive"); }),
              HasSubstr("output 0 of 'y' has shape [2]; what stands for it has [?]"));
  EXPECT_THAT(Refusal([](const tw_part& p, Substitution* s) {
                const uint32_t y = At(p, "y");
                s->Goes({y}).Stands({s->Constant({1, 2, 3}), 0}, {int32_t(y), 0});
              }),
              HasSubstr("output 0 of 'y' has shape [2]; what stands for it has [3]"));
  const int64_t tag = 1;
  EXPECT_THAT(Refusal([&](const tw_part& p, Substitution* s) { replace(p, s, "Phone", {{TW_S("tag"), &tag, TW_ATTR_INT, 1, 0, 0}}); }),
              HasSubstr("a rewriter may not add Phone, which acts outside the step"));
}

TEST_F(RewriteTest, AValueOfAnotherTypeCannotStandForOne) {
  Edge y = g_.Op("Neg", {x_}, {.name = "y"});
  std::string said;
  r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
    auto tensor = Tensor::Vector<int32_t>(TW_INT32, {3, 4});
    tw_tensor* handle = tensor->get();
    const uint32_t type = TW_INT32;
    Substitution s(part);
    const int32_t made =
        s.Add("Const", {}, {{TW_S("value"), &handle, TW_ATTR_TENSOR, 1, 0, 0}, {TW_S("dtype"), &type, TW_ATTR_TYPE, 1, 0, 0}});
    said = Text(FromC(s.Goes({0}).Stands({made, 0}, {0, 0}).Send(to)));
    return nullptr;
  };
  EXPECT_THAT(Ops({y}), ElementsAre("Neg"));
  EXPECT_THAT(said, HasSubstr("output 0 of 'y' is float; what stands for it is int32"));
}

TEST_F(RewriteTest, ANodeThatWouldWaitForItselfIsRefused) {
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("Next", {a}, {.name = "b"}), c = g_.Op("Add", {a, b}, {.name = "c"});
  std::string said;
  r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
    const auto first = int32_t(At(part, "a")), last = int32_t(At(part, "c"));
    Substitution s(part);
    const int32_t two = s.Add("Two", {{int32_t(At(part, "b")), 0}});
    said = Text(FromC(s.Goes({uint32_t(first), uint32_t(last)}).Stands({two, 0}, {first, 0}).Stands({two, 1}, {last, 0}).Send(to)));
    return nullptr;
  };
  EXPECT_THAT(Ops({c}), ElementsAre("Neg", "Next", "Add"));
  EXPECT_THAT(said, HasSubstr("the nodes that come would wait for themselves, by way of 'b'"));
}

TEST_F(RewriteTest, ANodeThatWouldWaitForItselfThroughAConstantIsRefused) {
  // The constant n follows from the shape of d, which nobody needs, and d reads what reads a.
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("Next", {a}, {.name = "b"});
  Edge n = g_.Op("CountOf", {g_.Op("Mirror", {b}, {.name = "d"})}, {.name = "n"}), z = g_.Op("Add", {b, n}, {.name = "z"});
  r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
    EXPECT_THAT(r_.shown, ElementsAre("a", "b", "z"));
    const auto old = int32_t(At(part, "a"));
    Substitution s(part);
    const int32_t sum = s.Add("Add", {part.nodes[old]->in[0], part.nodes[At(part, "z")]->in[1]});
    EXPECT_THAT(Text(FromC(s.Goes({uint32_t(old)}).Stands({sum, 0}, {old, 0}).Send(to))),
                HasSubstr("the nodes that come would wait for themselves, by way of 'n'"));
    return nullptr;
  };
  EXPECT_THAT(Ops({z}), ElementsAre("Neg", "Next", "Add"));
  EXPECT_THAT(Run(z, {1, 5}), ElementsAre(2, -2));
}

TEST_F(RewriteTest, ANodeThatWouldWaitForItselfThroughOneThatWentIsRefused) {
  // The constant n follows from the shape of m, which goes first and keeps its inputs.
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("Next", {a}, {.name = "b"}), m = g_.Op("Mirror", {b}, {.name = "m"});
  Edge n = g_.Op("CountOf", {m}, {.name = "n"}), z = g_.Op("Sum", {b, m, n}, {.name = "z"});
  r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
    const auto old = int32_t(At(part, "a"));
    const tw_part_edge x = part.nodes[old]->in[0];
    if (r_.calls == 1) {
      const auto first = int32_t(At(part, "m"));
      Substitution s(part);
      if (tw_status* status = s.Goes({uint32_t(first)}).Stands(x, {first, 0}).Send(to)) return status;
    }
    Substitution s(part);
    const int32_t sum = s.Add("Add", {x, part.nodes[At(part, "z")]->in[2]});
    EXPECT_THAT(Text(FromC(s.Goes({uint32_t(old)}).Stands({sum, 0}, {old, 0}).Send(to))),
                HasSubstr("the nodes that come would wait for themselves, by way of 'n'"));
    return nullptr;
  };
  EXPECT_THAT(Ops({z}), ElementsAre("Neg", "Next", "Sum"));
}

TEST_F(RewriteTest, WhatFollowsFromTheShapeOfANodeThatGoesMayBeRead) {
  // The constant n reads a, but only the shape of it, and the plan does not compute it again.
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), n = g_.Op("CountOf", {a}, {.name = "n"}), z = g_.Op("Add", {a, n}, {.name = "z"});
  r_.rewrite = [&](const tw_part& part, tw_rewriting* to) -> tw_status* {
    if (r_.calls % 2 == 0) return nullptr;
    const auto old = int32_t(At(part, "a"));
    Substitution s(part);
    const int32_t product = s.Add("Mul", {part.nodes[old]->in[0], part.nodes[At(part, "z")]->in[1]});
    return s.Goes({uint32_t(old)}).Stands({product, 0}, {old, 0}).Send(to);
  };
  auto session = g_.NewSession();
  for (const std::vector<float>& feed : {std::vector<float>{1, 5}, {1, 5, 2}}) {
    auto result = Step(*session, {{x_}, {z}, {}}, {Floats(feed)});
    ASSERT_TRUE(result.ok()) << result.status();
    const auto count = float(feed.size());
    std::vector<float> want;
    for (float v : feed) want.push_back(v * count + count);
    EXPECT_EQ(Values((*result)[0]), want);
  }
  EXPECT_THAT(log_, IsEmpty());
}

// ---- Rewriters ----

TEST_F(RewriteTest, AFailureIsLoggedAndThePlanRuns) {
  Edge y = g_.Op("Next", {g_.Op("Neg", {x_})});
  r_.rewrite = [](const tw_part&, tw_rewriting*) { return Fail(TW_INTERNAL, "lost its way"); };
  EXPECT_THAT(Run(y, {1}), ElementsAre(0));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("graph rewriter 'rules' of plugin 'org.test.w': lost its way")));
  r_.rewrite = [](const tw_part& part, tw_rewriting* to) -> tw_status* {
    if (tw_status* s = Fuse(part, to)) return s;
    throw 1;
  };
  EXPECT_THAT(Ops({y}), ElementsAre("Mul", "Add"));  // what it replaced stays
  EXPECT_EQ(log_.size(), 2u);
}

TEST_F(RewriteTest, NodesThatActOutsideTheStepAreNotShown) {
  r_.rewrite = [](const tw_part&, tw_rewriting*) -> tw_status* { return nullptr; };
  Edge phone = g_.Op("Phone", {x_}, {.name = "phone", .attrs = {{"tag", AttrValue::Int(1)}}});
  Edge y = g_.Op("Add", {g_.Op("Neg", {phone}, {.name = "a"}), g_.Op("Next", {g_.Const({1, 2})}, {.name = "known"})}, {.name = "y"});
  Ops({y});
  EXPECT_THAT(r_.shown, ElementsAre("a", "y"));
}

TEST_F(RewriteTest, RewritersRunInOrderUnlessTurnedOff) {
  TestRewriter other;
  other.Register(&g_, "other", "org.test.a");
  std::vector<int> order;
  other.rewrite = [&](const tw_part&, tw_rewriting*) -> tw_status* { return order.push_back(1), nullptr; };
  r_.rewrite = [&](const tw_part&, tw_rewriting*) -> tw_status* { return order.push_back(2), nullptr; };
  Edge y = g_.Op("Neg", {x_});
  Ops({y});
  EXPECT_THAT(order, ElementsAre(1, 2));
  EXPECT_THAT(Run(y, {1}, {{"disable_pass", "rewrite"}}), ElementsAre(-1));
  EXPECT_THAT(order, ElementsAre(1, 2));
  g_.runtime().registry().Remove("org.test.a");
}

TEST_F(RewriteTest, ThePlanTellsWhatWasReplacedAndKeptAndWhy) {
  r_.rewrite = [](const tw_part& part, tw_rewriting* to) -> tw_status* {
    if (tw_status* s = Fuse(part, to)) return s;
    if (Status s = FromC(to->refuse(to, 99, TW_S("?"))); s.ok()) ADD_FAILURE() << "there is no node 99";
    return to->refuse(to, part.n_nodes - 1, TW_S("too odd"));
  };
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), y = g_.Op("Next", {a}, {.name = "y"}), z = g_.Op("Mirror", {y}, {.name = "z"});
  auto session = g_.NewSession();
  auto callable = session->MakeCallable({{x_}, {z}, {}});
  const std::vector<Shape> shapes = {Shape({2})};
  const std::string json = *(*callable)->PlanText(&shapes);
  EXPECT_THAT(json, HasSubstr(R"("rewrites": [{"rewriter": "rules", "plugin": "org.test.w", "rule": "1 - x", "nodes": ["a", "y"], )"
                              R"("added": ["Const", "Const", "Mul", "Add"], "refused": ""}])"));
  EXPECT_THAT(json, HasSubstr(R"({"rewriter": "rules", "plugin": "org.test.w", "node": "z", "why": "too odd"})"));
}

}  // namespace
}  // namespace thalweg
