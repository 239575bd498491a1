// Loops of Enter, Merge, LoopCond, Switch, NextIteration and Exit, built with support/flow_graph.h,
// and branches.
#include "framework/runtime/flow/frame_run.h"

#include <algorithm>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/graph_def.h"
#include "framework/runtime/runtime_of.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/flow_graph.h"
#include "tests/framework/support/standard_runtime.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::Bool;
using testing_support::Floats;
using testing_support::FlowGraph;
using testing_support::Scalar;
using testing_support::StandardRuntime;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

// Options under which loops that need no frames run in frames, too.
std::map<std::string, std::string> InFrames(std::map<std::string, std::string> options = {}) {
  options.emplace("disable_pass", "sequence");
  return options;
}

// An op whose kernel violates its schema.
void Triple(tw::In<float>, tw::Out<float> y) {
  y.allocate({1, 3});
  std::fill_n(y.data(), 3, 1.0f);
}
tw_status* InitWrongOps(const tw_host* h, tw_registrar* r, void**) {
  return tw::guard(h, [&] {
    tw::Plugin p{h, r};
    p.op("Pairs(x: float) -> (y: float[_, 2])");
    p.kernel<Triple>("Pairs @CPU");
  });
}
const tw_plugin* QueryWrongOps(const tw_host_info*) {
  static const tw_plugin plugin = {TW_SIZED(tw_plugin), TW_EPOCH,     0,      0, TW_MINOR, TW_S("org.test.wrong"), TW_S("1"), TW_S("x"),
                                   TW_S("test"),        InitWrongOps, nullptr};
  return &plugin;
}

class FrameRunTest : public FlowGraph, public testing::TestWithParam<uint32_t> {
 protected:
  FrameRunTest() : FlowGraph(StandardRuntime(GetParam(), {{"wrong ops", QueryWrongOps}})) {}

  std::vector<float> Run(const std::vector<Edge>& fetches, const std::vector<Edge>& fed = {}, const std::vector<Tensor>& feeds = {},
                         const std::map<std::string, std::string>& options = {}) {
    auto session = g_.NewSession(InFrames(options));
    auto out = Step(*session, {fed, fetches, {}}, feeds);
    EXPECT_TRUE(out.ok()) << out.status();
    std::vector<float> all;
    if (!out.ok()) return all;
    for (const Tensor& t : *out) {
      const std::vector<float> values = Values(t);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  Status Failure(const std::vector<Edge>& fetches, const std::vector<Edge>& fed = {}, const std::vector<Tensor>& feeds = {}) {
    auto session = g_.NewSession(InFrames());
    auto out = Step(*session, {fed, fetches, {}}, feeds);
    EXPECT_FALSE(out.ok());
    return out.status();
  }
};

INSTANTIATE_TEST_SUITE_P(Threads, FrameRunTest, testing::Values(1, 4));

// ---- Branches ----

TEST_P(FrameRunTest, MergeTakesTheBranchThatSwitchChose) {
  const Edge p = Op("Placeholder", {}, {{"dtype", AttrValue::Type(TW_BOOL)}, {"shape", AttrValue::OfShape(Shape({}))}});
  const Edge x = Op("Switch", {g_.Const({3}), p});
  const Edge y = Op("Merge", {Op("Neg", {Port(x, 0)}), Op("Square", {Port(x, 1)})});
  const Edge which = Op("Cast", {Port(y, 1)}, {{"DstT", AttrValue::Type(TW_FLOAT)}});
  EXPECT_THAT(Run({y, which}, {p}, {Bool(true)}), ElementsAre(9, 1));
  EXPECT_THAT(Run({y, which}, {p}, {Bool(false)}), ElementsAre(-3, 0));
  EXPECT_THAT(Run({y, which}, {p}, {Bool(false)}, {{"optimize", "false"}}), ElementsAre(-3, 0));
}

TEST_P(FrameRunTest, ConstantsOfABranchAreOnlyThereInIt) {
  const Edge p = Op("Placeholder", {}, {{"dtype", AttrValue::Type(TW_BOOL)}, {"shape", AttrValue::OfShape(Shape({}))}});
  const Edge s = Op("Switch", {p, p});
  const Edge off = Op("Identity", {Port(s, 0)}), on = Op("Identity", {Port(s, 1)});
  const Edge a = g_.Const(Scalar(1), {.controls = {off.node}}), b = g_.Const(Scalar(2), {.controls = {on.node}});
  const Edge y = Op("Merge", {a, b});
  EXPECT_THAT(Run({y}, {p}, {Bool(true)}), ElementsAre(2));
  EXPECT_THAT(Run({y}, {p}, {Bool(false)}), ElementsAre(1));
  EXPECT_THAT(Run({Op("Add", {y, y})}, {p}, {Bool(true)}), ElementsAre(4));
}

TEST_P(FrameRunTest, ADeadFetchIsAnErrorThatSaysSo) {
  const Edge x = Op("Switch", {g_.Const({3}), g_.Const(Bool(true))});
  const Edge y = Op("Neg", {Port(x, 0)});
  EXPECT_THAT(Text(Failure({y})), HasSubstr("it is fetched, but dead"));
  EXPECT_THAT(Run({Op("Neg", {Port(x, 1)})}), ElementsAre(-3));
}

TEST_P(FrameRunTest, NodesOfABranchThatIsNotTakenDoNotFail) {
  const Edge p = Op("Placeholder", {}, {{"dtype", AttrValue::Type(TW_BOOL)}, {"shape", AttrValue::OfShape(Shape({}))}});
  const Edge x = Op("Placeholder", {}, {{"dtype", AttrValue::Type(TW_FLOAT)}, {"shape", AttrValue::OfShape(Shape())}});
  const Edge s = Op("Switch", {x, p});
  const Edge bad =
      Op("Add", {Port(s, 1), Op("Switch", {g_.Const({1, 2, 3}), p}).node ? Edge{Op("Switch", {g_.Const({1, 2, 3}), p}).node, 1} : x});
  const Edge y = Op("Merge", {Op("Neg", {Port(s, 0)}), bad});
  EXPECT_THAT(Run({y}, {p, x}, {Bool(false), Floats({1, 2})}), ElementsAre(-1, -2));
  EXPECT_THAT(Text(Failure({y}, {p, x}, {Bool(true), Floats({1, 2})})), HasSubstr("Add"));
}

TEST_P(FrameRunTest, ControlTriggerRunsBehindDeadNodes) {
  const Edge s = Op("Switch", {g_.Const({3}), g_.Const(Bool(true))});
  const Edge dead = Op("Neg", {Port(s, 0)});
  const Edge trigger = Op("ControlTrigger", {}, {}, {dead.node}), nothing = Op("NoOp", {}, {}, {dead.node});
  const Edge y = g_.Const(Scalar(7), {.controls = {trigger.node}}), z = g_.Const(Scalar(8), {.controls = {nothing.node}});
  EXPECT_THAT(Run({y}), ElementsAre(7));
  EXPECT_THAT(Text(Failure({z})), HasSubstr("dead"));
}

TEST_P(FrameRunTest, MergeIgnoresDeadControlInputs) {
  const Edge s = Op("Switch", {g_.Const({3}), g_.Const(Bool(true))});
  const Edge dead = Op("Neg", {Port(s, 0)});
  const Edge y = Op("Merge", {Port(s, 0), Port(s, 1)}, {}, {dead.node});
  EXPECT_THAT(Run({y}), ElementsAre(3));
}

TEST_P(FrameRunTest, AbortFailsTheStepWhereItIsReached) {
  const Edge p = Op("Placeholder", {}, {{"dtype", AttrValue::Type(TW_BOOL)}, {"shape", AttrValue::OfShape(Shape({}))}});
  const Edge s = Op("Switch", {p, p});
  const Edge on = Op("Identity", {Port(s, 1)});
  const Edge stop = Op("Abort", {}, {{"error_msg", AttrValue::String("not here")}}, {on.node});
  const Edge y = g_.Const(Scalar(1), {.controls = {Op("ControlTrigger", {}, {}, {stop.node}).node}});
  EXPECT_THAT(Run({y}, {p}, {Bool(false)}), ElementsAre(1));
  EXPECT_THAT(Text(Failure({y}, {p}, {Bool(true)})), HasSubstr("not here"));
}

// ---- Loops ----

TEST_P(FrameRunTest, LoopsRunUntilTheirConditionIsFalse) {
  const Edge n = Op("Placeholder", {}, {{"dtype", AttrValue::Type(TW_FLOAT)}, {"shape", AttrValue::OfShape(Shape({}))}});
  for (int64_t parallel : {1, 2, 10}) {
    const std::string frame = StrCat("loop", parallel);
    const Edge limit = Enter(n, frame, true, parallel);
    const auto out = While(
        frame, {g_.Const(Scalar(0)), g_.Const(Scalar(0))}, [&](auto& v) { return Op("Less", {v[0], limit}); },
        [&](auto& v) { return std::vector<Edge>{Op("Add", {v[0], Inside(1, v[0])}), Op("Add", {v[1], v[0]})}; }, parallel);
    EXPECT_THAT(Run(out, {n}, {Scalar(0)}), ElementsAre(0, 0));
    EXPECT_THAT(Run(out, {n}, {Scalar(1)}), ElementsAre(1, 0));
    EXPECT_THAT(Run(out, {n}, {Scalar(100)}), ElementsAre(100, 4950));
    EXPECT_THAT(Run(out, {n}, {Scalar(5000)}), ElementsAre(5000, 12497500));
  }
}

TEST_P(FrameRunTest, LoopsLieWithinLoops) {
  const auto less = [&](const Edge& limit) { return [&, limit](auto& v) { return Op("Less", {v[0], limit}); }; };
  const Edge rows = Enter(g_.Const(Scalar(7)), "outer", true), columns = Enter(g_.Const(Scalar(5)), "outer", true);
  const auto out = While("outer", {g_.Const(Scalar(0)), g_.Const(Scalar(0))}, less(rows), [&](auto& v) {
    const Edge limit = Enter(columns, "inner", true), i = Enter(v[0], "inner", true);
    const auto inner = While("inner", {Inside(0, v[0]), v[1]}, less(limit), [&](auto& w) {
      return std::vector<Edge>{Op("Add", {w[0], Inside(1, w[0])}), Op("Add", {w[1], Op("Mul", {i, w[0]})})};
    });
    return std::vector<Edge>{Op("Add", {v[0], Inside(1, v[0])}), inner[1]};
  });
  EXPECT_THAT(Run(out), ElementsAre(7, 21 * 10));  // sum over i < 7, j < 5 of i * j
}

TEST_P(FrameRunTest, ALoopInABranchThatIsNotTakenIsDead) {
  const Edge p = Op("Placeholder", {}, {{"dtype", AttrValue::Type(TW_BOOL)}, {"shape", AttrValue::OfShape(Shape({}))}});
  const Edge s = Op("Switch", {g_.Const(Scalar(0)), p});
  const Edge limit = Enter(Port(Op("Switch", {g_.Const(Scalar(5)), p}), 1), "loop", true);
  const auto loop = While(
      "loop", {Port(s, 1)}, [&](auto& v) { return Op("Less", {v[0], limit}); },
      [&](auto& v) { return std::vector<Edge>{Op("Add", {v[0], Inside(1, v[0])})}; });
  const Edge y = Op("Merge", {Op("Identity", {Port(s, 0)}), loop[0]});
  EXPECT_THAT(Run({y}, {p}, {Bool(true)}), ElementsAre(5));
  EXPECT_THAT(Run({y}, {p}, {Bool(false)}), ElementsAre(0));
}

TEST_P(FrameRunTest, LoopVariablesMayGrow) {
  const Edge limit = Enter(g_.Const(Scalar(5)), "loop", true);
  const auto out = While(
      "loop", {g_.Const(Scalar(0)), g_.Const({1})}, [&](auto& v) { return Op("Less", {v[0], limit}); },
      [&](auto& v) {
        const Edge axis = g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {0})->Reshape(nullptr, 0), {.controls = {v[0].node}});
        return std::vector<Edge>{Op("Add", {v[0], Inside(1, v[0])}), Op("ConcatV2", {v[1], v[1], axis}, {{"N", AttrValue::Int(2)}})};
      });
  EXPECT_EQ(Run({out[1]}).size(), 32u);
}

TEST_P(FrameRunTest, FailuresNameTheIterationAndTheFrame) {
  const Edge limit = Enter(g_.Const(Scalar(5)), "loop", true);
  const auto out = While(
      "loop", {g_.Const(Scalar(0))}, [&](auto& v) { return Op("Less", {v[0], limit}); },
      [&](auto& v) {
        const Edge good = Op("Less", {v[0], Inside(3, v[0])});
        const Edge check = Op("Assert", {good, v[0]});
        return std::vector<Edge>{Op("Add", {v[0], Inside(1, v[0])}, {}, {check.node})};
      });
  EXPECT_THAT(Text(Failure(out)), HasSubstr("in iteration 3 of frame 'loop'"));
}

TEST_P(FrameRunTest, AnOutputThatContradictsWhatIsKnownOfItsShapeIsNone) {
  const Edge x = g_.Const(Scalar(0)), out = Op("Pairs", {Port(Op("Switch", {x, g_.Const(Bool(true))}), 1)});
  const Status s = Failure({Op("Sum", {out, g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {0}))})});
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(s), HasSubstr("output 0 has shape [1, 3], but [?, 2] was planned"));
}

TEST_P(FrameRunTest, LoopsEndWhenTheStepIsCancelledOrLate) {
  const auto out = While(
      "loop", {g_.Const(Scalar(0))}, [&](auto& v) { return Op("GreaterEqual", {v[0], Inside(0, v[0])}); },
      [&](auto& v) { return std::vector<Edge>{Op("Add", {v[0], Inside(1, v[0])})}; });
  auto session = g_.NewSession(InFrames());
  RunOptions options;
  options.deadline_ns = 20'000'000;
  EXPECT_EQ(Step(*session, {{}, out, {}}, {}, options).status().code(), absl::StatusCode::kDeadlineExceeded);
  CancelToken cancel;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel.Cancel();
  });
  options = {};
  options.cancel = &cancel;
  EXPECT_EQ(Step(*session, {{}, out, {}}, {}, options).status().code(), absl::StatusCode::kCancelled);
  other.join();
}

TEST_P(FrameRunTest, AStepThatCannotGoOnNamesWhatWaits) {
  const Edge a = Enter(g_.Const(Scalar(1)), "loop"), n = Op("NextIteration", {Op("Neg", {a})});
  const std::string text = Text(Failure({Op("Exit", {Op("Add", {n, a})})}));
  EXPECT_THAT(text, HasSubstr("it was never reached"));
  EXPECT_THAT(text, HasSubstr("'Add' in iteration 0 of frame 'loop'"));
}

TEST_P(FrameRunTest, ValuesLeaveAFrameOnce) {
  const Edge e = Enter(g_.Const(Scalar(1)), "loop"), m = Op("Merge", {e, e});
  ASSERT_TRUE(g_.graph().CloseLoop(m.node, 1, Op("NextIteration", {m}).node).ok());
  EXPECT_THAT(Text(Failure({Op("Exit", {m})})), HasSubstr("leaves its frame in two iterations"));
}

// ---- Refusals ----

TEST_P(FrameRunTest, ValuesOfTwoFramesDoNotMeet) {
  const Edge a = Enter(g_.Const(Scalar(1)), "a"), b = Enter(g_.Const(Scalar(1)), "b");
  EXPECT_THAT(Text(Failure({Op("Exit", {Op("Add", {a, b})})})), HasSubstr("of frame 'a' and 'Enter_1' of frame 'b'"));
  EXPECT_THAT(Text(Failure({Op("Exit", {Op("Add", {a, g_.Const(Scalar(2))})})})), HasSubstr("of no frame"));
}

TEST_P(FrameRunTest, FetchesLieOutsideOfFrames) {
  const Edge a = Enter(g_.Const(Scalar(1)), "a");
  EXPECT_THAT(Text(Failure({Op("Neg", {a})})), HasSubstr("fetch what leaves by an Exit"));
  EXPECT_THAT(Text(Failure({Op("Exit", {g_.Const(Scalar(1))})})), HasSubstr("is in no frame"));
  EXPECT_THAT(Text(Failure({Op("NextIteration", {g_.Const(Scalar(1))})})), HasSubstr("is in no frame"));
}

TEST_P(FrameRunTest, AFrameHasOneParent) {
  const Edge a = Enter(g_.Const(Scalar(1)), "a");
  const Edge inner = Op("Exit", {Op("Exit", {Enter(a, "b")})}), outer = Op("Exit", {Enter(g_.Const(Scalar(1)), "b")});
  EXPECT_THAT(Text(Failure({inner, outer})), HasSubstr("give one of the two frames another name"));
}

TEST_P(FrameRunTest, LoopsAreClosedOnceAndByNextIteration) {
  const Edge e = Enter(g_.Const(Scalar(1)), "a"), m = Op("Merge", {e, e}), n = Op("NextIteration", {Op("Neg", {m})});
  Graph& graph = g_.graph();
  EXPECT_THAT(Text(graph.CloseLoop(e.node, 0, n.node)), HasSubstr("only a Merge"));
  EXPECT_THAT(Text(graph.CloseLoop(m.node, 2, n.node)), HasSubstr("there is no input 2"));
  EXPECT_THAT(Text(graph.CloseLoop(m.node, 1, e.node)), HasSubstr("give a NextIteration"));
  ASSERT_TRUE(graph.CloseLoop(m.node, 1, n.node).ok());
  EXPECT_THAT(Text(graph.CloseLoop(m.node, 1, n.node)), HasSubstr("closed with"));
  EXPECT_THAT(Text(graph.CloseLoop(m.node, 0, n.node)), HasSubstr("one must come from without"));
}

TEST_P(FrameRunTest, LoopsGoIntoGraphDefsAndOutOfThem) {
  const Edge limit = Enter(g_.Const(Scalar(10)), "loop", true);
  const auto out = While(
      "loop", {g_.Const(Scalar(0))}, [&](auto& v) { return Op("Less", {v[0], limit}); },
      [&](auto& v) { return std::vector<Edge>{Op("Add", {v[0], Inside(1, v[0])})}; });
  auto bytes = ExportGraphDef(g_.graph());
  ASSERT_TRUE(bytes.ok());
  TestGraph other(SharedRuntimeOf(g_.graph()));
  ASSERT_TRUE(ImportGraphDef(bytes->data(), bytes->size(), {}, &other.graph()).ok());
  auto again = ExportGraphDef(other.graph());
  EXPECT_EQ(*bytes, *again);
  auto session = other.NewSession(InFrames());
  auto result = Step(*session, {{}, {*other.graph().FindEdge(out[0].text())}, {}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Values((*result)[0]), ElementsAre(10));
}

}  // namespace
}  // namespace thalweg
