// Sessions over several servers in one process, over the transport that the test is compiled for:
// where operations run.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/sessions.h"

namespace thalweg::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(SessionTest, NodesRunOnTheirTasksAndValuesGoBetweenThem) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {-1});
  const tw_output a = On(s, kW0, "AddV2", {x, s.scalar(TW_FLOAT, 1)});
  const tw_output b = On(s, kPs, "Mul", {a, a});
  const tw_output c = On(s, kW1, "Sub", {b, x});
  const tw_output d = On(s, kW0, "AddN", {a, b, c});
  s.finish();
  tw::Session session = NewSession(graph);
  for (int round = 0; round < 3; ++round) {
    const auto out = session.run({{x, tw::Tensor({2}, std::vector<float>{1, 2})}}, {d, c, x, a, d});
    EXPECT_THAT(out[0].values<float>(), ElementsAre(2 + 4 + 3, 3 + 9 + 7));
    EXPECT_THAT(out[1].values<float>(), ElementsAre(3, 7));
    EXPECT_THAT(out[2].values<float>(), ElementsAre(1, 2));
    EXPECT_THAT(out[3].values<float>(), ElementsAre(2, 3));
    EXPECT_THAT(out[4].values<float>(), ElementsAre(9, 19));
  }
  // Any intermediate value may be fed, also with another shape.
  const auto fed = session.run({{b, tw::Tensor({1}, std::vector<float>{10})}, {x, tw::Tensor({1}, std::vector<float>{4})}}, {c});
  EXPECT_THAT(fed[0].values<float>(), ElementsAre(6));
  EXPECT_EQ(session.report().steps, 4u);
}

// A task with one thread: its waiting steps must not block the thread that receives their values.
TEST_P(SessionTest, ATaskOfOneThreadWaitsForOthersInTheMiddleOfItsSteps) {
  w0_ = NewTarget();
  ps_ = std::make_unique<Server>(NewRuntime({"threads=1"}), cluster_, "ps", 0);
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const int64_t dims[] = {1};
  const tw_output x = tw_scope_placeholder(s.c(), "x", TW_FLOAT, dims, 1);
  const tw_output there = On(s, kPs, "Neg", {x}), here = On(s, kW0, "Neg", {there}), back = On(s, kPs, "Neg", {here});
  s.finish();
  tw::Session session = NewSession(graph);
  const tw_run_options within = Within(5000);
  for (int i = 0; i < 20; ++i) {
    const tw::Tensor value({1}, std::vector<float>{float(i)});
    EXPECT_THAT(session.run({{x, value}}, {back}, {}, &within)[0].values<float>(), ElementsAre(float(-i)));
  }
}

TEST_P(SessionTest, ControlEdgesAndStringsGoBetweenTasks) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output v = Variable(s, kPs, id_);
  const tw_operation* init = Do(s, "", "AssignVariableOp", {v, s.scalar(TW_FLOAT, 5)});
  const tw_operation* between = Do(s, kW1, "NoOp", {}, [&](tw_op* op) { tw_op_add_control(op, init); });
  const tw_operation* add =
      Do(s, "", "AssignAddVariableOp", {v, s.scalar(TW_FLOAT, 1)}, [&](tw_op* op) { tw_op_add_control(op, between); });
  const tw_output read = On(s, "", "ReadVariableOp", {v}, [&](tw_op* op) {
    tw_op_set_type(op, "dtype", TW_FLOAT);
    tw_op_add_control(op, add);
  });
  const tw_output text = On(s, kPs, "AsString", {On(s, kPs, "Cast", {read}, [](tw_op* op) { tw_op_set_type(op, "DstT", TW_INT32); })});
  const tw_output twice = On(s, kW1, "StringJoin", {text, text});
  s.finish();
  tw::Session session = NewSession(graph);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(session.run({}, {twice})[0].string(), "66");
}

TEST_P(SessionTest, StateIsWhereItsHandleIsAndClientsShareIt) {
  StartAll();
  std::vector<std::thread> threads;
  constexpr int kClients = 4, kSteps = 25;
  const auto client = [this](bool init, int steps) {
    tw::Runtime runtime = NewRuntime({"threads=1"});
    tw::Graph graph(runtime);
    tw::Scope s(graph);
    const tw_output v = Variable(s, kPs, id_);
    const tw_operation* assign = Do(s, "", "AssignVariableOp", {v, s.scalar(TW_FLOAT, 0)});
    // The added value is computed on another task.
    const tw_operation* add = Do(s, "", "AssignAddVariableOp", {v, On(s, kW1, "AddV2", {s.scalar(TW_FLOAT, 0), s.scalar(TW_FLOAT, 1)})});
    const tw_output read = Read(s, v);
    s.finish();
    tw::Session session = NewSession(graph);
    if (init) session.run({}, {}, {assign});
    for (int i = 0; i < steps; ++i) session.run({}, {}, {add});
    return session.run({}, {read})[0].values<float>()[0];
  };
  EXPECT_EQ(client(true, 0), 0);
  for (int i = 0; i < kClients; ++i) threads.emplace_back([&] { client(false, kSteps); });
  for (auto& t : threads) t.join();
  EXPECT_EQ(client(false, 0), kClients * kSteps);
}

TEST_P(SessionTest, AResetEmptiesTheContainerAtEveryTask) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output v[] = {Variable(s, kPs, "v"), Variable(s, kW1, "w")};
  const Queue queue(s, kW1, "q");
  const tw_operation* put = Do(s, "", "QueueEnqueueV2", {queue.handle, s.scalar(TW_FLOAT, 5)});
  std::vector<const tw_operation*> assign;
  for (tw_output handle : v) assign.push_back(Do(s, "", "AssignVariableOp", {handle, s.scalar(TW_FLOAT, 7)}));
  const tw_output reads[] = {Read(s, v[0]), Read(s, v[1])};
  s.finish();
  tw::Session session = NewSession(graph), same = NewSession(graph), other = NewSession(graph, {"container=other"});
  const auto fails = [](tw::Session& in, tw_output what) {
    try {
      in.run({}, {what});
      return std::string();
    } catch (const tw::StatusError& e) {
      EXPECT_EQ(e.code(), uint32_t{TW_FAILED_PRECONDITION});
      return std::string(e.what());
    }
  };
  other.run({}, {}, assign);
  for (int round = 0; round < 2; ++round) {
    session.run({}, {}, assign);
    session.run({}, {}, {put});
    EXPECT_THAT(same.run({}, {reads[1]})[0].values<float>(), ElementsAre(7));
    EXPECT_EQ(round ? tw::cluster_reset(client_, {Target().c_str()}) : session.reset(), 3u);
    for (tw_output read : reads) EXPECT_THAT(fails(same, read), HasSubstr("not initialised"));
    session.run({}, {}, {put});
    EXPECT_THAT(same.run({}, {queue.element})[0].values<float>(), ElementsAre(5));
    for (tw_output read : reads) EXPECT_THAT(other.run({}, {read})[0].values<float>(), ElementsAre(7));
  }
  EXPECT_EQ(session.reset("other"), 2u);
  EXPECT_THAT(fails(other, reads[0]), HasSubstr("not initialised"));

  // The error names a task that does not answer; the other tasks have run the operation.
  session.run({}, {}, assign);
  w1_.reset();
  try {
    tw::cluster_reset(client_, {Target().c_str()}, "", 5'000'000'000);
    ADD_FAILURE() << "there is no second worker";
  } catch (const tw::StatusError& e) {
    EXPECT_THAT(e.what(), HasSubstr("2 of 3 tasks have reset it; reset of container 'localhost' at task /job:worker/task:1"));
  }
  tw::Session again = NewSession(graph);
  EXPECT_THAT(fails(again, reads[0]), HasSubstr("not initialised"));
}

// The values have the same bits as in one process. A value assigned without a shape check may
// differ in shape from the variable's declaration, wherever it is read.
TEST_P(SessionTest, ValuesBehindReferencesHaveTheShapeThatTheyHave) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output v = On(s, kPs, "VariableV2", {}, [](tw_op* op) {
    tw_op_set_type(op, "dtype", TW_FLOAT);
    tw_op_set_shape(op, "shape", nullptr, 0);
  });
  const tw_output three = On(s, kPs, "Identity", {s.constant(tw::Tensor({3}, std::vector<float>{1, 2, 3}))});
  const tw_output assigned = On(s, kPs, "Assign", {v, three}, [](tw_op* op) { tw_op_set_bool(op, "validate_shape", false); });
  const tw_output neg = On(s, kW1, "Neg", {v}), shape = On(s, kW1, "Shape", {On(s, kPs, "Identity", {v})});
  s.finish();
  tw::Session session = NewSession(graph);
  session.run({}, {assigned});
  const auto out = session.run({}, {neg, shape});
  EXPECT_THAT(out[0].values<float>(), ElementsAre(-1, -2, -3));
  EXPECT_THAT(out[1].values<int32_t>(), ElementsAre(3));
}

TEST_P(SessionTest, ConstantsThatDecideShapesMayBeFed) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {4}), dims = s.ints({2, 2});
  const tw_output square = On(s, kPs, "Reshape", {x, dims}), neg = On(s, kW1, "Neg", {On(s, kPs, "Abs", {square})});
  s.finish();
  tw::Session session = NewSession(graph);
  const tw::Tensor four({4}, std::vector<float>{1, -2, 3, 4});
  EXPECT_THAT(session.run({{x, four}}, {neg})[0].dims(), ElementsAre(2, 2));
  const auto out = session.run({{x, four}, {dims, tw::Tensor({2}, std::vector<int32_t>{4, 1})}}, {neg});
  EXPECT_THAT(out[0].dims(), ElementsAre(4, 1));
  EXPECT_THAT(out[0].values<float>(), ElementsAre(-1, -2, -3, -4));
}

TEST_P(SessionTest, TrainingWithParametersElsewhereIsTheSameAsInOneProcess) {
  StartAll();
  const auto train = [this](bool apart) {
    tw::Graph graph(client_);
    tw::Scope s(graph);
    const std::string name = id_ + (apart ? "a" : "b");
    const tw_output w = Variable(s, apart ? kPs : "", name, {3, 2});
    const tw_operation* init =
        Do(s, "", "AssignVariableOp", {w, s.constant(tw::Tensor({3, 2}, std::vector<float>{.1f, -.2f, .3f, .4f, -.5f, .6f}))});
    const tw_output x = s.placeholder("x", TW_FLOAT, {-1, 3}), y = s.placeholder("y", TW_FLOAT, {-1, 2}), read = Read(s, w);
    const tw_output logits = On(s, apart ? kW1 : "", "Tanh", {On(s, apart ? kW1 : "", "MatMul", {x, read})});
    const tw_output wrong = On(s, apart ? kW1 : "", "SquaredDifference", {logits, y});
    const tw_output loss = On(s, apart ? kW1 : "", "Mean", {wrong, s.ints({0, 1})});
    const auto gradients = s.gradients(loss, {read});
    const tw_operation* step = Do(s, "", "ResourceApplyGradientDescent", {w, s.scalar(TW_FLOAT, .3), gradients[0].values});
    s.finish();
    tw::Session session = apart ? NewSession(graph) : tw::Session(graph);
    session.run({}, {}, {init});
    std::vector<float> losses;
    for (int i = 0; i < 20; ++i) {
      std::vector<float> in(12), want(8);
      for (size_t k = 0; k < in.size(); ++k) in[k] = float((i * 7 + int(k) * 3) % 11) / 10;
      for (size_t k = 0; k < want.size(); ++k) want[k] = float((i + int(k)) % 3) / 2;
      losses.push_back(session.run({{x, tw::Tensor({4, 3}, in)}, {y, tw::Tensor({4, 2}, want)}}, {loss}, {step})[0].values<float>()[0]);
    }
    const auto last = session.run({}, {read})[0].values<float>();
    losses.insert(losses.end(), last.begin(), last.end());
    return losses;
  };
  const std::vector<float> here = train(false), there = train(true);
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) EXPECT_EQ(here[i], there[i]) << i;
  EXPECT_LT(here[19], here[0]);
}

TEST_P(SessionTest, AGraphThatGrowsIsToldPieceByPiece) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  tw_output x = On(s, kW0, "Neg", {s.scalar(TW_FLOAT, 1)});
  tw::Session session = NewSession(graph);
  for (int i = 0; i < 12; ++i) {
    x = On(s, i % 3 == 0 ? kW0 : i % 3 == 1 ? kPs : kW1, "AddV2", {x, s.scalar(TW_FLOAT, 1)});
    EXPECT_THAT(session.run({}, {x})[0].values<float>(), ElementsAre(float(i)));
  }
  s.finish();
}

TEST_P(SessionTest, SignaturesBeyondMaxPlansAreForgottenAndToldAgain) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  std::vector<tw_output> all;
  for (int i = 0; i < 5; ++i) all.push_back(On(s, i % 2 ? kPs : kW1, "AddV2", {s.scalar(TW_FLOAT, i), s.scalar(TW_FLOAT, 1)}));
  s.finish();
  tw::Session session = NewSession(graph, {"max_plans=2"});
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) EXPECT_THAT(session.run({}, {all[size_t(i)]})[0].values<float>(), ElementsAre(float(i + 1)));
  }
  EXPECT_EQ(session.report().signatures, 2u);
}

TEST_P(SessionTest, BranchesAndLoopsRunWhereTheirNodesAre) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_output positive = On(s, kW0, "Greater", {x, s.scalar(TW_FLOAT, 0)});
  // Only the first node of the branch has a device.
  const tw_output no = On(s, kPs, "Switch", {x, positive});
  const tw_output yes = tw_scope_output(s.c(), no, 1);
  const tw_output merged = s.op("Merge", {On(s, "", "Neg", {no}), On(s, "", "Square", {yes})});
  const tw_output out = On(s, kW1, "AddV2", {merged, s.scalar(TW_FLOAT, 1)});
  s.finish();
  tw::Session session = NewSession(graph);
  EXPECT_THAT(session.run({{x, tw::Tensor(3.0f)}}, {out})[0].values<float>(), ElementsAre(10));
  EXPECT_THAT(session.run({{x, tw::Tensor(-3.0f)}}, {out})[0].values<float>(), ElementsAre(4));
}

TEST_P(SessionTest, RunsThatNobodyWaitsForEndWithACallback) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_output y = On(s, kPs, "Neg", {On(s, kW1, "Neg", {x})});
  s.finish();
  tw::Session session = NewSession(graph);
  struct Result {
    std::atomic<int> ended{0}, wrong{0};
  } result;
  tw_signature what = {};
  what.size = sizeof what;
  what.feeds = &x;
  what.n_feeds = 1;
  what.fetches = &y;
  what.n_fetches = 1;
  tw_callable* callable = nullptr;
  tw::raise(tw_callable_create(session.c(), &what, &callable));
  constexpr int kRuns = 40;
  const tw::Tensor one(1.0f);
  tw_tensor* feed = one.c();
  for (int i = 0; i < kRuns; ++i) {
    tw::raise(tw_callable_run_async(
        callable, &feed, nullptr,
        [](void* user, tw_status* status, tw_tensor** fetches) {
          auto* r = static_cast<Result*>(user);
          if (status || *static_cast<const float*>(tw_tensor_data(fetches[0])) != 1) ++r->wrong;
          tw_status_release(status);
          tw_tensor_release(fetches[0]);
          ++r->ended;
        },
        &result));
  }
  while (result.ended < kRuns) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(result.wrong, 0);
  tw_callable_destroy(callable);
}

INSTANTIATE_TEST_SUITE_P(, SessionTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& beside) { return beside.param ? "BesideItsTarget" : "Apart"; });

}  // namespace
}  // namespace thalweg::testing
