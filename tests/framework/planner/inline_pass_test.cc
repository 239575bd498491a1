// Calls of functions are replaced by the functions' nodes if that preserves the results. Over the
// standard ops and the CPU plugin.
#include <algorithm>
#include <functional>
#include <map>

#include "gtest/gtest.h"

#include "framework/graph/attr_proto.h"
#include "framework/graph/builder.h"
#include "framework/graph/function.h"
#include "framework/graph/node_marks.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/standard_runtime.h"

namespace thalweg {
namespace {

using testing_support::Planning;
using testing_support::TestGraph;

class InlinePassTest : public testing_support::StandardRuntimeTest {
 protected:
  using Build = std::function<Edge(Graph*, Edge)>;

  static Edge Add(Graph* g, const std::string& op, std::vector<Edge> in, std::map<std::string, AttrValue> attrs = {}) {
    NodeSpec spec;
    spec.op = op;
    spec.inputs = std::move(in);
    spec.attrs = std::move(attrs);
    auto node = g->AddNode(std::move(spec));
    EXPECT_TRUE(node.ok()) << node.status();
    return {*node, 0};
  }

  // A function of one float tensor of the shape.
  std::string Function(const std::string& name, const Build& build, const Shape& shape = Shape()) {
    FunctionSpec spec;
    spec.name = name;
    spec.body = Graph::Body(g_.graph());
    spec.args = {Add(spec.body.get(), "Placeholder", {}, {{"dtype", AttrValue::Type(TW_FLOAT)}, {"shape", AttrValue::OfShape(shape)}})};
    spec.results = {build(spec.body.get(), spec.args[0])};
    auto f = thalweg::Function::Make(std::move(spec));
    EXPECT_TRUE(f.ok()) << f.status();
    EXPECT_TRUE(g_.graph().functions()->Add(*f).ok());
    return name;
  }

  static Edge Call(Graph* g, const std::string& f, Edge x, const std::string& op = "PartitionedCall") {
    return Add(g, op, {x}, {{"f", AttrValue::Func(f)}, {"Tout", AttrValue::Types({TW_FLOAT})}});
  }

  // Returns the ops behind y after all passes up to this one.
  std::vector<std::string> Ops(Edge y) {
    Planning p(g_.graph(), {{x_}, {y}, {}}, {Shape({3})});
    p.Through("inline");
    EXPECT_TRUE(p.status.ok()) << p.status;
    std::vector<std::string> ops;
    for (const WorkNode& n : p.w.nodes) {
      if (n.node) ops.push_back(n.node->op().name);
      if (n.node && n.node->op().name == "Neg") within_ = n.within;
    }
    std::sort(ops.begin(), ops.end());
    return ops;
  }
  using Names = std::vector<std::string>;

  TestGraph g_{Shared()};
  Edge x_ = Add(&g_.graph(), "Placeholder", {}, {{"dtype", AttrValue::Type(TW_FLOAT)}, {"shape", AttrValue::OfShape(Shape({-1}))}});
  std::string within_;
};

Edge Neg(Graph* g, Edge x) {
  NodeSpec spec;
  spec.op = "Neg";
  spec.inputs = {x};
  return {*g->AddNode(std::move(spec)), 0};
}

TEST_F(InlinePassTest, CallsBecomeTheNodesOfTheirFunctions) {
  Function("f", Neg);
  const std::string g = Function("g", [&](Graph* body, Edge x) { return Add(body, "Mul", {Call(body, "f", x), x}); });
  const Edge once = Call(&g_.graph(), g, x_);
  EXPECT_EQ(Ops(Call(&g_.graph(), g, once)), (Names{"Mul", "Mul", "Neg", "Neg"}));
  EXPECT_NE(within_.find("function 'g': PartitionedCall"), std::string::npos) << within_;
  EXPECT_NE(within_.find("function 'f': "), std::string::npos) << within_;
}

TEST_F(InlinePassTest, AConditionWhoseAnswerIsKnownIsItsBranch) {
  Function("f", Neg);
  Function("same", [](Graph*, Edge x) { return x; });
  const auto choose = [&](double pred) {
    return Add(&g_.graph(), "StatelessIf", {g_.Const(*ScalarTensor(TW_BOOL, pred)), x_},
               {{"then_branch", AttrValue::Func("f")}, {"else_branch", AttrValue::Func("same")}, {"Tout", AttrValue::Types({TW_FLOAT})}});
  };
  EXPECT_EQ(Ops(choose(1)), (Names{"Const", "Neg"}));
  EXPECT_EQ(Ops(choose(0)), (Names{"Const"}));
  const Edge which = g_.Const(*ScalarTensor(TW_INT32, 7));
  EXPECT_EQ(Ops(Add(&g_.graph(), "StatelessCase", {which, x_},
                    {{"branches", AttrValue::Funcs({"same", "f"})}, {"Tout", AttrValue::Types({TW_FLOAT})}})),
            (Names{"Const", "Neg"}));
}

TEST_F(InlinePassTest, WhatCouldRunOtherwiseStaysACall) {
  const auto stays = [&](const std::string& f, const std::string& op = "PartitionedCall") {
    const Names ops = Ops(Call(&g_.graph(), f, x_, op));
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  };
  Function("f", Neg);
  EXPECT_FALSE(stays("f"));
  EXPECT_TRUE(stays("f", "StatefulPartitionedCall"));
  EXPECT_TRUE(stays(Function("with_an_effect", [](Graph* body, Edge x) {
    return Neg(body, Add(body, "CheckNumerics", {x}, {{"message", AttrValue::String("")}}));
  })));
  EXPECT_TRUE(stays(Function("of_other_sizes", Neg, Shape({2}))));
  EXPECT_TRUE(stays(Function("of_nothing", [](Graph* body, Edge) { return *body->AddConst(testing_support::Floats({1})); })));
  EXPECT_TRUE(stays(Function("again", [](Graph* body, Edge x) { return Call(body, "again", x); })));
}

TEST_F(InlinePassTest, AMarkedCallStaysACallAndSoDoesTheCallOfItsFunction) {
  Function("f", Neg);
  const auto marked = [](Graph* g, Edge x) {
    NodeSpec spec;
    spec.op = "PartitionedCall";
    spec.inputs = {x};
    spec.attrs = {{"f", AttrValue::Func("f")}, {"Tout", AttrValue::Types({TW_FLOAT})}};
    spec.extra_attrs[std::string(kNoInlineAttr)] = *SerializeAttr(AttrValue::Bool(true));
    return Edge{*g->AddNode(std::move(spec)), 0};
  };
  EXPECT_EQ(Ops(marked(&g_.graph(), x_)), (Names{"PartitionedCall"}));
  EXPECT_EQ(Ops(Call(&g_.graph(), Function("around", marked), x_)), (Names{"PartitionedCall"}));
}

TEST_F(InlinePassTest, NoGraphBecomesLargerThanAFewThousandNodes) {
  std::string f = Function("f0", Neg);
  for (int k = 1; k < 15; ++k) {
    f = Function("f" + std::to_string(k), [&](Graph* body, Edge x) { return Call(body, f, Call(body, f, x)); });
  }
  EXPECT_EQ(Ops(Call(&g_.graph(), f, x_)), Names{"PartitionedCall"});
}

}  // namespace
}  // namespace thalweg
