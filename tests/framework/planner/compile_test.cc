// The flat plan: kinds of values, memory in place, views, copies, order and engine.
#include <pthread.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/runtime_of.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/random_graph.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::FloatsOf;
using testing_support::RandomForest;
using testing_support::RandomGraph;
using testing_support::TestGraph;
using testing_support::TestStates;

constexpr uint64_t kGrain = 64;
uint64_t Rounded(uint64_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }

class CompileTest : public testing::Test {
 protected:
  std::unique_ptr<Plan> Compile(const Signature& s, const std::vector<Shape>& shapes, const PlanOptions& options = {}) {
    auto plan = CompilePlan(g_.graph(), s, shapes, options, &states_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *std::move(plan);
  }
  static std::vector<std::string> Ops(const Plan& p) {
    std::vector<std::string> all;
    for (const PlanNode& n : p.nodes) all.push_back(n.kind == PlanNode::kKernel ? n.run.node->op().name : "copy");
    return all;
  }
  Edge Chain(const std::string& op, int n) {
    Edge e = x_;
    for (int i = 0; i < n; ++i) e = g_.Op(op, {e});
    return e;
  }
  TestGraph g_;
  TestStates states_{&g_.runtime()};
  Edge x_ = g_.Input(Shape({-1}), "x");
};

TEST_F(CompileTest, AChainNeedsTwoBuffersOrOneInPlace) {
  Edge copies = g_.Op("Add", {Chain("Next", 100), x_}), in_place = g_.Op("Add", {Chain("Neg", 100), x_});
  for (const char* engine : {"fixed", "counted"}) {
    PlanOptions o;
    o.engine = engine;
    auto p = Compile({{x_}, {copies}, {}}, {Shape({1000})}, o);
    EXPECT_EQ(p->counted, o.engine == "counted");
    EXPECT_THAT(p->shapes->block_bytes, ElementsAre(2 * Rounded(4000)));
    EXPECT_EQ(p->shapes->unplanned_bytes, 100u * 4000);
    EXPECT_THAT(Compile({{x_}, {in_place}, {}}, {Shape({1000})}, o)->shapes->block_bytes, ElementsAre(Rounded(4000)));
  }
}

TEST_F(CompileTest, OnlyTheLastReaderWorksInPlace) {
  // `second` reads the same value later, so `first` must not overwrite it; `second` may.
  Edge v = g_.Op("Next", {x_}), first = g_.Op("Neg", {v}), second = g_.Op("Mul", {v, first}), end = g_.Op("Next", {second});
  auto p = Compile({{x_}, {end}, {}}, {Shape({1000})});
  ASSERT_THAT(Ops(*p), ElementsAre("Next", "Neg", "Mul", "Next"));
  auto offset = [&](size_t node) { return p->shapes->values[size_t(p->nodes[node].out[0])].offset; };
  EXPECT_NE(offset(0), offset(1));
  EXPECT_EQ(offset(2), offset(0));
  EXPECT_THAT(p->shapes->block_bytes, ElementsAre(2 * Rounded(4000)));
}

TEST_F(CompileTest, AValueReadTwiceByOneNodeIsNotOverwritten) {
  Edge v = g_.Op("Next", {x_}), square = g_.Op("Mul", {v, v}), end = g_.Op("Next", {square});
  auto p = Compile({{x_}, {end}, {}}, {Shape({1000})});
  EXPECT_NE(p->shapes->values[size_t(p->nodes[0].out[0])].offset, p->shapes->values[size_t(p->nodes[1].out[0])].offset);
}

TEST_F(CompileTest, SideBySideNothingIsOverwrittenThatMayStillBeRead) {
  // In fixed order the second Neg would be the last reader; with counted readers the first may run
  // after it.
  Edge v = g_.Op("Next", {x_}), a = g_.Op("Neg", {v}), b = g_.Op("Neg", {v});
  Edge c = g_.Op("Two", {b}), end = g_.Op("Add", {a, c});
  PlanOptions o;
  o.optimize = false;
  o.engine = "counted";
  auto p = Compile({{x_}, {end}, {}}, {Shape({1000})}, o);
  std::set<uint64_t> offsets;
  for (size_t i = 0; i < 3; ++i) offsets.insert(p->shapes->values[size_t(p->nodes[i].out[0])].offset);
  EXPECT_EQ(offsets.size(), 3u);
  o.engine = "fixed";
  p = Compile({{x_}, {end}, {}}, {Shape({1000})}, o);
  EXPECT_EQ(p->shapes->values[size_t(p->nodes[0].out[0])].offset, p->shapes->values[size_t(p->nodes[2].out[0])].offset);
}

TEST_F(CompileTest, ValuesHaveTheKindThatTheirUseAsksFor) {
  Edge planned = g_.Op("Next", {x_}), fetched = g_.Op("Next", {planned}), c = g_.Const(FloatsOf(Shape({4})));
  Edge held = g_.Op("Positive", {fetched}), end = g_.Op("Add", {fetched, c}), follows = g_.Op("Neg", {held});
  auto p = Compile({{x_}, {fetched, end, follows}, {}}, {Shape({4})});
  auto kind = [&](Edge e) {
    for (const PlanNode& n : p->nodes) {
      if (n.run.node == e.node) return int(p->values[size_t(n.out[0])].kind);
    }
    return -1;
  };
  EXPECT_EQ(kind(planned), PlanValue::kBlock);
  EXPECT_EQ(kind(fetched), PlanValue::kHeld);
  EXPECT_EQ(kind(held), PlanValue::kHeld);
  EXPECT_EQ(kind(follows), PlanValue::kHeld);
  EXPECT_EQ(p->values[size_t(p->feeds[0])].kind, PlanValue::kFeed);
  EXPECT_EQ(std::count_if(p->values.begin(), p->values.end(), [](const PlanValue& v) { return v.kind == PlanValue::kConst; }), 1);
}

TEST_F(CompileTest, ManySmallReadersOfOneArgumentLeaveItToTheLast) {
  // x + c + c + c, as a function with the arguments x and c. Only the nodes that free an argument
  // or return the result do more than call their kernels.
  const Edge c = g_.Input(Shape({-1}), "c");
  Edge y = x_;
  for (int i = 0; i < 5; ++i) y = g_.Op("Add", {y, c});
  Signature s{{x_, c}, {y}, {}};
  s.takes_feeds = true;
  const auto simple = [&](const Plan& p) {
    std::vector<bool> all;
    for (const PlanNode& n : p.nodes) all.push_back(n.simple);
    return all;
  };
  auto p = Compile(s, {Shape({400}), Shape({400})});
  EXPECT_THAT(simple(*p), ElementsAre(false, true, true, true, false));  // the first is the last to read x
  EXPECT_EQ(p->values[size_t(p->feeds[1])].readers, 1);
  EXPECT_THAT(p->nodes[4].held_in, ElementsAre(p->feeds[1]));
  // In parallel execution, no reader is known to be the last.
  PlanOptions o;
  o.engine = "counted";
  p = Compile(s, {Shape({400}), Shape({400})}, o);
  EXPECT_THAT(simple(*p), ElementsAre(false, false, false, false, false));
  EXPECT_EQ(p->values[size_t(p->feeds[1])].readers, 5);
}

TEST_F(CompileTest, SmallValuesOfAFunctionGoInAndOutByCopy) {
  // x, x + x, -(x + x), and its positive elements, whose number is known only at run time.
  const Edge twice = g_.Op("Add", {x_, x_}), minus = g_.Op("Neg", {twice}), end = g_.Op("Next", {minus}),
             positive = g_.Op("Positive", {minus});
  Signature s{{x_}, {x_, minus, end, positive}, {}};
  s.takes_feeds = true;
  auto p = Compile(s, {Shape({4})});
  const auto kind = [&](int32_t v) { return int(p->values[size_t(v)].kind); };
  std::vector<int> kinds;
  for (int32_t v : p->fetches) kinds.push_back(kind(v));
  EXPECT_EQ(kind(p->feeds[0]), PlanValue::kPassed);
  EXPECT_THAT(kinds, ElementsAre(PlanValue::kPassed, PlanValue::kPassed, PlanValue::kPassed, PlanValue::kHeld));
  std::vector<uint64_t> at;  // each in memory that no other value uses
  for (size_t v = 0; v < p->values.size(); ++v) {
    if (kind(int32_t(v)) == PlanValue::kPassed || kind(int32_t(v)) == PlanValue::kBlock) at.push_back(p->shapes->values[v].offset);
  }
  EXPECT_THAT(at, testing::WhenSorted(ElementsAre(0, 64, 128, 192)));
  EXPECT_EQ(p->shapes->block_bytes[0], 256);
  EXPECT_EQ(OtherShapes(*p, {Shape({8})})->block_bytes[0], 256);
  EXPECT_EQ(OtherShapes(*p, {Shape({400})}), nullptr);  // too large to be copied: needs another plan
  p = Compile(s, {Shape({400})});
  EXPECT_EQ(kind(p->feeds[0]), PlanValue::kHeld);
  s.takes_feeds = false;
  p = Compile(s, {Shape({4})});
  EXPECT_EQ(kind(p->feeds[0]), PlanValue::kFeed);
  EXPECT_EQ(kind(p->fetches[1]), PlanValue::kHeld);
}

TEST_F(CompileTest, WhoHasMoreToDoKnowsOfLaterReaders) {
  // The sizes of Positive(x) come from the step; the small reader behind it counts, the one before
  // it does not.
  const Edge before = g_.Op("Next", {g_.Op("Neg", {x_})}), positive = g_.Op("Positive", {x_}), behind = g_.Op("Next", {x_});
  Signature s{{x_}, {before, positive, g_.Op("Neg", {behind})}, {}};
  s.takes_feeds = true;
  auto p = Compile(s, {Shape({400})});
  std::vector<std::string> counted;
  for (const PlanNode& n : p->nodes) {
    if (std::count(n.held_in.begin(), n.held_in.end(), p->feeds[0])) counted.push_back(n.run.node->op().name);
  }
  EXPECT_THAT(counted, ElementsAre("Positive", "Next"));
  EXPECT_EQ(p->values[size_t(p->feeds[0])].readers, 2);
}

TEST_F(CompileTest, ReadersOfWhatIsFetchedDoNotCount) {
  const Edge mid = g_.Op("Next", {x_});
  Edge y = mid;
  for (int i = 0; i < 3; ++i) y = g_.Op("Add", {y, mid});
  for (const char* engine : {"fixed", "counted"}) {
    PlanOptions o;
    o.engine = engine;
    auto p = Compile({{x_}, {mid, y}, {}}, {Shape({4})}, o);
    EXPECT_TRUE(p->nodes[1].simple && p->nodes[2].simple) << engine;
    EXPECT_FALSE(p->nodes[0].simple || p->nodes[3].simple) << engine;
  }
}

TEST_F(CompileTest, ViewsOfPlannedAndFedMemoryAreNotRun) {
  Edge m = g_.Input(Shape({2, 3})), a = g_.Op("Next", {g_.Op("Flat", {g_.Op("Next", {m})})}), b = g_.Op("Neg", {g_.Op("Flat", {m})});
  Edge end = g_.Op("Add", {a, b}), handed_out = g_.Op("Flat", {g_.Op("Two", {m})});
  EXPECT_THAT(Ops(*Compile({{m}, {end}, {}}, {Shape({2, 3})})), ElementsAre("Next", "Next", "Neg", "Add"));
  // An output shares the memory of its forwarded source, which therefore gets its own memory.
  auto p = Compile({{m}, {handed_out}, {}}, {Shape({2, 3})});
  ASSERT_THAT(Ops(*p), ElementsAre("Two", "Flat"));
  EXPECT_EQ(p->values[size_t(p->nodes[0].out[0])].kind, PlanValue::kHeld);
  EXPECT_EQ(p->values[size_t(p->nodes[0].out[1])].kind, PlanValue::kBlock);
}

TEST_F(CompileTest, EmptyValuesNeedNoMemory) {
  Edge end = g_.Op("Next", {g_.Op("Mirror", {g_.Op("Neg", {g_.Op("Next", {x_})})})});
  auto p = Compile({{x_}, {end}, {}}, {Shape({0})});
  EXPECT_THAT(Ops(*p), ElementsAre("Next", "Neg", "Mirror", "Next"));
  EXPECT_THAT(p->shapes->block_bytes, ElementsAre(0u));
}

TEST_F(CompileTest, UnknownShapesAreLeftToTheStep) {
  Edge end = Chain("Next", 3);
  auto p = Compile({{x_}, {end}, {}}, {Shape()});
  EXPECT_THAT(p->shapes->block_bytes, ElementsAre(0u));
  for (const PlanNode& n : p->nodes) EXPECT_TRUE(n.dynamic);
}

TEST_F(CompileTest, AConstantFetchRunsNothing) {
  Edge c = g_.Op("Neg", {g_.Const({1})});
  EXPECT_THAT(Ops(*Compile({{}, {c}, {}}, {})), IsEmpty());
}

TEST_F(CompileTest, TheEngineFollowsOptionAndKernels) {
  Edge plain = Chain("Next", 3), later = g_.Op("Later", {x_});
  auto counted = [&](Edge e, const char* engine, uint32_t threads) {
    PlanOptions o;
    o.engine = engine;
    o.threads = threads;
    return Compile({{x_}, {e}, {}}, {Shape({4})}, o)->counted;
  };
  EXPECT_FALSE(counted(plain, "auto", 4));  // nothing can run in parallel
  EXPECT_TRUE(counted(plain, "counted", 1));
  EXPECT_FALSE(counted(plain, "fixed", 4));
  EXPECT_TRUE(counted(later, "auto", 1));
  EXPECT_TRUE(counted(later, "fixed", 1));  // asynchronous nodes cannot run in fixed order
  Edge wide = g_.Op("Sum", {g_.Op("Next", {x_}), g_.Op("Neg", {x_}), g_.Op("Two", {x_})});
  PlanOptions o;
  o.threads = 4;
  EXPECT_TRUE(Compile({{x_}, {wide}, {}}, {Shape({100000})}, o)->counted);
  EXPECT_FALSE(Compile({{x_}, {wide}, {}}, {Shape({100})}, o)->counted);
  o.threads = 1;
  EXPECT_FALSE(Compile({{x_}, {wide}, {}}, {Shape({100000})}, o)->counted);
}

TEST_F(CompileTest, CopiesAndKernelsHaveTitlesThatMessagesFollow) {
  auto p = Compile({{x_}, {g_.Op("OnCpu", {g_.Op("OnFake", {x_}, {.name = "f"})}, {.name = "c"})}, {}}, {Shape({4})});
  std::vector<std::string> titles;
  for (const PlanNode& n : p->nodes) titles.push_back(n.title);
  ASSERT_THAT(titles, testing::SizeIs(4));
  EXPECT_THAT(titles[0], testing::MatchesRegex("copy of '.*' to .*FAKE:0:"));
  EXPECT_EQ(titles[1], "OnFake 'f' on FAKE:0:");
  EXPECT_THAT(titles[2], testing::MatchesRegex("copy of '.*' from .*FAKE:0:"));
  EXPECT_EQ(titles[3], "OnCpu 'c' on CPU:0:");
}

TEST_F(CompileTest, AReaderWaitsForWhatViewsAndConstantsWaitFor) {
  const Node *one = g_.Mark(1), *two = g_.Mark(2), *three = g_.Mark(3);
  Edge c = g_.Const(FloatsOf(Shape({4})), {.controls = {one, two}}), d = g_.Const(FloatsOf(Shape({4})), {.controls = {three}});
  Edge sum = g_.Op("Add", {g_.Op("Flat", {g_.Op("Flat", {c})}), g_.Op("Flat", {d})}), other = g_.Op("Add", {g_.Op("Flat", {x_}), d});
  auto p = Compile({{x_}, {sum, other}, {}}, {Shape({4})});
  ASSERT_THAT(Ops(*p), ElementsAre("Mark", "Mark", "Mark", "Add", "Add"));
  EXPECT_EQ(p->nodes[3].pending, 3);
  EXPECT_THAT(p->nodes[0].next, ElementsAre(3));
  EXPECT_THAT(p->nodes[1].next, ElementsAre(3));
  EXPECT_THAT(p->nodes[2].next, ElementsAre(3, 4));
  EXPECT_EQ(p->nodes[4].pending, 1);
}

// Each reader of the last view needs the waits of all views; a call per view would overflow the
// stack.
TEST_F(CompileTest, LongChainsOfViewsNeedNoStackAndNoTime) {
  constexpr int kMany = 20000;
  Edge end = Chain("Flat", kMany);
  std::vector<Edge> fetches;
  for (int i = 0; i < kMany; ++i) fetches.push_back(g_.Op("Traced", {end}, {.attrs = {{"tag", AttrValue::Int(i)}}}));
  std::unique_ptr<Plan> plan;
  double seconds = 0;
  std::function<void()> compile = [&] {
    const std::clock_t start = std::clock();
    PlanOptions o;
    o.disabled_passes = {"cse"};
    plan = Compile({{x_}, fetches, {}}, {Shape({4})}, o);
    seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  };
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  ASSERT_EQ(pthread_attr_setstacksize(&small, 512 << 10), 0);
  auto call = [](void* f) -> void* { return (*static_cast<std::function<void()>*>(f))(), nullptr; };
  ASSERT_EQ(pthread_create(&thread, &small, call, &compile), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&small);
  EXPECT_EQ(plan->nodes.size(), size_t(kMany));
  EXPECT_LT(seconds, 5);
}

// ---- Random plans ----

// A piece of a plan's block, its users, and its lifetime.
struct Use {
  uint64_t offset, bytes;
  int32_t maker;
  std::vector<int32_t> users;  // the producer and all readers
  int32_t value;               // -1: scratch
};

std::vector<Use> UsesOf(const Plan& p) {
  std::vector<Use> all;
  std::vector<int32_t> use_of(p.values.size(), -1);
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    for (int32_t v : p.nodes[i].in) {
      if (use_of[size_t(v)] >= 0) all[size_t(use_of[size_t(v)])].users.push_back(int32_t(i));
    }
    for (int32_t v : p.nodes[i].out) {
      if (p.values[size_t(v)].kind != PlanValue::kBlock) continue;
      const PlanShapes::Value& value = p.shapes->values[size_t(v)];
      use_of[size_t(v)] = int32_t(all.size());
      all.push_back({value.offset, value.bytes, int32_t(i), {int32_t(i)}, v});
    }
    if (const auto& s = p.shapes->scratch[i]; s.bytes) all.push_back({s.offset, s.bytes, int32_t(i), {int32_t(i)}, -1});
  }
  return all;
}

// The only sharing allowed while both are in use: the last reader of `old` writes `young` over it.
bool InPlace(const Plan& p, const Use& old, const Use& young) {
  if (old.value < 0 || young.value < 0 || old.offset != young.offset || old.bytes != young.bytes) return false;
  const std::vector<int32_t>& in = p.nodes[size_t(young.maker)].in;
  return std::count(in.begin(), in.end(), old.value) == 1;
}

// Returns, per node, the nodes that start only after it: by edges, or by whole batches.
std::vector<std::set<int32_t>> After(const Plan& p) {
  std::vector<std::set<int32_t>> after(p.nodes.size());
  auto add = [&](size_t i, int32_t k) {
    after[i].insert(k);
    after[i].insert(after[size_t(k)].begin(), after[size_t(k)].end());
  };
  for (size_t b = p.batches.size(); b-- > 0;) {
    for (size_t i = size_t(p.batches[b].end); i-- > size_t(p.batches[b].begin);) {
      if (i + 1 < size_t(p.batches[b].end)) add(i, int32_t(i) + 1);
      for (int32_t k : p.batches[b].next) add(i, p.batches[size_t(k)].begin);
    }
  }
  for (size_t i = p.nodes.size(); p.batches.empty() && i-- > 0;) {
    for (int32_t k : p.nodes[i].next) add(i, k);
  }
  return after;
}

TEST_F(CompileTest, ValuesInUseTogetherShareNoMemory) {
  int batched = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    for (const std::string engine : {"fixed", "counted", "auto"}) {
      SCOPED_TRACE(StrCat("seed ", seed, ", ", engine));
      TestGraph g(SharedRuntimeOf(g_.graph()));
      // Without views, every use of memory is a value of the plan.
      PlanOptions o;
      o.engine = engine;
      o.optimize = seed % 3 != 0;
      CallableSpec spec;
      std::vector<Tensor> feeds;
      if (engine == "auto") {
        o.threads = 2;
        RandomForest random(&g, seed, {.views = false});
        spec = random.spec;
        feeds = random.feeds;
      } else {
        RandomGraph random(&g, seed, {.nodes = 60, .views = false, .elsewhere = seed % 2 == 0});
        spec = random.spec();
        feeds = random.Feeds();
      }
      std::vector<Shape> shapes;
      for (const Tensor& t : feeds) shapes.push_back(t.shape());
      auto plan = CompilePlan(g.graph(), {spec.feeds, spec.fetches, {}}, shapes, o, &states_);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const Plan& p = **plan;
      batched += !p.batches.empty();
      const std::vector<std::set<int32_t>> after = After(p);
      auto before = [&](int32_t a, int32_t b) { return p.counted || !p.batches.empty() ? after[size_t(a)].count(b) != 0 : a < b; };
      const std::vector<Use> uses = UsesOf(p);
      uint64_t sum = 0, end = 0, bytes = 0;
      for (size_t i = 0; i < uses.size(); ++i) {
        const Use& a = uses[i];
        bytes += a.bytes;
        EXPECT_EQ(a.offset % kGrain, 0u);
        sum += Rounded(a.bytes);
        end = std::max(end, a.offset + Rounded(a.bytes));
        for (size_t k = i + 1; k < uses.size(); ++k) {
          const Use& b = uses[k];
          if (a.bytes == 0 || b.bytes == 0 || a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes) continue;
          const bool in_place = InPlace(p, a, b);
          for (int32_t u : a.users) {
            EXPECT_TRUE(before(u, b.maker) || (in_place && u == b.maker))
                << p.nodes[size_t(b.maker)].title << " writes over what " << p.nodes[size_t(a.maker)].title << " made for "
                << p.nodes[size_t(u)].title;
          }
        }
      }
      EXPECT_LE(end, p.shapes->block_bytes[0]);
      EXPECT_LE(p.shapes->block_bytes[0], sum);
      EXPECT_EQ(p.shapes->unplanned_bytes, bytes);
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(batched, 20);
}

// ---- Batches ----

class BatchesTest : public CompileTest {
 protected:
  std::unique_ptr<Plan> Compile(const std::vector<const Node*>& targets, uint32_t threads = 2, const std::string& engine = "auto") {
    PlanOptions o;
    o.threads = threads;
    o.engine = engine;
    o.disabled_passes = {"cse"};
    return CompileTest::Compile({{x_}, {}, targets}, {Shape({4})}, o);
  }
  std::vector<const Node*> Nodes(const std::string& op, int n) {
    std::vector<const Node*> all;
    for (int i = 0; i < n; ++i) all.push_back(g_.Op(op, {x_}).node);
    return all;
  }
};

TEST_F(BatchesTest, HoldEveryNodeOnceAndWaitForWhatTheirNodesWaitFor) {
  std::vector<const Node*> ends;
  for (const Node* n : Nodes("Next", 100)) ends.push_back(g_.Op("Next", {{n, 0}}).node);
  auto plan = Compile(ends);
  ASSERT_GE(plan->batches.size(), 4u);
  std::vector<size_t> batch_of;
  for (size_t b = 0; b < plan->batches.size(); ++b) {
    EXPECT_EQ(size_t(plan->batches[b].begin), batch_of.size());
    batch_of.resize(size_t(plan->batches[b].end), b);
  }
  ASSERT_EQ(batch_of.size(), plan->nodes.size());
  std::vector<int32_t> waits(plan->batches.size(), 0);
  for (const PlanBatch& b : plan->batches) {
    for (int32_t k : b.next) ++waits[size_t(k)];
  }
  for (size_t b = 0; b < plan->batches.size(); ++b) EXPECT_EQ(waits[b], plan->batches[b].pending);
  for (size_t i = 0; i < plan->nodes.size(); ++i) {
    const std::vector<int32_t>& next = plan->batches[batch_of[i]].next;
    for (int32_t k : plan->nodes[i].next) {
      const size_t b = batch_of[size_t(k)];
      EXPECT_TRUE(b == batch_of[i] || std::count(next.begin(), next.end(), int32_t(b)) == 1);
    }
  }
}

TEST_F(BatchesTest, TakeLittleMoreMemoryThanOneNodeAfterTheOther) {
  auto plan = Compile(Nodes("Next", 1000));
  ASSERT_FALSE(plan->batches.empty());
  EXPECT_LE(plan->shapes->block_bytes[0], plan->batches.size() * kGrain);
}

TEST_F(BatchesTest, AreNotFormedWhereTheOrderCountsOrNothingIsGained) {
  EXPECT_FALSE(Compile(Nodes("Next", 200))->batches.empty());
  EXPECT_TRUE(Compile(Nodes("Next", 200), 1)->batches.empty());
  EXPECT_TRUE(Compile(Nodes("Next", 200), 2, "fixed")->batches.empty());
  EXPECT_TRUE(Compile(Nodes("Next", 20))->batches.empty()) << "few nodes";
  EXPECT_TRUE(Compile({Chain("Next", 200).node})->batches.empty()) << "a chain";
  std::vector<const Node*> mixed = Nodes("Next", 200);
  mixed.push_back(g_.Op("Noise", {x_}).node);
  EXPECT_TRUE(Compile(mixed)->batches.empty()) << "one is stateful";
}

}  // namespace
}  // namespace thalweg
