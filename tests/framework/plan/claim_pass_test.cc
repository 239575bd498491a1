// Graph compilers: what they are shown, which sets become one node, what the node computes, and that a bad compiler costs nothing.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/stat.h>

#include "framework/json/json.h"
#include "framework/plan/artefacts.h"
#include "framework/plan/part.h"
#include "tests/framework/io/fake_files.h"
#include "tests/framework/plan/planning.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/random_graph.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using testing_support::Floats;
using testing_support::RandomGraph;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::TestRuntime;
using testing_support::TestStates;
using testing_support::Text;
using testing_support::Values;

tw_status* Fail(uint32_t code, std::string_view text) { return ToC(Status(absl::StatusCode(code), AbslView(text))); }
std::string OpOf(const tw_part_node& n) { return {n.op, n.op_len}; }
std::string NameOf(const tw_part_node& n) { return {n.name, n.name_len}; }

// A compiler that takes what a test says and computes it by looking at each node: Add, Mul, Neg and Next of float, Put and Get of
// variables.
class TestCompiler {
 public:
  using Claim = std::function<tw_status*(const tw_part&, tw_claims*)>;
  Claim claim;
  std::function<tw_status*()> on_compile, on_execute, on_prepare, on_load;
  std::function<bool(uint32_t out, uint32_t in)> inplace;
  std::string tag = "1", other_tag;  // other_tag: usable, too
  int compiled = 0, loaded = 0, destroyed = 0, prepared = 0;
  std::vector<std::string> shown;  // to claim, the last time

  // has_prepare, stores: optional entries.
  void Register(TestGraph* g, const std::string& name, bool has_prepare = true, bool stores = false,
                const std::string& plugin = "org.test.c") {
    tw_compiler_def d{};
    d.size = sizeof d;
    d.name = name.data();
    d.name_len = name.size();
    d.kind = "CPU";
    d.kind_len = 3;
    d.user = this;
    d.claim = [](const tw_host*, void* user, void*, const tw_part* part, tw_claims* to) {
      auto* self = static_cast<TestCompiler*>(user);
      self->shown.clear();
      for (uint32_t i = 0; i < part->n_nodes; ++i) self->shown.push_back(NameOf(*part->nodes[i]));
      return self->claim(*part, to);
    };
    d.compile = [](const tw_compile_call* c, void** out) -> tw_status* {
      auto* self = static_cast<TestCompiler*>(c->user);
      ++self->compiled;
      if (self->on_compile) {
        if (tw_status* s = self->on_compile()) return s;
      }
      *out = new Program(self, *c->part);
      return nullptr;
    };
    d.execute = [](const tw_frame* f) {
      auto* p = static_cast<Program*>(f->state);
      return p->owner->on_execute ? p->owner->on_execute() : p->Run(f);
    };
    d.destroy = [](const tw_host*, void* state) {
      auto* p = static_cast<Program*>(state);
      ++p->owner->destroyed;
      delete p;
    };
    if (inplace) {
      d.inplace = [](const tw_host*, const void* state, uint32_t out, uint32_t in) {
        return uint32_t{static_cast<const Program*>(state)->owner->inplace(out, in)};
      };
    }
    if (has_prepare) {
      d.prepare = [](const tw_compile_call* c, void*, uint64_t* out) {
        auto* self = static_cast<TestCompiler*>(c->user);
        ++self->prepared;
        *out = 100;
        return self->on_prepare ? self->on_prepare() : nullptr;
      };
    }
    if (stores) {
      d.serialize = [](const tw_host*, const void* state, tw_sink* to) {
        const std::string text = static_cast<const Program*>(state)->text();
        return to->put(to, text.data(), text.size());
      };
      d.load = [](const tw_compile_call* c, tw_source* from, void** out) -> tw_status* {
        auto* self = static_cast<TestCompiler*>(c->user);
        std::string text;
        char some[7];
        for (uint64_t n = 1; n > 0; text.append(some, n)) {
          if (tw_status* s = from->get(from, some, sizeof some, &n)) return s;
        }
        auto made = std::make_unique<Program>(self, *c->part);
        if (text != made->text()) return Fail(TW_DATA_LOSS, "not what was written");
        if (self->on_load) {
          if (tw_status* s = self->on_load()) return s;
        }
        ++self->loaded;
        *out = made.release();
        return nullptr;
      };
      d.tag = [](const tw_host*, void* user, void*, tw_sink* to) {
        const std::string& text = static_cast<TestCompiler*>(user)->tag;
        return to->put(to, text.data(), text.size());
      };
      d.usable = [](const tw_host*, void* user, void*, const char* text, uint64_t len) {
        return uint32_t{std::string_view(text, len) == static_cast<TestCompiler*>(user)->other_tag};
      };
    }
    auto role = SealRole(&d);
    ASSERT_TRUE(role.ok()) << role.status();
    (*role)->plugin = plugin;
    (*role)->host = nullptr;
    Registration r;
    r.roles.push_back(*std::move(role));
    ASSERT_TRUE(g->runtime().registry().Commit(std::move(r)).ok());
  }

 private:
  struct Program {
    struct Row {
      std::string op;
      std::vector<tw_part_edge> in;
    };
    TestCompiler* owner;
    std::vector<Row> rows;
    std::vector<tw_part_edge> out;
    Program(TestCompiler* c, const tw_part& part) : owner(c), out(part.out, part.out + part.n_out) {
      for (uint32_t i = 0; i < part.n_nodes; ++i) {
        const tw_part_node& n = *part.nodes[i];
        rows.push_back({OpOf(n), {n.in, n.in + n.n_in}});
      }
    }
    std::string text() const {
      std::string all;
      for (const Row& r : rows) all += r.op + " ";
      return all;
    }
    tw_status* Run(const tw_frame* f) const {
      std::vector<std::vector<float>> value(rows.size());
      auto read = [&](const tw_part_edge& e) -> std::vector<float> {
        if (e.node >= 0) return value[size_t(e.node)];
        const auto* p = static_cast<const float*>(f->in[e.port]->data);
        return {p, p + f->in[e.port]->count};
      };
      for (size_t i = 0; i < rows.size(); ++i) {
        const Row& r = rows[i];
        if (r.op == "Put") {
          std::vector<float> v = read(r.in[1]);
          std::copy(v.begin(), v.end(), static_cast<float*>(f->in[r.in[0].port]->data));
          continue;
        }
        value[i] = read(r.in[0]);
        const std::vector<float> b = r.in.size() > 1 ? read(r.in[1]) : std::vector<float>();
        for (size_t k = 0; k < value[i].size(); ++k) {
          float& y = value[i][k];
          y = r.op == "Add" ? y + b[k] : r.op == "Mul" ? y * b[k] : r.op == "Neg" ? -y : r.op == "Next" ? y + 1 : y;
        }
      }
      for (size_t o = 0; o < out.size(); ++o) {
        const std::vector<float>& v = value[size_t(out[o].node)];
        if (f->out[o]->rank < 0) return Fail(TW_INTERNAL, "an output without memory");
        std::copy(v.begin(), v.end(), static_cast<float*>(f->out[o]->data));
      }
      return nullptr;
    }
  };
};

// All nodes of those names, or ops, as one set.
TestCompiler::Claim Take(std::set<std::string> names, int32_t priority = 0) {
  return [=](const tw_part& part, tw_claims* to) -> tw_status* {
    std::vector<uint32_t> set;
    for (uint32_t i = part.n_nodes; i-- > 0;) {
      if (names.count(NameOf(*part.nodes[i])) || names.count(OpOf(*part.nodes[i]))) set.push_back(i);
    }
    return set.empty() ? nullptr : to->take(to, set.data(), uint32_t(set.size()), priority);
  };
}

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

// ---- Sets that cannot be one ----

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
  other.on_compile = nullptr;  // what the first could not compile is free again
  EXPECT_THAT(Names(*Compile({{x_}, {c}, {}}, {Shape({2})})), ElementsAre("a", "b+c"));
}

TEST_F(ClaimTest, RandomSetsOfRandomGraphsChangeNoResult) {
  size_t parts = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    TestGraph g(g_.graph().runtime_ptr());
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
  EXPECT_THAT(Text(all.status()), HasSubstr("only one size"));  // compiled for sizes unknown, it must serve all
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
  c_.on_execute = [] { return static_cast<tw_status*>(nullptr); };  // leaves what it finds
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

// ---- What is kept ----

class ArtefactTest : public ClaimTest {
 protected:
  std::shared_ptr<Runtime> Cached() {
    RuntimeOptions options;
    options.threads = 1;
    options.load_plugins = false;
    options.compile_cache = folder_ / "cache";
    options.static_plugins = {{"test ops", testing_support::QueryTestOps}};
    return *Runtime::Create(options);
  }
  // Another process: a runtime, a graph and a compiler of its own.
  std::vector<float> RunAnew(TestCompiler* c, float factor = 1) {
    TestGraph g(Cached());
    c->claim = Take({"Neg", "Mul"});
    c->Register(&g, "kept", true, true);
    Edge x = g.Input(Shape({2}), "x"), y = g.Op("Mul", {g.Op("Neg", {x}, {.name = "n"}), g.Const({factor, 2})}, {.name = "y"});
    auto session = g.NewSession();
    auto result = Step(*session, {{x}, {y}, {}}, {Floats({1, 2})});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? Values((*result)[0]) : std::vector<float>();
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> all;
    for (auto& e : std::filesystem::directory_iterator(folder_ / "cache/parts")) all.push_back(e.path().string());
    return all;
  }
  test::TempFolder folder_;
};

TEST_F(ArtefactTest, WhatWasCompiledIsLoadedByOthers) {
  TestCompiler first, second, other;
  EXPECT_THAT(RunAnew(&first), ElementsAre(-1, -4));
  EXPECT_EQ(first.compiled, 1);
  ASSERT_EQ(Files().size(), 1u);
  struct stat st;
  ASSERT_EQ(stat(Files()[0].c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  EXPECT_THAT(RunAnew(&second), ElementsAre(-1, -4));
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.loaded, 1);
  EXPECT_EQ(second.destroyed, 1);
  EXPECT_THAT(RunAnew(&other, 3), ElementsAre(-3, -4));  // another constant is another part
  EXPECT_EQ(other.compiled, 1);
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(ArtefactTest, AnotherTagIsUsedOnlyIfTheCompilerSaysSo) {
  TestCompiler first, second, third;
  RunAnew(&first);
  second.tag = third.tag = "2";
  third.other_tag = "1";
  RunAnew(&second);
  EXPECT_EQ(second.compiled, 1);
  EXPECT_EQ(Files().size(), 2u);
  std::filesystem::remove_all(folder_ / "cache");
  RunAnew(&first);
  RunAnew(&third);
  EXPECT_EQ(third.compiled, 0);
  EXPECT_EQ(third.loaded, 1);
}

TEST_F(ArtefactTest, ATornForeignOrRefusedFileIsWrittenAnew) {
  TestCompiler first;
  RunAnew(&first);
  const std::string file = Files()[0], whole = test::Slurp(file);
  std::vector<std::string> bad = {"", "x", whole.substr(0, whole.size() - 1), whole.substr(0, 10), whole + "x"};
  for (size_t at = 0; at < whole.size(); at += 13) {
    bad.push_back(whole);
    bad.back()[at] = char(bad.back()[at] ^ 0x10);
  }
  for (const std::string& bytes : bad) {
    test::Spill(file, bytes);
    TestCompiler c;
    EXPECT_THAT(RunAnew(&c), ElementsAre(-1, -4));
    EXPECT_EQ(c.compiled, 1);
    EXPECT_EQ(test::Slurp(file), whole);
  }
  TestCompiler refuses;
  refuses.on_load = [] { return Fail(TW_DATA_LOSS, "no"); };
  RunAnew(&refuses);
  EXPECT_EQ(refuses.compiled, 1);
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);  // others could have written it
  TestCompiler wary;
  RunAnew(&wary);
  EXPECT_EQ(wary.compiled, 1);
  struct stat st;
  ASSERT_EQ(stat(file.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  std::filesystem::rename(file, folder_ / "elsewhere");
  std::filesystem::create_symlink(folder_ / "elsewhere", file);
  TestCompiler through;
  RunAnew(&through);
  EXPECT_EQ(through.compiled, 1);
  EXPECT_FALSE(std::filesystem::is_symlink(file));
}

TEST_F(ArtefactTest, NoByteOfAFileMayBeAnother) {
  auto cache = *ArtefactCache::Open(folder_ / "cache");
  const ArtefactKey key{"org.test/c", "a part", "1"};
  auto read = [&] { return cache->Read(key, [](std::string_view) { return true; }); };
  ASSERT_TRUE(cache->Write(key, "the program").ok());
  EXPECT_EQ(*read(), "the program");
  EXPECT_TRUE(absl::IsNotFound(cache->Read({"org.test/c", "another part", "1"}, [](std::string_view) { return true; }).status()));
  const std::string file = Files()[0], whole = test::Slurp(file);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = char(bytes[at] ^ 1);
    test::Spill(file, bytes);
    EXPECT_TRUE(absl::IsNotFound(read().status())) << "byte " << at;
  }
  test::Spill(file, whole);
  EXPECT_TRUE(read().ok());
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(absl::IsNotFound(read().status()));
}

TEST_F(ArtefactTest, AFolderThatOthersMayWriteToIsNotUsed) {
  std::filesystem::create_directory(folder_ / "cache");
  ASSERT_EQ(chmod((folder_ / "cache").c_str(), 0777), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(ArtefactCache::Open(folder_ / "cache").status()));
  TestCompiler c;
  EXPECT_THAT(RunAnew(&c), ElementsAre(-1, -4));
  EXPECT_EQ(c.compiled, 1);
  EXPECT_THAT(Files(), IsEmpty());
}

}  // namespace
}  // namespace thalweg
