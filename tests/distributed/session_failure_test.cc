// Sessions over several servers in one process whose steps fail, are refused, are ended, or lose a task.
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/sessions.h"

namespace thalweg::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  // One client waits, and another one provides the value.
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
  const Queue came(s, kPs, id_ + "came");
  const tw_operation* put = Do(s, "", "QueueEnqueueV2", {q.handle, s.scalar(TW_FLOAT, 7)});
  const tw_output x = s.placeholder("x", TW_FLOAT, {-1});
  const tw_operation* begins = Do(s, "", "QueueEnqueueV2", {came.handle, s.scalar(TW_FLOAT, 1)});
  const tw_operation* take = Do(s, "", "QueueDequeueV2", {q.handle}, [&](tw_op* op) {
    const uint32_t type = TW_FLOAT;
    tw_op_set_types(op, "component_types", &type, 1);
    tw_op_add_control(op, begins);
  });
  const tw_output size = On(s, kPs, "Size", {x}, [&](tw_op* op) { tw_op_add_control(op, take); });
  s.finish();
  tw::Session session = NewSession(graph, {"memory_limit=1000000"});
  const tw::Tensor large({150'000}, std::vector<float>(150'000));  // the limit is too small for two of them
  std::thread waits([&] { EXPECT_EQ(session.run({{x, large}}, {size})[0].values<int32_t>()[0], 150'000); });
  session.run({}, {came.element});  // when this returns, the first step holds its feed
  const Failure f = FailureOf([&] { session.run({{x, large}}, {size}); });
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
  // Only the state of the task is lost.
  ps_ = std::make_unique<Server>(cluster_, "ps", 0);
  const Failure empty = FailureOf([&] { session.run({}, {sum}); });
  EXPECT_EQ(empty.code, uint32_t{TW_FAILED_PRECONDITION}) << empty.text;
  session.run({}, {}, {init});
  EXPECT_THAT(session.run({}, {sum})[0].values<float>(), ElementsAre(4));
}

// The session at ps:0 stays open, and its memory limit pays for each signature. All that were registered together are beyond the limit.
TEST_P(SessionTest, OtherTasksForgetTheSignaturesOfATaskThatIsRestarted) {
  constexpr int kRestarts = 60;
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_output y = On(s, kW1, "Neg", {On(s, kPs, "Neg", {x})});
  s.finish();
  tw::Session session = NewSession(graph, {"memory_limit=400000"});
  EXPECT_THAT(session.run({{x, tw::Tensor(3.0f)}}, {y})[0].values<float>(), ElementsAre(3));
  for (int i = 0; i < kRestarts; ++i) {
    w1_.reset();
    w1_ = std::make_unique<Server>(cluster_, "worker", 1);
    // The first run may be the one that finds out.
    for (bool good = false; !good;) {
      const Failure f = FailureOf([&] { EXPECT_THAT(session.run({{x, tw::Tensor(3.0f)}}, {y})[0].values<float>(), ElementsAre(3)); });
      good = f.code == TW_OK;
      ASSERT_TRUE(good || f.code == TW_UNAVAILABLE || f.code == TW_ABORTED) << "after " << i + 1 << " restarts: " << f.text;
    }
  }
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

TEST_P(SessionTest, GarbageAtTheAddressHurtsNobody) {
  StartAll();
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output a = On(s, kPs, "Neg", {s.scalar(TW_FLOAT, 2)});
  s.finish();
  tw::Session session = NewSession(graph);
  for (int round = 0; round < 50; ++round) {
    const int fd = ConnectAsOwnUser(p_);
    ASSERT_GE(fd, 0);
    // A transport packet whose head is not a request's, or that is not a packet at all.
    uint64_t packet[6] = {0, uint64_t(round), 16, 0, uint64_t(round) * 0x9e3779b97f4a7c15, ~uint64_t(round)};
    (void)!write(fd, packet, round % 2 ? sizeof packet : size_t(round));
    close(fd);
    EXPECT_THAT(session.run({}, {a})[0].values<float>(), ElementsAre(-2));
  }
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

// A task may leave its port to the machine only if no other task needs to know it.
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

INSTANTIATE_TEST_SUITE_P(, SessionTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& beside) { return beside.param ? "BesideItsTarget" : "Apart"; });

}  // namespace
}  // namespace thalweg::testing
