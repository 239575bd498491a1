// The C++ sugar over the application API.
#include "gtest/gtest.h"

#include "thalweg/cpp/plugin.hpp"  // both kinds of sugar in one file
#include "thalweg/cpp/thalweg.hpp"

TEST(CppTest, AProgramIsAFewLines) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_output y = s.op("Add", {s.op("Mul", {x, x}), s.scalar(TW_FLOAT, 1)});
  s.finish();
  tw::Session session(graph);
  EXPECT_EQ(session.run({{x, tw::Tensor(3.0f)}}, {y})[0].text(), "10");
}

TEST(CppTest, AttributesAreDescribedInPlace) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output a = s.constant(tw::Tensor({2, 2}, std::vector<float>{1, 2, 3, 4}));
  const tw_output y = s.op("MatMul", {a, a}, [](tw_op* op) { tw_op_set_bool(op, "transpose_a", 1); }, "product");
  s.finish();
  EXPECT_EQ(graph.output("product"), y);
  tw::Session session(graph, {"threads=1"});
  EXPECT_EQ(session.run({}, {y})[0].values<float>(), (std::vector<float>{10, 14, 14, 20}));
}

TEST(CppTest, FailuresAreThrownWithTheirCode) {
  tw::Graph graph;
  try {
    graph.find("nobody");
    FAIL();
  } catch (const tw::StatusError& e) {
    EXPECT_EQ(e.code(), uint32_t(TW_NOT_FOUND));
    EXPECT_NE(std::string(e.what()).find("nobody"), std::string::npos);
  }
  tw::Scope s(graph);
  s.op("Nonsense", {});
  EXPECT_THROW(s.finish(), tw::StatusError);
  EXPECT_THROW(tw::Tensor(1.0f).data<int32_t>(), tw::StatusError);
}

TEST(CppTest, GraphsTravelAsBytes) {
  tw::Graph graph, copy;
  tw::Scope s(graph);
  s.name("y", s.op("Neg", {s.placeholder("x", TW_DOUBLE, {-1})}));
  s.finish();
  copy.import_graph_def(graph.graph_def(), "in");
  EXPECT_NE(copy.find("in/y"), nullptr);
}

TEST(CppTest, TensorsShareAndMove) {
  tw::Tensor a(std::string("text")), b = a, c = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_EQ(b.c(), c.c());
  EXPECT_EQ(c.string(), "text");
  EXPECT_EQ(tw::Tensor({2}, std::vector<int64_t>{1, 2}).dims(), std::vector<int64_t>{2});
}
