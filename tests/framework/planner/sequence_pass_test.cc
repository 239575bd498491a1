// Loops whose iterations cannot overlap run sequentially, with unchanged results, effects and
// errors; all other loops stay in frames. Over the standard ops and the CPU plugin.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/function.h"
#include "framework/graph/graph_def.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/flow_graph.h"
#include "tests/framework/support/standard_runtime.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::Bool;
using testing_support::Floats;
using testing_support::FlowGraph;
using testing_support::Planning;
using testing_support::Scalar;
using testing_support::StandardRuntime;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

class SequencePassTest : public FlowGraph, public testing::Test {
 protected:
  SequencePassTest() : FlowGraph(Shared()) {}
  static std::shared_ptr<Runtime>& Shared() {
    static std::shared_ptr<Runtime> runtime;
    return runtime;
  }
  static void SetUpTestSuite() { Shared() = StandardRuntime(4); }
  static void TearDownTestSuite() { Shared() = nullptr; }

  // Returns the ops that replace the loops in a step for these fetches, followed by "frames" if
  // some loop needs frames.
  std::vector<std::string> Loops(const std::vector<Edge>& fetches, const std::vector<Edge>& feeds = {},
                                 const std::vector<const Node*>& targets = {}) {
    Planning p(g_.graph(), {feeds, fetches, targets});
    p.Through("sequence");
    EXPECT_TRUE(p.status.ok()) << p.status;
    std::vector<std::string> ops;
    for (const WorkNode& n : p.w.nodes) {
      if (n.node && n.node->op().name.find("While") != std::string::npos) ops.push_back(n.node->op().name);
    }
    if (p.w.frames.size() > 1) ops.push_back("frames");
    return ops;
  }

  // Returns a session's results, which must equal the results in frames, on one thread and on
  // several.
  std::vector<float> Run(const std::vector<Edge>& fetches, const std::vector<Edge>& fed = {}, const std::vector<Tensor>& feeds = {}) {
    std::vector<std::vector<float>> all;
    for (const std::map<std::string, std::string>& options : {std::map<std::string, std::string>{},
                                                              {{"threads", "1"}},
                                                              {{"engine", "counted"}},
                                                              {{"disable_pass", "sequence"}},
                                                              {{"disable_pass", "sequence"}, {"threads", "1"}}}) {
      auto session = g_.NewSession(options);
      auto out = Step(*session, {fed, fetches, {}}, feeds);
      EXPECT_TRUE(out.ok()) << out.status();
      all.emplace_back();
      if (!out.ok()) continue;
      for (const Tensor& t : *out) {
        const std::vector<float> values = Values(t);
        all.back().insert(all.back().end(), values.begin(), values.end());
      }
    }
    for (const auto& other : all) EXPECT_EQ(other, all[0]);
    return all[0];
  }

  auto Below(float limit) {
    return [this, limit](auto& v) { return Op("Less", {v[0], Inside(limit, v[0])}); };
  }
  Edge Next(const Edge& i) { return Op("AddV2", {i, Inside(1, i)}); }
  // An array of many elements.
  Edge Large(float x) { return g_.Const(std::vector<float>(1000, x)); }
  Edge Zero() { return g_.Const(Scalar(0)); }
  Edge Sum(const Edge& x) {
    const Edge axis = g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {0})->Reshape(nullptr, 0));
    return Op("Sum", {x, axis});
  }
  using Edges = std::vector<Edge>;
};

TEST_F(SequencePassTest, ALoopOfOneChainNeedsNoFrames) {
  const auto out = While("loop", {Zero(), Large(1)}, Below(7), [&](auto& v) { return Edges{Next(v[0]), Op("AddV2", {v[1], v[1]})}; });
  EXPECT_THAT(Loops(out), ElementsAre("StatelessWhile"));
  EXPECT_THAT(Run({out[0], Sum(out[1])}), ElementsAre(7, 128000));
}

TEST_F(SequencePassTest, TheProgramSeesNothingOfIt) {
  const auto out = While("loop", {Zero()}, Below(7), [&](auto& v) { return Edges{Next(v[0])}; });
  const auto before = ExportGraphDef(g_.graph());
  const int32_t size = g_.graph().size();
  EXPECT_THAT(Loops(out), ElementsAre("StatelessWhile"));
  EXPECT_THAT(Loops(out), ElementsAre("StatelessWhile"));
  EXPECT_EQ(g_.graph().size(), size);
  EXPECT_THAT(g_.graph().functions()->Names(), IsEmpty());
  EXPECT_EQ(*ExportGraphDef(g_.graph()), *before);
}

TEST_F(SequencePassTest, IterationsThatOverlapStayInFrames) {
  // The second and the third variable take long in each iteration, and neither waits for the other.
  const auto loop = [&](const std::string& frame, int64_t parallel) {
    return While(
        frame, {Zero(), Large(1), Large(2)}, Below(3),
        [&](auto& v) { return Edges{Next(v[0]), Op("AddV2", {v[1], v[1]}), Op("AddV2", {v[2], v[2]})}; }, parallel);
  };
  const auto side_by_side = loop("side by side", 10), in_turn = loop("in turn", 1);
  EXPECT_THAT(Loops(side_by_side), ElementsAre("frames"));
  EXPECT_THAT(Loops({side_by_side[1]}), ElementsAre("StatelessWhile")) << "the third is not needed";
  EXPECT_THAT(Loops(in_turn), ElementsAre("StatelessWhile"));
  EXPECT_THAT(Run({Sum(in_turn[1]), Sum(in_turn[2]), Sum(side_by_side[2])}), ElementsAre(8000, 16000, 16000));
}

TEST_F(SequencePassTest, WorkThatNoLaterIterationWaitsForMayOverlap) {
  // A value computed from the counter alone is accumulated, but not waited for.
  const Edge big = Enter(Large(1), "loop", true);
  const auto out =
      While("loop", {Zero(), Large(0)}, Below(5), [&](auto& v) { return Edges{Next(v[0]), Op("AddV2", {v[1], Op("Mul", {big, v[0]})})}; });
  EXPECT_THAT(Loops(out), ElementsAre("frames"));
  EXPECT_THAT(Run({Sum(out[1])}), ElementsAre(10000));
}

TEST_F(SequencePassTest, LoopsFollowEachOtherAndLieWithinEachOther) {
  const Edge rows = Enter(g_.Const(Scalar(5)), "outer", true, 1);
  const auto outer = While(
      "outer", {Zero(), Zero()}, Below(7),
      [&](auto& v) {
        const Edge limit = Enter(rows, "inner", true), i = Enter(v[0], "inner", true);
        const auto inner = While(
            "inner", {Inside(0, v[0]), v[1]}, [&](auto& w) { return Op("Less", {w[0], limit}); },
            [&](auto& w) { return Edges{Next(w[0]), Op("AddV2", {w[1], Op("Mul", {i, w[0]})})}; });
        return Edges{Next(v[0]), inner[1]};
      },
      1);
  const auto after = While("after", {outer[0], outer[1]}, Below(9), [&](auto& v) { return Edges{Next(v[0]), Op("Neg", {v[1]})}; });
  EXPECT_THAT(Loops(after), ElementsAre("StatelessWhile", "StatelessWhile"));
  EXPECT_THAT(Run(after), ElementsAre(9, 210));  // sum over i < 7, j < 5 of i * j
}

TEST_F(SequencePassTest, ConditionsMayLieInLoops) {
  const auto out = While("loop", {Zero(), g_.Const(Scalar(1))}, Below(6), [&](auto& v) {
    const Edge p = Op("Less", {v[1], Inside(5, v[0])});
    const Edge s = Op("Switch", {v[1], p});
    return Edges{Next(v[0]), Op("Merge", {Op("Neg", {Port(s, 0)}), Op("AddV2", {Port(s, 1), Port(s, 1)})})};
  });
  EXPECT_THAT(Loops(out), ElementsAre("StatelessWhile"));
  EXPECT_THAT(Run(out), ElementsAre(6, -32));  // 1 2 4 8 -8 -16 -32
}

TEST_F(SequencePassTest, ALoopWithoutIterationsAndOneThatGrows) {
  const auto none = While("none", {g_.Const(Scalar(9))}, Below(7), [&](auto& v) { return Edges{Next(v[0])}; });
  const auto grows = While("grows", {Zero(), g_.Const({1})}, Below(5), [&](auto& v) {
    const Edge axis = g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {0})->Reshape(nullptr, 0), {.controls = {v[0].node}});
    return Edges{Next(v[0]), Op("ConcatV2", {v[1], v[1], axis}, {{"N", AttrValue::Int(2)}})};
  });
  EXPECT_THAT(Loops({none[0], grows[1]}), ElementsAre("StatelessWhile", "StatelessWhile"));
  EXPECT_THAT(Run({none[0], Sum(grows[1])}), ElementsAre(9, 32));
}

TEST_F(SequencePassTest, StateIsChangedOnceInEachIteration) {
  const Edge v = Op("VarHandleOp", {}, {{"dtype", AttrValue::Type(TW_FLOAT)}, {"shape", AttrValue::OfShape(Shape({}))}});
  const Edge handle = Enter(v, "loop", true);
  const auto loop = [&](bool in_body) {
    const std::string frame = in_body ? "loop" : "again";
    const Edge h = in_body ? handle : Enter(v, frame, true);
    const Edge start = Enter(Zero(), frame), m = Op("Merge", {start, start});
    const Edge goes_on = Op("LoopCond", {Op("Less", {m, Inside(4, m)})}), s = Op("Switch", {m, goes_on});
    const Edge i = Op("Identity", {Port(s, 1)}), one = Inside(1, in_body ? i : m);
    const Edge add = Op("AssignAddVariableOp", {h, one}, {{"dtype", AttrValue::Type(TW_FLOAT)}});
    const Edge next = Op("NextIteration", {Next(i)}, {}, {add.node});
    EXPECT_TRUE(g_.graph().CloseLoop(m.node, 1, next.node).ok());
    return Op("Exit", {Port(s, 0)});
  };
  const Edge out = loop(true), again = loop(false);
  const Edge set = Op("AssignVariableOp", {v, Zero()}, {{"dtype", AttrValue::Type(TW_FLOAT)}});
  const Edge get = Op("ReadVariableOp", {v}, {{"dtype", AttrValue::Type(TW_FLOAT)}});
  EXPECT_THAT(Loops({out}), ElementsAre("While"));
  EXPECT_THAT(Loops({again}), ElementsAre("frames")) << "in frames it runs once more, after the last iteration";
  for (const auto& [end, times] : {std::pair(out, 4), {again, 5}}) {
    auto session = g_.NewSession();
    ASSERT_TRUE(Step(*session, {{}, {}, {set.node}}).ok());
    ASSERT_TRUE(Step(*session, {{}, {end}, {}}).ok());
    auto value = Step(*session, {{}, {get}, {}});
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_THAT(Values((*value)[0]), ElementsAre(float(times)));
  }
}

TEST_F(SequencePassTest, FailuresNameFrameIterationAndNode) {
  const auto out = While("loop", {Zero()}, Below(7), [&](auto& v) {
    const Edge at = Op("Cast", {v[0]}, {{"DstT", AttrValue::Type(TW_INT32)}});
    const Edge axis = g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {0})->Reshape(nullptr, 0), {.controls = {v[0].node}});
    const Edge three = g_.Const(Floats({1, 1, 1}), {.controls = {v[0].node}});
    return Edges{Op("AddV2", {v[0], Op("GatherV2", {three, at, axis})})};
  });
  EXPECT_THAT(Loops(out), ElementsAre("StatelessWhile"));
  auto session = g_.NewSession();
  const Status s = Step(*session, {{}, out, {}}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(s), AllOf(HasSubstr("frame 'loop'"), HasSubstr("in iteration 3"), HasSubstr("GatherV2 'GatherV2'")));
}

TEST_F(SequencePassTest, WhatItCannotBeStaysInFrames) {
  const Edge p = Op("Placeholder", {}, {{"dtype", AttrValue::Type(TW_BOOL)}, {"shape", AttrValue::OfShape(Shape({}))}});
  const auto counts = [&](const std::string& frame, const Edge& start, auto body) {
    return While(frame, {start}, Below(7), [&](auto& v) { return Edges{body(v[0])}; }, 1)[0];
  };
  const auto next = [&](const Edge& i) { return Next(i); };
  const Edge plain = counts("plain", Zero(), next);
  EXPECT_THAT(Loops({plain}), ElementsAre("StatelessWhile"));
  // If p is false, the counter still advances.
  const auto part = While("part", {Zero(), Port(Op("Switch", {Zero(), p}), 1)}, Below(3),
                          [&](auto& v) { return Edges{Next(v[0]), Op("AddV2", {v[1], v[0]})}; });
  EXPECT_THAT(Loops(part, {p}), ElementsAre("frames"));
  EXPECT_THAT(Loops({part[0]}, {p}), ElementsAre("StatelessWhile")) << "the other is not needed";
  EXPECT_THAT(Run(part, {p}, {Bool(true)}), ElementsAre(3, 3));
  EXPECT_THAT(Run({part[0]}, {p}, {Bool(false)}), ElementsAre(3));
  const Edge random = counts("random", Zero(), [&](const Edge& i) {
    const Edge shape = g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {}), {.controls = {i.node}});
    return Op("AddV2", {i, Op("RandomUniform", {shape}, {{"dtype", AttrValue::Type(TW_FLOAT)}})});
  });
  EXPECT_THAT(Loops({random}), ElementsAre("frames"));
  EXPECT_THAT(Loops({plain, random}), ElementsAre("StatelessWhile", "frames"));
  Edge inner;
  const Edge fed = counts("fed", Zero(), [&](const Edge& i) { return inner = Next(i); });
  EXPECT_THAT(Loops({fed}), ElementsAre("StatelessWhile"));
  EXPECT_THAT(Loops({fed}, {}, {inner.node}), ElementsAre("frames")) << "a node of it is a target";
  // Another node of the step fills a queue: a call would block the only thread.
  const std::map<std::string, AttrValue> types = {{"component_types", AttrValue::Types({TW_FLOAT})}};
  const Edge queue = Op("FIFOQueueV2", {}, types);
  const Edge handle = Enter(queue, "waits", true, 1);
  const Edge waits = counts("waits", Zero(), [&](const Edge& i) { return Op("AddV2", {i, Op("QueueDequeueV2", {handle}, types)}); });
  const Edge fills = Op("QueueEnqueueManyV2", {queue, Large(1)}, {{"Tcomponents", AttrValue::Types({TW_FLOAT})}});
  EXPECT_THAT(Loops({waits}, {}, {fills.node}), ElementsAre("frames"));
  auto alone = g_.NewSession({{"threads", "1"}});
  auto seven = Step(*alone, {{}, {waits}, {fills.node}});
  ASSERT_TRUE(seven.ok()) << seven.status();
  EXPECT_THAT(Values((*seven)[0]), ElementsAre(7));
  // The feed replaces a known value, from which the graph inferred a size that this step does not
  // have.
  const Edge size = g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {2}));
  const Edge filled = Op("Fill", {size, Zero()});
  const Edge sized = While("sized", {Zero(), filled}, Below(3), [&](auto& v) { return Edges{Next(v[0]), Op("Neg", {v[1]})}; }, 1)[1];
  EXPECT_THAT(Loops({sized}), ElementsAre("StatelessWhile"));
  EXPECT_THAT(Loops({sized}, {size}), ElementsAre("frames"));
  EXPECT_THAT(Run({sized}, {size}, {*Tensor::Vector<int32_t>(TW_INT32, {3})}), ElementsAre(0, 0, 0));
  Planning off(g_.graph(), {{}, {plain}, {}});
  off.options.optimize = false;
  EXPECT_TRUE(off.Through("sequence").w.flow);
}

TEST_F(SequencePassTest, LoopsLieBesideBranchesInThemAndBehindThem) {
  const Edge p = Op("Placeholder", {}, {{"dtype", AttrValue::Type(TW_BOOL)}, {"shape", AttrValue::OfShape(Shape({}))}});
  const auto count = [&](const std::string& frame, const Edge& x, const Edge& by) {
    return While(frame, {x, by}, Below(9), [&](auto& v) { return Edges{Op("AddV2", {v[0], v[1]}), v[1]}; }, 1)[0];
  };
  const auto on = [&](const Edge& x, int32_t way) { return Port(Op("Switch", {x, p}), way); };
  const Edge two = g_.Const(Scalar(2)), three = g_.Const(Scalar(3));
  // A branch as TensorFlow writes it: a constant of the branch waits for the switch's output, and
  // the predicate passes through an Identity before the second switch.
  const Edge way = Op("Identity", {on(p, 1)}), zero = g_.Const(Scalar(0), {.controls = {way.node}});
  const Edge inside = count("inside", zero, Port(Op("Switch", {two, Op("Identity", {p})}), 1)),
             other = count("other", on(two, 0), on(three, 0));
  const Edge merged = Op("Merge", {inside, other}), behind = count("behind", Op("Neg", {merged}), Op("Merge", {on(two, 0), on(three, 1)}));
  const Edge beside = count("beside", Zero(), three), chain = count("chain", Op("Neg", {beside}), two);
  EXPECT_THAT(Loops({beside, merged}, {p}), ElementsAre("StatelessWhile", "StatelessWhile", "StatelessWhile"));
  EXPECT_THAT(Run({merged, beside, behind, chain}, {p}, {Bool(true)}), ElementsAre(10, 9, 11, 9));
  EXPECT_THAT(Run({merged, beside, behind, chain}, {p}, {Bool(false)}), ElementsAre(11, 9, 9, 9));
  EXPECT_EQ(Loops({merged, beside, behind, chain}, {p}), std::vector<std::string>(5, "StatelessWhile"));
  // A loop inside a loop that stays, renumbered; and a loop that only the branch not taken enters.
  const Edge big = Enter(Large(1), "stays", true);
  const Edge stays = Sum(While("stays", {Zero(), Large(0)}, Below(3), [&](auto& v) {
    const Edge inner = While("inner", {v[0]}, Below(5), [&](auto& u) { return Edges{Next(u[0])}; })[0];
    return Edges{Next(v[0]), Op("AddV2", {v[1], Op("Mul", {big, inner})})};
  })[1]);
  EXPECT_THAT(Loops({beside, stays}), ElementsAre("StatelessWhile", "frames"));
  EXPECT_THAT(Run({stays, merged, beside}, {p}, {Bool(true)}), ElementsAre(15000, 10, 9));
  auto session = g_.NewSession();
  const Status dead = Step(*session, {{p}, {inside}, {}}, {Bool(false)}).status();
  EXPECT_THAT(Text(dead), HasSubstr("dead"));
}

TEST_F(SequencePassTest, LoopsThatDoNotWaitForEachOtherRunSideBySide) {
  const auto loop = [&](const std::string& frame, const Edge& x) {
    return While(frame, {x}, Below(9), [&](auto& v) { return Edges{Next(v[0])}; })[0];
  };
  const Edge a = loop("a", Zero()), b = loop("b", Op("Neg", {Zero()})), c = loop("c", Op("Neg", {a}));
  const auto is_counted = [&](const Edges& fetches, const std::string& threads) {
    auto session = g_.NewSession({{"threads", threads}});
    auto callable = session->MakeCallable({{}, fetches, {}});
    EXPECT_TRUE(callable.ok()) << callable.status();
    auto report = (*callable)->Report({});
    EXPECT_TRUE(report.ok()) << report.status();
    return report->counted;
  };
  EXPECT_TRUE(is_counted({a, b}, "2"));
  EXPECT_FALSE(is_counted({a, b}, "1"));
  EXPECT_FALSE(is_counted({c}, "2")) << "one after the other";
  EXPECT_THAT(Run({a, b, c}), ElementsAre(9, 9, 9));
}

TEST_F(SequencePassTest, LoopsThatNeedWhatLeavesThemAreToldApart) {
  // b enters the second loop, whose result enters the first.
  const auto a = While("a", {Zero()}, Below(3), [&](auto& v) { return Edges{Next(v[0])}; });
  const auto b = While("b", {a[0]}, Below(5), [&](auto& v) { return Edges{Next(v[0])}; });
  const Edge c = Op("AddV2", {b[0], a[0]});
  EXPECT_THAT(Loops({c}), ElementsAre("StatelessWhile", "StatelessWhile"));
  EXPECT_THAT(Run({c}), ElementsAre(8));
}

}  // namespace
}  // namespace thalweg
