// Sessions over several servers in one process, each with a runtime of its own, over the transport that it is compiled for.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/addresses.h"
#include "thalweg/cpp/thalweg.hpp"
#include "thalweg/thalweg.h"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

tw::Runtime NewRuntime(const std::vector<const char*>& options = {"threads=2"}) {
  tw::Runtime runtime(options);
  runtime.load_plugin(Transport());
  return runtime;
}

struct Server : tw::Server {
  Server(const std::string& cluster, const char* job, uint32_t task, const std::vector<const char*>& options = {})
      : Server(NewRuntime(), cluster, job, task, options) {}
  Server(const tw::Runtime& runtime, const std::string& cluster, const char* job, uint32_t task,
         const std::vector<const char*>& options = {})
      : tw::Server(runtime, cluster, job, task, options) {}
};

// A cluster of one parameter server and two workers; its addresses are its own. The client is a program of its own, or in that of its
// target, worker 0, over whose runtime it runs its steps there.
class SessionTest : public testing::TestWithParam<bool> {
 protected:
  bool beside() const { return GetParam(); }
  std::unique_ptr<Server> NewTarget() const {
    return beside() ? std::make_unique<Server>(client_, cluster_, "worker", 0) : std::make_unique<Server>(cluster_, "worker", 0);
  }
  SessionTest() {
    static std::atomic<int> count{0};
    id_ = "t" + std::to_string(getpid()) + "-" + std::to_string(++count);
    p_ = NewAddress(id_ + "-p");
    at_w0_ = NewAddress(id_ + "-w0");
    at_w1_ = NewAddress(id_ + "-w1");
    cluster_ = R"({"ps": [")" + p_ + R"("], "worker": [")" + at_w0_ + R"(", ")" + at_w1_ + R"("]})";
  }
  void StartAll() {
    ps_ = std::make_unique<Server>(cluster_, "ps", 0);
    w0_ = NewTarget();
    w1_ = std::make_unique<Server>(cluster_, "worker", 1);
  }
  std::string Target() const { return "target=" + at_w0_; }
  tw::Session NewSession(const tw::Graph& graph, std::vector<const char*> options = {}) const {
    const std::string target = Target();
    options.push_back(target.c_str());
    return tw::Session(graph, options);
  }
  std::string id_, cluster_, p_, at_w0_, at_w1_;
  tw::Runtime client_ = NewRuntime();
  std::unique_ptr<Server> ps_, w0_, w1_;
};

constexpr const char *kPs = "/job:ps/task:0", *kW0 = "/job:worker/task:0", *kW1 = "/job:worker/task:1";

using Describe = std::function<void(tw_op*)>;

tw_output On(tw::Scope& s, const char* device, const char* type, const std::vector<tw_output>& in, const Describe& more = nullptr,
             const char* name = nullptr) {
  const auto describe = [&](tw_op* op) {
    tw_op_set_device(op, device);
    if (more) more(op);
  };
  return s.op(type, in, describe, name);
}

// The same where the operation matters.
const tw_operation* Do(tw::Scope& s, const char* device, const char* type, const std::vector<tw_output>& in,
                       const Describe& more = nullptr) {
  tw_op* op = tw_scope_begin(s.c(), type, nullptr);
  tw_op_add_inputs(op, in.data(), uint32_t(in.size()));
  tw_op_set_device(op, device);
  if (more) more(op);
  return tw_scope_end_operation(s.c(), op);
}

tw_output Variable(tw::Scope& s, const char* device, const std::string& name, const std::vector<int64_t>& dims = {}) {
  return On(s, device, "VarHandleOp", {}, [&](tw_op* op) {
    tw_op_set_type(op, "dtype", TW_FLOAT);
    tw_op_set_shape(op, "shape", dims.data(), int32_t(dims.size()));
    tw_op_set_string(op, "shared_name", name.data(), name.size());
  });
}
tw_output Read(tw::Scope& s, tw_output handle) {
  return On(s, "", "ReadVariableOp", {handle}, [](tw_op* op) { tw_op_set_type(op, "dtype", TW_FLOAT); });
}

// A queue that stays empty until something is put into it.
struct Queue {
  Queue(tw::Scope& s, const char* device, const std::string& name)
      : handle(On(s, device, "FIFOQueueV2", {},
                  [&](tw_op* op) {
                    const uint32_t type = TW_FLOAT;
                    tw_op_set_types(op, "component_types", &type, 1);
                    tw_op_set_string(op, "shared_name", name.data(), name.size());
                  })),
        element(On(s, "", "QueueDequeueV2", {handle}, [](tw_op* op) {
          const uint32_t type = TW_FLOAT;
          tw_op_set_types(op, "component_types", &type, 1);
        })) {}
  tw_output handle, element;
};

// What is thrown; empty text: nothing was.
struct Failure {
  uint32_t code = TW_OK;
  std::string text;
  double seconds = 0;
};
Failure FailureOf(const std::function<void()>& f) {
  const auto began = Clock::now();
  Failure out;
  try {
    f();
  } catch (const tw::StatusError& e) {
    out.code = e.code();
    out.text = e.what();
  }
  out.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return out;
}

tw_run_options Within(int64_t ms) {
  tw_run_options options = {};
  options.size = sizeof options;
  options.timeout_ns = ms * 1'000'000;
  return options;
}

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
  // Values in the middle may be fed, whoever makes them, and other shapes too.
  const auto fed = session.run({{b, tw::Tensor({1}, std::vector<float>{10})}, {x, tw::Tensor({1}, std::vector<float>{4})}}, {c});
  EXPECT_THAT(fed[0].values<float>(), ElementsAre(6));
  EXPECT_EQ(session.report().steps, 4u);
}

// Whose steps must not hold the thread that brings what they wait for.
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
    // What is added is made elsewhere.
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

// The same numbers as in one process, bit for bit.
// What is assigned without a look at its shape may have another one than the variable says, wherever it is read.
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

TEST_P(SessionTest, FailuresNameTheTaskItsAddressAndTheOperation) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_output v = Variable(s, kPs, id_ + "none");
  const tw_output sum = On(s, kW1, "AddV2", {x, Read(s, v)});
  const tw_output on = On(s, kW0, "Neg", {sum});
  s.finish();
  tw::Session session = NewSession(graph);
  for (int round = 0; round < 3; ++round) {
    const Failure f = FailureOf([&] { session.run({{x, tw::Tensor(1.0f)}}, {on}); });
    EXPECT_EQ(f.code, uint32_t{TW_FAILED_PRECONDITION});
    EXPECT_THAT(f.text, HasSubstr("task /job:ps/task:0 at " + p_ + ": ReadVariableOp"));
  }
  const Failure type = FailureOf([&] { session.run({{x, tw::Tensor(1)}}, {on}); });
  EXPECT_THAT(type.text, HasSubstr("the feed of 'x' is int32 but must be float"));
}

TEST_P(SessionTest, GraphsThatNameAbsentTasksAreRefusedAndOthersRun) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output bad = On(s, "/job:ps/task:7", "Neg", {s.scalar(TW_FLOAT, 1)});
  const tw_output v = Variable(s, kPs, id_);
  const tw_output apart = On(s, kW1, "ReadVariableOp", {v}, [](tw_op* op) { tw_op_set_type(op, "dtype", TW_FLOAT); });
  const tw_output good = On(s, "/job:worker", "Neg", {s.scalar(TW_FLOAT, 1)});
  s.finish();
  tw::Session session = NewSession(graph);
  const Failure absent = FailureOf([&] { session.run({}, {bad}); });
  EXPECT_EQ(absent.code, uint32_t{TW_NOT_FOUND});
  EXPECT_THAT(absent.text, HasSubstr("the cluster has no task '/job:ps/task:7'; its tasks: /job:ps/task:0, /job:worker/task:0"));
  const Failure split = FailureOf([&] { session.run({}, {apart}); });
  EXPECT_EQ(split.code, uint32_t{TW_INVALID_ARGUMENT});
  EXPECT_THAT(split.text, HasSubstr("with which it must share a task"));
  EXPECT_THAT(session.run({}, {good})[0].values<float>(), ElementsAre(-1));
}

TEST_P(SessionTest, AWaitAtAQueueEndsAtTheDeadlineAndTheQueueStaysWhole) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const Queue q(s, kPs, id_);
  const tw_operation* put = Do(s, "", "QueueEnqueueV2", {q.handle, s.scalar(TW_FLOAT, 7)});
  const tw_output on = On(s, kW1, "Neg", {q.element});
  s.finish();
  tw::Session session = NewSession(graph);
  session.run({}, {}, {put});
  EXPECT_THAT(session.run({}, {on})[0].values<float>(), ElementsAre(-7));
  for (int round = 0; round < 3; ++round) {
    const tw_run_options within = Within(150);
    const Failure f = FailureOf([&] { session.run({}, {on}, {}, &within); });
    EXPECT_EQ(f.code, uint32_t{TW_DEADLINE_EXCEEDED});
    EXPECT_THAT(f.text, HasSubstr("/job:ps/task:0 at " + p_));
    EXPECT_GT(f.seconds, .1);
    EXPECT_LT(f.seconds, 5);
  }
  session.run({}, {}, {put});
  EXPECT_THAT(session.run({}, {on})[0].values<float>(), ElementsAre(-7));
  // One client waits, another one brings what it waits for.
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    NewSession(graph).run({}, {}, {put});
  });
  EXPECT_THAT(session.run({}, {on})[0].values<float>(), ElementsAre(-7));
  other.join();
}

TEST_P(SessionTest, FeedsCountAgainstTheMemoryLimitUntilTheirStepIsOver) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const Queue q(s, kPs, id_);
  const tw_operation* put = Do(s, "", "QueueEnqueueV2", {q.handle, s.scalar(TW_FLOAT, 7)});
  const tw_output x = s.placeholder("x", TW_FLOAT, {-1});
  const tw_operation* take = Do(s, "", "QueueDequeueV2", {q.handle}, [](tw_op* op) {
    const uint32_t type = TW_FLOAT;
    tw_op_set_types(op, "component_types", &type, 1);
  });
  const tw_output size = On(s, kPs, "Size", {x}, [&](tw_op* op) { tw_op_add_control(op, take); });
  s.finish();
  tw::Session session = NewSession(graph, {"memory_limit=1000000"});
  const tw::Tensor large({150'000}, std::vector<float>(150'000));  // two are too many
  std::thread waits([&] {
    Failure late;  // where the other one came first
    do {
      late = FailureOf([&] { EXPECT_EQ(session.run({{x, large}}, {size})[0].values<int32_t>()[0], 150'000); });
    } while (late.code == TW_RESOURCE_EXHAUSTED);
    EXPECT_EQ(late.code, uint32_t{TW_OK}) << late.text;
  });
  Failure f;
  for (int i = 0; i < 100 && f.code != TW_RESOURCE_EXHAUSTED; ++i) {
    const tw_run_options within = Within(100);
    f = FailureOf([&] { session.run({{x, large}}, {size}, {}, &within); });
  }
  EXPECT_EQ(f.code, uint32_t{TW_RESOURCE_EXHAUSTED}) << f.text;
  EXPECT_THAT(f.text, HasSubstr("task /job:ps/task:0 at " + p_ + ": feeds:"));
  EXPECT_THAT(f.text, HasSubstr("of the 1000000 bytes of its memory_limit"));
  session.run({}, {}, {put});
  waits.join();
  session.run({}, {}, {put});
  EXPECT_EQ(session.run({{x, large}}, {size})[0].values<int32_t>()[0], 150'000);
}

TEST_P(SessionTest, CancelAndCloseEndAStepEverywhere) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const Queue q(s, kPs, id_);
  const tw_output on = On(s, kW1, "Neg", {q.element});
  s.finish();
  {
    tw::Session session = NewSession(graph);
    tw_cancel_token* token = nullptr;
    tw::raise(tw_cancel_token_create(&token));
    std::thread stop([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      tw_cancel_token_cancel(token);
    });
    tw_run_options options = Within(0);
    options.cancel = token;
    const Failure f = FailureOf([&] { session.run({}, {on}, {}, &options); });
    EXPECT_EQ(f.code, uint32_t{TW_CANCELLED});
    EXPECT_LT(f.seconds, 5);
    stop.join();
    tw_cancel_token_destroy(token);
  }
  tw::Session session = NewSession(graph);
  std::thread close([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    session.close();
  });
  const Failure f = FailureOf([&] { session.run({}, {on}); });
  EXPECT_EQ(f.code, uint32_t{TW_CANCELLED});
  EXPECT_LT(f.seconds, 5);
  close.join();
  EXPECT_EQ(FailureOf([&] { session.run({}, {on}); }).code, uint32_t{TW_FAILED_PRECONDITION});
}

TEST_P(SessionTest, ATaskThatGoesIsNamedAndOneThatComesBackTakesPartAgain) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const Queue q(s, kPs, id_ + "q");
  const tw_output waits = On(s, kW1, "Neg", {q.element});
  const tw_output v = Variable(s, kPs, id_);
  const tw_operation* init = Do(s, "", "AssignVariableOp", {v, s.scalar(TW_FLOAT, 3)});
  const tw_output sum = On(s, kW1, "AddV2", {Read(s, v), s.scalar(TW_FLOAT, 1)});
  s.finish();
  tw::Session session = NewSession(graph);
  session.run({}, {}, {init});
  EXPECT_THAT(session.run({}, {sum})[0].values<float>(), ElementsAre(4));
  std::thread stop([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ps_.reset();
  });
  const Failure f = FailureOf([&] { session.run({}, {waits}); });
  stop.join();
  EXPECT_EQ(f.code, uint32_t{TW_UNAVAILABLE});
  EXPECT_THAT(f.text, HasSubstr("task /job:ps/task:0 at " + p_));
  EXPECT_LT(f.seconds, 5);
  // Only its state is gone.
  ps_ = std::make_unique<Server>(cluster_, "ps", 0);
  const Failure empty = FailureOf([&] { session.run({}, {sum}); });
  EXPECT_EQ(empty.code, uint32_t{TW_FAILED_PRECONDITION}) << empty.text;
  session.run({}, {}, {init});
  EXPECT_THAT(session.run({}, {sum})[0].values<float>(), ElementsAre(4));
}

TEST_P(SessionTest, TasksMayStartInAnyOrderAndNobodyWaitsForEver) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output a = On(s, kPs, "Neg", {On(s, kW0, "Neg", {s.scalar(TW_FLOAT, 2)})});
  s.finish();
  const Failure none = FailureOf([&] { NewSession(graph, {"target_timeout_ms=1000"}); });
  EXPECT_EQ(none.code, uint32_t{TW_UNAVAILABLE});
  EXPECT_THAT(none.text, HasSubstr("target " + at_w0_ + " cannot be reached"));
  EXPECT_LT(none.seconds, 5);
  std::jthread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    w0_ = NewTarget();
  });
  tw::Session session = NewSession(graph, {"target_timeout_ms=30000"});
  late.join();
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    ps_ = std::make_unique<Server>(cluster_, "ps", 0);
  });
  EXPECT_THAT(session.run({}, {a})[0].values<float>(), ElementsAre(2));
  later.join();
  const Failure absent = FailureOf([&] {
    tw::Scope t(graph);
    const tw_output b = On(t, kW1, "Neg", {a});
    t.finish();
    NewSession(graph, {"target_timeout_ms=1000"}).run({}, {b});
  });
  EXPECT_EQ(absent.code, uint32_t{TW_UNAVAILABLE});
  EXPECT_THAT(absent.text, HasSubstr("task /job:worker/task:1 at " + at_w1_ + " cannot be reached"));
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
  // Only the first node of the branch says where.
  const tw_output no = On(s, kPs, "Switch", {x, positive});
  const tw_output yes = tw_scope_output(s.c(), no, 1);
  const tw_output merged = s.op("Merge", {On(s, "", "Neg", {no}), On(s, "", "Square", {yes})});
  const tw_output out = On(s, kW1, "AddV2", {merged, s.scalar(TW_FLOAT, 1)});
  s.finish();
  tw::Session session = NewSession(graph);
  EXPECT_THAT(session.run({{x, tw::Tensor(3.0f)}}, {out})[0].values<float>(), ElementsAre(10));
  EXPECT_THAT(session.run({{x, tw::Tensor(-3.0f)}}, {out})[0].values<float>(), ElementsAre(4));
}

TEST_P(SessionTest, GarbageAtTheAddressHurtsNobody) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output a = On(s, kPs, "Neg", {s.scalar(TW_FLOAT, 2)});
  s.finish();
  tw::Session session = NewSession(graph);
  for (int round = 0; round < 50; ++round) {
    const int fd = ConnectByHand(p_);
    ASSERT_GE(fd, 0);
    // A frame of the transport's with a head that is no request's, or not even a frame.
    uint64_t packet[6] = {0, uint64_t(round), 16, 0, uint64_t(round) * 0x9e3779b97f4a7c15, ~uint64_t(round)};
    (void)!write(fd, packet, round % 2 ? sizeof packet : size_t(round));
    close(fd);
    EXPECT_THAT(session.run({}, {a})[0].values<float>(), ElementsAre(-2));
  }
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

TEST_P(SessionTest, ServersAreRefusedWithAReason) {
  EXPECT_THAT(FailureOf([&] { Server(cluster_, "ps", 9); }).text, HasSubstr("the cluster has no /job:ps/task:9"));
  EXPECT_THAT(FailureOf([&] { Server("nonsense", "ps", 0); }).text, HasSubstr("JSON, line 1"));
  EXPECT_THAT(FailureOf([&] { Server(R"({"ps": ["nothing:x"]})", "ps", 0); }).text, HasSubstr("no transport of scheme 'nothing'"));
  EXPECT_THAT(FailureOf([&] { Server(cluster_, "ps", 0, {"colour=red"}); }).text, HasSubstr("colour"));
  for (const char* few : {"max_message_bytes=0", "max_message_bytes=65535"}) {
    EXPECT_THAT(FailureOf([&] { Server(cluster_, "ps", 0, {few}); }).text, HasSubstr("it takes a number of bytes from 65536 on"));
  }
  Server(cluster_, "ps", 0, {"max_message_bytes=64K"});
  EXPECT_THAT(FailureOf([&] { Server(cluster_, "ps", 0, {"allow_files=/no/such/folder"}); }).text,
              AllOf(HasSubstr("server option 'allow_files'"), HasSubstr("/no/such/folder"), HasSubstr("No such file")));
  Server first(cluster_, "ps", 0);
  EXPECT_EQ(FailureOf([&] { Server(cluster_, "ps", 0); }).code, uint32_t{TW_UNAVAILABLE});
  EXPECT_EQ(FailureOf([&] { tw::raise(tw_server_join(first.c(), 1000)); }).code, uint32_t{TW_DEADLINE_EXCEEDED});
  EXPECT_EQ(FailureOf([&] { tw::raise(tw_server_join(first.c(), -1)); }).code, uint32_t{TW_INVALID_ARGUMENT});
  EXPECT_EQ(first.address(), p_);
  first.stop();
  tw::raise(tw_server_join(first.c(), 0));
  EXPECT_EQ(FailureOf([&] { tw::raise(tw_server_start(first.c())); }).code, uint32_t{TW_FAILED_PRECONDITION});
}

// Who starts a server of its own may leave the port to the machine; nobody else would know it.
TEST_P(SessionTest, APortIsLeftOpenOnlyWhereNobodyElseHasToKnowIt) {
  if (!OverGrpc()) GTEST_SKIP() << "the socket transport has no ports";
  const std::string other = "grpc:127.0.0.1:" + std::to_string(FreePort());
  const std::string two = R"({"ps": ["127.0.0.1:0", ")" + other + "\"]}";
  const Failure refused = FailureOf([&] { Server(two, "ps", 0); });
  EXPECT_EQ(refused.code, uint32_t{TW_INVALID_ARGUMENT});
  EXPECT_THAT(refused.text, HasSubstr("server /job:ps/task:0: the cluster says grpc:127.0.0.1:0, and no other task can know which port"));
  Server alone(R"({"ps": ["127.0.0.1:0"]})", "ps", 0);
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output y = s.op("Neg", {s.scalar(TW_FLOAT, 2)});
  s.finish();
  const std::string target = "target=" + alone.address();
  tw::Session session(graph, {target.c_str()});
  EXPECT_THAT(session.run({}, {y})[0].values<float>(), ElementsAre(-2));
}

INSTANTIATE_TEST_SUITE_P(, SessionTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& beside) { return beside.param ? "BesideItsTarget" : "Apart"; });

}  // namespace
