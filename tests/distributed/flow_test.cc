// Branches and loops whose nodes are on several tasks give the same bits as in one process.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/servers.h"

namespace thalweg::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Adds operations, either spread over several tasks or all in one process.
class Builder {
 public:
  Builder(tw::Scope& s, bool apart) : s_(s.c()), apart_(apart) {}
  const tw_operation* Do(int task, const char* type, const std::vector<tw_output>& in,
                         const std::function<void(tw_op*)>& more = nullptr) const {
    tw_op* op = tw_scope_begin(s_, type, nullptr);
    tw_op_add_inputs(op, in.data(), uint32_t(in.size()));
    if (apart_ && task >= 0) tw_op_set_device(op, Servers::task(task).c_str());
    if (more) more(op);
    return tw_scope_end_operation(s_, op);
  }
  tw_output Op(int task, const char* type, const std::vector<tw_output>& in, const std::function<void(tw_op*)>& more = nullptr) const {
    return tw_operation_output(Do(task, type, in, more), 0);
  }
  tw_output Enter(int task, tw_output value, const char* frame, bool constant = false) const {
    return Op(task, "Enter", {value}, [&](tw_op* op) {
      tw_op_set_string(op, "frame_name", frame, std::strlen(frame));
      tw_op_set_bool(op, "is_constant", constant);
    });
  }
  tw_output Const(int task, double value, const tw_operation* after) const {
    const tw::Tensor t{float(value)};
    return Op(task, "Const", {}, [&](tw_op* op) {
      tw_op_set_type(op, "dtype", TW_FLOAT);
      tw_op_set_tensor(op, "value", t.c());
      tw_op_add_control(op, after);
    });
  }

  // Places the operations that are added to the scope from here on.
  void On(tw::Scope& in, int task) const { in.on(apart_ ? Servers::task(task).c_str() : ""); }

 private:
  tw_scope* const s_;
  const bool apart_;
};

// A loop variable, from its Enter to its Exit.
struct Variable {
  const tw_operation* merge = nullptr;
  const tw_operation* choose = nullptr;
  int task;
  Variable(const Builder& b, int on, tw_output first, const char* frame) : task(on) {
    const tw_output enter = b.Enter(on, first, frame);
    merge = b.Do(on, "Merge", {enter, enter});
  }
  tw_output now() const { return tw_operation_output(merge, 0); }
  tw_output go(const Builder& b, tw_output cond) {
    choose = b.Do(task, "Switch", {now(), cond});
    return tw_operation_output(choose, 1);
  }
  tw_output leave(const Builder& b, tw::Graph& graph, tw_output next) const {
    graph.close_loop(merge, 1, b.Do(task, "NextIteration", {next}));
    return b.Op(task, "Exit", {tw_operation_output(choose, 0)});
  }
};

using Make = std::function<tw_output(tw::Graph&, tw::Scope&, const Builder&, tw_output x, tw_output n)>;

// Compares the values that `make` gives for x and n over tasks with those in one process.
void ExpectTheSame(int tasks, const Make& make, const std::vector<std::vector<float>>& xs, const std::vector<int>& ns) {
  Servers servers(tasks);
  tw::Runtime client = NewRuntime();
  std::vector<std::vector<float>> all[2];
  for (const bool apart : {false, true}) {
    tw::Graph graph(client);
    tw::Scope s(graph);
    const tw_output x = s.placeholder("x", TW_FLOAT, {-1}), n = s.placeholder("n", TW_FLOAT, {});
    const tw_output y = make(graph, s, Builder(s, apart), x, n);
    s.finish();
    tw::Session session = apart ? servers.session(graph) : tw::Session(graph);
    for (const auto& value : xs) {
      for (int times : ns) {
        const tw_run_options within = Within(20000);
        const auto out = session.run({{x, tw::Tensor({int64_t(value.size())}, value)}, {n, tw::Tensor(float(times))}}, {y}, {}, &within);
        all[apart].push_back(out[0].values<float>());
      }
    }
  }
  ASSERT_EQ(all[0].size(), all[1].size());
  for (size_t i = 0; i < all[0].size(); ++i) EXPECT_EQ(all[0][i], all[1][i]) << "run " << i;
}

const std::vector<std::vector<float>> kValues = {{.5f, -1.f, 2.f, .25f}, {3.f}};

class LoopTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Tasks, LoopTest, ::testing::Values(2, 4, 8));

// x goes through a node on each task in each iteration; the variables are on the first task and on
// the last.
TEST_P(LoopTest, OverTasksGivesWhatItGivesInOneProcess) {
  const int tasks = GetParam();
  ExpectTheSame(tasks,
                [&](tw::Graph& graph, tw::Scope& s, const Builder& b, tw_output x, tw_output n) {
                  Variable i(b, 0, b.Op(0, "Sub", {n, n}), "loop"), v(b, tasks - 1, x, "loop");
                  const tw_output most = b.Enter(-1, n, "loop", true),
                                  scale = b.Enter(1, b.Op(0, "Mul", {n, s.scalar(TW_FLOAT, .3)}), "loop", true);
                  const tw_output cond = b.Op(0, "LoopCond", {b.Op(0, "Less", {i.now(), most})});
                  const tw_output count = i.go(b, cond);
                  tw_output y = v.go(b, cond);
                  for (int k = 0; k < tasks; ++k) y = b.Op(k, "Tanh", {b.Op(k, "AddV2", {b.Op(k, "Mul", {y, scale}), count})});
                  i.leave(b, graph, b.Op(0, "AddV2", {count, b.Const(0, 1, i.choose)}));
                  return b.Op(1, "Neg", {v.leave(b, graph, y)});
                },
                kValues, {0, 1, 2, 25});
}

TEST_P(LoopTest, WithinALoopGivesWhatItGivesInOneProcess) {
  const int tasks = GetParam();
  ExpectTheSame(tasks,
                [&](tw::Graph& graph, tw::Scope&, const Builder& b, tw_output x, tw_output n) {
                  const tw_output zero = b.Op(0, "Sub", {n, n});
                  Variable i(b, 0, zero, "outer"), v(b, 1, x, "outer");
                  const tw_output most = b.Enter(-1, n, "outer", true);
                  const tw_output cond = b.Op(0, "LoopCond", {b.Op(0, "Less", {i.now(), most})});
                  const tw_output count = i.go(b, cond), y = v.go(b, cond);
                  // The inner loop runs as many iterations as the outer loop has done; its
                  // condition is on another task.
                  Variable j(b, tasks - 1, b.Op(tasks - 1, "Sub", {count, count}), "inner"), w(b, 0, y, "inner");
                  const tw_output until = b.Enter(-1, count, "inner", true);
                  const tw_output goes_on = b.Op(tasks - 1, "LoopCond", {b.Op(tasks - 1, "Less", {j.now(), until})});
                  const tw_output inner = j.go(b, goes_on);
                  const tw_output z = b.Op(1, "Sin", {b.Op(tasks - 1, "AddV2", {w.go(b, goes_on), inner})});
                  j.leave(b, graph, b.Op(tasks - 1, "AddV2", {inner, b.Const(tasks - 1, 1, j.choose)}));
                  const tw_output after = b.Op(1, "Mul", {w.leave(b, graph, z), count});
                  i.leave(b, graph, b.Op(0, "AddV2", {count, b.Const(0, 1, i.choose)}));
                  return v.leave(b, graph, b.Op(tasks - 1, "AddV2", {after, y}));
                },
                kValues, {0, 1, 5});
}

TEST(BranchTest, OverTasksGivesWhatItGivesInOneProcess) {
  ExpectTheSame(3,
                [](tw::Graph&, tw::Scope& s, const Builder& b, tw_output x, tw_output n) {
                  const tw_output many = b.Op(1, "Greater", {n, s.scalar(TW_FLOAT, 2)});
                  const tw_operation* choose = b.Do(0, "Switch", {x, many});
                  const tw_output no = b.Op(1, "Neg", {tw_operation_output(choose, 0)});
                  // A branch inside a branch.
                  const tw_output yes = b.Op(2, "Square", {tw_operation_output(choose, 1)});
                  const tw_output lots = b.Op(0, "Greater", {n, s.scalar(TW_FLOAT, 4)});
                  const tw_operation* again = b.Do(1, "Switch", {yes, lots});
                  const tw_output few = b.Op(0, "Exp", {tw_operation_output(again, 0)}),
                                  more = b.Op(2, "Sin", {tw_operation_output(again, 1)});
                  const tw_output merged = b.Op(1, "Merge", {no, b.Op(0, "Merge", {few, more})});
                  return b.Op(2, "AddV2", {merged, x});
                },
                kValues, {1, 3, 5});
}

TEST(BranchTest, WithALoopOverTasksInItGivesWhatItGivesInOneProcess) {
  ExpectTheSame(3,
                [](tw::Graph& graph, tw::Scope& s, const Builder& b, tw_output x, tw_output n) {
                  const tw_output many = b.Op(1, "Greater", {n, s.scalar(TW_FLOAT, 2)});
                  const tw_operation* choose = b.Do(0, "Switch", {x, many});
                  const tw_operation* times = b.Do(2, "Switch", {n, many});
                  const tw_output most = tw_operation_output(times, 1);
                  Variable i(b, 1, b.Op(1, "Sub", {most, most}), "loop"), v(b, 2, tw_operation_output(choose, 1), "loop");
                  const tw_output cond = b.Op(1, "LoopCond", {b.Op(1, "Less", {i.now(), b.Enter(1, most, "loop", true)})});
                  const tw_output count = i.go(b, cond), y = v.go(b, cond);
                  i.leave(b, graph, b.Op(1, "AddV2", {count, b.Const(1, 1, i.choose)}));
                  const tw_output last = v.leave(b, graph, b.Op(0, "Cos", {b.Op(2, "AddV2", {y, count})}));
                  return b.Op(0, "AddV2", {b.Op(1, "Merge", {b.Op(1, "Neg", {tw_operation_output(choose, 0)}), last}), x});
                },
                kValues, {1, 3, 7});
}

// The same through functions: the devices that the bodies request are respected.
TEST(FunctionalTest, LoopsAndBranchesOverTasksGiveWhatTheyGiveInOneProcess) {
  ExpectTheSame(4,
                [](tw::Graph&, tw::Scope& s, const Builder& b, tw_output x, tw_output n) {
                  const auto last = s.while_loop([&](tw::Scope& in, const tw::Values& v) { return in.op("Less", {v[0], n}); },
                                                 [&](tw::Scope& in, const tw::Values& v) {
                                                   b.On(in, 1);
                                                   const tw_output odd = in.op(
                                                       "Greater", {in.op("Mod", {v[0], in.scalar(TW_FLOAT, 2)}), in.scalar(TW_FLOAT, 0)});
                                                   const tw_output y = in.op("Mul", {v[1], in.scalar(TW_FLOAT, .5)});
                                                   const auto chosen = in.cond(
                                                       odd,
                                                       [&](tw::Scope& deep) {
                                                         b.On(deep, 2);
                                                         return tw::Values{deep.op("Sin", {y})};
                                                       },
                                                       [&](tw::Scope& deep) {
                                                         b.On(deep, 3);
                                                         return tw::Values{deep.op("AddV2", {y, v[0]})};
                                                       });
                                                   b.On(in, 0);
                                                   return tw::Values{in.op("AddV2", {v[0], in.scalar(TW_FLOAT, 1)}), chosen[0]};
                                                 },
                                                 {s.scalar(TW_FLOAT, 0), x});
                  return last[1];
                },
                kValues, {0, 1, 6});
}

// Out-of-range branch numbers choose the last branch. There are branches in a loop, and a branch
// with a side effect.
TEST(FunctionalTest, BranchesByNumberOverTasksGiveWhatTheyGiveInOneProcess) {
  ExpectTheSame(4,
                [](tw::Graph&, tw::Scope& s, const Builder& b, tw_output x, tw_output n) {
                  const tw_output number = b.Op(0, "Cast", {b.Op(0, "Sub", {n, s.scalar(TW_FLOAT, 1)})},
                                                [](tw_op* op) { tw_op_set_type(op, "DstT", TW_INT32); });
                  const auto choose = [&](tw::Scope& at, tw_output index, tw_output y) {
                    std::vector<std::function<tw::Values(tw::Scope&)>> branches;
                    for (int k = 0; k < 4; ++k) {
                      branches.push_back([&, k, y](tw::Scope& in) {
                        b.On(in, k);
                        return tw::Values{in.op("AddV2", {in.op(k % 2 ? "Sin" : "Tanh", {y}), in.scalar(TW_FLOAT, k)})};
                      });
                    }
                    return at.switch_case(index, branches)[0];
                  };
                  const tw_output once = choose(s, number, x);
                  const auto last = s.while_loop([&](tw::Scope& in, const tw::Values& v) { return in.op("Less", {v[0], n}); },
                                                 [&](tw::Scope& in, const tw::Values& v) {
                                                   const tw_output turn =
                                                       in.op("Cast", {v[0]}, [](tw_op* op) { tw_op_set_type(op, "DstT", TW_INT32); });
                                                   const tw_output next = choose(in, turn, v[1]);
                                                   b.On(in, 0);
                                                   return tw::Values{in.op("AddV2", {v[0], in.scalar(TW_FLOAT, 1)}), next};
                                                 },
                                                 {s.scalar(TW_FLOAT, 0), once});
                  const tw_output loss = s.op("Sum", {once, s.ints({0})});
                  return s.op("AddV2", {s.gradients(loss, {x})[0].values, last[1]});
                },
                kValues, {0, 1, 2, 3, 4, 6});
}

TEST_F(OneCluster, OfBranchesByNumberOnlyTheChosenOneHasItsEffectOnItsTask) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  std::vector<tw_output> counts;
  for (int k = 0; k < 3; ++k) {
    s.on(Servers::task(k).c_str());
    counts.push_back(s.variable(("count" + std::to_string(k)).c_str(), s.scalar(TW_FLOAT, 0)));
  }
  s.on("");
  const tw_output number = s.placeholder("number", TW_INT32, {});
  std::vector<std::function<tw::Values(tw::Scope&)>> branches;
  for (int k = 0; k < 3; ++k) {
    branches.push_back([&, k](tw::Scope& in) {
      Builder(in, true).Do(k, "AssignAddVariableOp", {counts[size_t(k)], in.scalar(TW_FLOAT, 1)});
      return tw::Values{in.scalar(TW_FLOAT, 10 * k)};
    });
  }
  const tw_output chosen = s.switch_case(number, branches)[0];
  const tw_operation* start = s.initializer();
  std::vector<tw_output> reads;
  for (const tw_output v : counts) reads.push_back(s.read(v));
  s.finish();
  tw::Session session = servers_.session(graph);
  session.run({}, {}, {start});
  for (const int k : {0, 1, 2, 1, 7, -1}) {
    const float expected = k < 0 || k > 2 ? 20 : float(10 * k);
    EXPECT_THAT(session.run({{number, tw::Tensor(k)}}, {chosen})[0].values<float>(), ElementsAre(expected)) << k;
  }
  const auto found = session.run({}, reads);
  EXPECT_THAT(found[0].values<float>(), ElementsAre(1));
  EXPECT_THAT(found[1].values<float>(), ElementsAre(2));
  EXPECT_THAT(found[2].values<float>(), ElementsAre(3));
}

TEST(FunctionalTest, GradientsThroughALoopOverTasksAreThoseOfOneProcess) {
  ExpectTheSame(3,
                [](tw::Graph&, tw::Scope& s, const Builder& b, tw_output x, tw_output n) {
                  const auto last = s.while_loop([&](tw::Scope& in, const tw::Values& v) { return in.op("Less", {v[0], n}); },
                                                 [&](tw::Scope& in, const tw::Values& v) {
                                                   b.On(in, 1);
                                                   const tw_output y = in.op("Tanh", {in.op("Mul", {v[1], x})});
                                                   b.On(in, 2);
                                                   const tw_output z = in.op("AddV2", {in.op("Sin", {y}), v[0]});
                                                   b.On(in, 0);
                                                   return tw::Values{in.op("AddV2", {v[0], in.scalar(TW_FLOAT, 1)}), z};
                                                 },
                                                 {s.scalar(TW_FLOAT, 0), x});
                  const tw_output loss = s.op("Sum", {last[1], s.ints({0})});
                  return s.op("AddV2", {s.gradients(loss, {x})[0].values, last[1]});
                },
                kValues, {0, 1, 6});
}

// The loop's nodes are Enter, Merge and so on; its gradient is built from an equivalent form that
// calls functions.
TEST(FunctionalTest, GradientsThroughALoopOfPrimitivesOverTasksAreThoseOfOneProcess) {
  ExpectTheSame(3,
                [](tw::Graph& graph, tw::Scope& s, const Builder& b, tw_output x, tw_output n) {
                  Variable i(b, 0, b.Op(0, "Sub", {n, n}), "loop"), v(b, 2, x, "loop");
                  const tw_output most = b.Enter(-1, n, "loop", true), scale = b.Enter(-1, x, "loop", true);
                  const tw_output cond = b.Op(0, "LoopCond", {b.Op(0, "Less", {i.now(), most})});
                  const tw_output count = i.go(b, cond);
                  const tw_output y = b.Op(1, "Tanh", {b.Op(1, "Mul", {v.go(b, cond), scale})}), z = b.Op(2, "AddV2", {y, count});
                  i.leave(b, graph, b.Op(0, "AddV2", {count, b.Const(0, 1, i.choose)}));
                  const tw_output last = v.leave(b, graph, z);
                  const tw_output loss = s.op("Sum", {b.Op(1, "Square", {last}), s.ints({0})});
                  return s.op("AddV2", {s.gradients(loss, {x})[0].values, last});
                },
                kValues, {0, 1, 6});
}

TEST_F(OneCluster, EffectsInALoopHappenOnceInEachIteration) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  s.on(Servers::task(2).c_str());
  const tw_output total = s.variable("total", s.scalar(TW_FLOAT, 0));
  s.on("");
  const tw_output n = s.placeholder("n", TW_FLOAT, {});
  const auto last = s.while_loop([&](tw::Scope& in, const tw::Values& v) { return in.op("Less", {v[0], n}); },
                                 [&](tw::Scope& in, const tw::Values& v) {
                                   in.on(Servers::task(1).c_str());
                                   const tw_output twice = in.op("AddV2", {v[0], v[0]});
                                   in.on(Servers::task(2).c_str());
                                   tw_op* add = tw_scope_begin(in.c(), "AssignAddVariableOp", nullptr);
                                   const tw_output values[] = {total, twice};
                                   tw_op_add_inputs(add, values, 2);
                                   tw_scope_end_operation(in.c(), add);
                                   in.on("");
                                   return tw::Values{in.op("AddV2", {v[0], in.scalar(TW_FLOAT, 1)})};
                                 },
                                 {s.scalar(TW_FLOAT, 0)});
  const tw_operation* start = s.initializer();
  const tw_output read = s.read(total);
  s.finish();
  tw::Session session = servers_.session(graph);
  session.run({}, {}, {start});
  for (int round = 1; round <= 3; ++round) {
    EXPECT_THAT(session.run({{n, tw::Tensor(10.f)}}, {last[0]})[0].values<float>(), ElementsAre(10));
    EXPECT_THAT(session.run({}, {read})[0].values<float>(), ElementsAre(float(90 * round)));
  }
}

TEST_F(OneCluster, AFailureInALoopNamesTheTaskAndTheIteration) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output n = s.placeholder("n", TW_FLOAT, {});
  const auto last = s.while_loop([&](tw::Scope& in, const tw::Values& v) { return in.op("Less", {v[0], n}); },
                                 [&](tw::Scope& in, const tw::Values& v) {
                                   in.on(Servers::task(1).c_str());
                                   const tw_output small =
                                       in.op("CheckNumerics", {in.op("Log", {in.op("Sub", {in.scalar(TW_FLOAT, 3), v[0]})})},
                                             [](tw_op* op) { tw_op_set_string(op, "message", "too many", 8); });
                                   in.on(Servers::task(2).c_str());
                                   const tw_output next = in.op("AddV2", {v[0], in.op("Sub", {small, small})});
                                   return tw::Values{in.op("AddV2", {next, in.scalar(TW_FLOAT, 1)})};
                                 },
                                 {s.scalar(TW_FLOAT, 0)});
  s.finish();
  tw::Session session = servers_.session(graph);
  for (int round = 0; round < 3; ++round) {
    const Failure f = FailureOf([&] { session.run({{n, tw::Tensor(10.f)}}, {last[0]}); });
    EXPECT_EQ(f.code, uint32_t{TW_INVALID_ARGUMENT});
    EXPECT_THAT(f.text, HasSubstr("task /job:worker/task:1 at " + servers_.address(1)));
    EXPECT_THAT(f.text, HasSubstr("iteration 3"));
    EXPECT_LT(f.seconds, 2);
    EXPECT_THAT(session.run({{n, tw::Tensor(2.f)}}, {last[0]})[0].values<float>(), ElementsAre(2));
  }
}

TEST_F(OneCluster, ALoopWithoutAnEndEndsAtTheDeadlineOnAllTasks) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output n = s.placeholder("n", TW_FLOAT, {});
  const auto last = s.while_loop([&](tw::Scope& in, const tw::Values& v) { return in.op("Less", {v[0], n}); },
                                 [&](tw::Scope& in, const tw::Values& v) {
                                   in.on(Servers::task(1).c_str());
                                   const tw_output a = in.op("AddV2", {v[0], in.scalar(TW_FLOAT, 1)});
                                   in.on(Servers::task(2).c_str());
                                   return tw::Values{in.op("Minimum", {a, in.scalar(TW_FLOAT, 5)})};
                                 },
                                 {s.scalar(TW_FLOAT, 0)});
  s.finish();
  tw::Session session = servers_.session(graph);
  for (int round = 0; round < 3; ++round) {
    const tw_run_options within = Within(200);
    const Failure f = FailureOf([&] { session.run({{n, tw::Tensor(100.f)}}, {last[0]}, {}, &within); });
    EXPECT_EQ(f.code, uint32_t{TW_DEADLINE_EXCEEDED}) << f.text;
    EXPECT_LT(f.seconds, 1.2);
    EXPECT_THAT(session.run({{n, tw::Tensor(4.f)}}, {last[0]})[0].values<float>(), ElementsAre(4));
  }
}

// The client carries values from one part of a step to another; no node runs twice, on any task.
TEST_F(OneCluster, AStepMayBeRunInPartsOverTasks) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const Builder b(s, true);
  s.on(Servers::task(2).c_str());
  const tw_output v = s.variable("v", s.scalar(TW_FLOAT, 0));
  s.on("");
  const tw_output x = s.placeholder("x", TW_FLOAT, {}), y = s.placeholder("y", TW_FLOAT, {});
  const tw_output first = b.Op(1, "Square", {x});
  const tw_operation* add = b.Do(-1, "AssignAddVariableOp", {v, first});
  const tw_output second = b.Op(0, "AddV2", {b.Op(1, "Mul", {first, y}), y}, [&](tw_op* op) { tw_op_add_control(op, add); });
  const tw_output read = b.Op(-1, "ReadVariableOp", {v}, [&](tw_op* op) {
    tw_op_set_type(op, "dtype", TW_FLOAT);
    tw_op_add_control(op, add);
  });
  const tw_operation* start = s.initializer();
  s.finish();
  tw::Session session = servers_.session(graph);
  session.run({}, {}, {start});
  for (int round = 1; round <= 3; ++round) {
    tw::PartialRun run(session, {x, y}, {first, second, read}, {add});
    EXPECT_THAT(run({{x, tw::Tensor(3.f)}}, {first}, {add})[0].values<float>(), ElementsAre(9));
    EXPECT_THAT(run({{y, tw::Tensor(2.f)}}, {second})[0].values<float>(), ElementsAre(20));
    EXPECT_THAT(run({}, {read})[0].values<float>(), ElementsAre(float(9 * round)));
    EXPECT_EQ(run.left(), 0u);
  }
}

}  // namespace
}  // namespace thalweg::testing
