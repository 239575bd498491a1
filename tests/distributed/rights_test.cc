// The rights of admitted peers: roles, sessions of other clients, and limits on the number of
// sessions.
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "distributed/piece.h"
#include "distributed/task_status.h"
#include "tests/distributed/denial.h"
#include "tests/distributed/splat.h"

namespace thalweg::distributed {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

TEST_F(DenialTest, MethodsAreForTheirRolesAndSessionsForWhoOpenedThem) {
  Client ann(folder_ + "/client-ann"), bob(folder_ + "/client-bob"), task(folder_ + "/ps-0");
  ASSERT_TRUE(ann.Ask(address_, Method::kOpen, OpenRequest{77, {}}).ok());
  const Status receive = ann.Ask(address_, Method::kReceive, ReceiveRequest{77, 1, "key", "client/ann"});
  EXPECT_EQ(receive.code(), Code::kPermissionDenied);
  EXPECT_THAT(receive.message(), HasSubstr("Receive is for the tasks of the cluster"));
  // For any other client the session does not exist.
  const SessionRequest session{77};
  for (const Status& s : {bob.Ask(address_, Method::kRegister, session), bob.Ask(address_, Method::kRun, RunRequest{77, 1, 1, 1, 0}),
                          bob.Ask(address_, Method::kWatch, session)}) {
    EXPECT_EQ(s.code(), Code::kAborted);
    EXPECT_THAT(s.message(), HasSubstr("session 77 of client/bob is not known"));
  }
  EXPECT_TRUE(bob.Ask(address_, Method::kForget, HandleMessage{77, 1}).ok());
  EXPECT_TRUE(bob.Ask(address_, Method::kAbort, AbortRequest{77, 1, absl::AbortedError("mine")}).ok());
  // Ann's session is unchanged. Tasks may ask for its values, but not for values of a session with
  // the same number that Bob has elsewhere.
  EXPECT_EQ(ann.Ask(address_, Method::kRun, RunRequest{77, 1, 1, 1, 0}).code(), Code::kNotFound);
  EXPECT_TRUE(ann.Ask(address_, Method::kAbort, AbortRequest{77, 1, absl::AbortedError("hers")}).ok());
  const Status hers = task.Ask(address_, Method::kReceive, ReceiveRequest{77, 1, "key", "client/ann"});
  EXPECT_EQ(hers.message(), "the task: hers");
  const Status his = task.Ask(address_, Method::kReceive, ReceiveRequest{77, 1, "key", "client/bob"});
  EXPECT_THAT(his.message(), HasSubstr("session 77 of client/bob is not known here"));
}

// Large messages get their own connection, which may still be opening when the client ends.
TEST_F(DenialTest, ClientsThatEndLeaveNoConnections) {
  const size_t before = task_->descriptors();
  for (uint64_t session = 1; session <= 20; ++session) {
    Client ann(folder_ + "/client-ann");
    ASSERT_TRUE(ann.Ask(address_, Method::kOpen, OpenRequest{session, {}}).ok());
    const auto refused = ann.Begin(address_, Method::kRegister, SessionRequest{session}, std::string(1'000'000, 'x')).get();
    EXPECT_EQ(refused.status.code(), Code::kInvalidArgument) << refused.status;
  }
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (task_->descriptors() > before && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(task_->descriptors(), before);
}

// A graph of one value, which waits for an element of a queue that never comes.
std::string APieceThatWaits() {
  const std::string of_float("\x0a\x03\x32\x01\x01", 5);  // an AttrValue: a list of one type, float
  PieceMessage m;
  m.nodes.push_back({"queue", "FIFOQueueV2", "", "", {}, {}, {}, {{"component_types", of_float}}, {}});
  m.nodes.push_back({"element", "QueueDequeueV2", "", "", {"queue"}, {}, {}, {{"component_types", of_float}}, {}});
  m.fetches = {"element"};
  return m.Put();
}

TEST_F(DenialTest, NobodyTakesTheNumberOfASessionFromItsClientOrSeesWhatItRuns) {
  Client ann(folder_ + "/client-ann"), bob(folder_ + "/client-bob"), task(folder_ + "/ps-0");
  // Bob knows the number of Ann's session and opens it first.
  ASSERT_TRUE(bob.Ask(address_, Method::kOpen, OpenRequest{77, {}}).ok());
  ASSERT_TRUE(ann.Ask(address_, Method::kOpen, OpenRequest{77, {}}).ok());
  // Nobody watches the session yet: a client whose first answer was lost opens it again.
  ASSERT_TRUE(ann.Ask(address_, Method::kOpen, OpenRequest{77, {}}).ok());
  auto watch = ann.Begin(address_, Method::kWatch, SessionRequest{77});
  EXPECT_EQ(watch.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  EXPECT_EQ(ann.Ask(address_, Method::kOpen, OpenRequest{77, {}}).code(), Code::kAlreadyExists);
  const auto registered = ann.Begin(address_, Method::kRegister, SessionRequest{77}, APieceThatWaits()).get();
  ASSERT_TRUE(registered.status.ok()) << registered.status;
  const auto handle = HandleMessage::Get(registered.fields);
  ASSERT_TRUE(handle.ok());
  WireWriter nothing;
  ASSERT_TRUE(PutTensors(nullptr, 0, &nothing).ok());
  auto run = ann.Begin(address_, Method::kRun, RunRequest{77, handle->handle, 1, 1, 0}, nothing.Take());
  const auto seen_by = [&](Client& who, uint64_t session) {
    const auto answer = who.Begin(address_, Method::kStatus, SessionRequest{session}).get();
    const auto status = TaskStatus::Get(answer.body);
    EXPECT_TRUE(status.ok()) << answer.status;
    return status.ok() ? status->runs.size() : 0;
  };
  for (int i = 0; i < 500 && seen_by(ann, 77) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (const uint64_t session : {uint64_t{0}, uint64_t{77}}) {
    EXPECT_EQ(seen_by(ann, session), 1u);
    EXPECT_EQ(seen_by(bob, session), 0u);
    EXPECT_EQ(seen_by(task, session), 1u);
  }
  // Bob's abort ends only his own session's step.
  EXPECT_TRUE(bob.Ask(address_, Method::kAbort, AbortRequest{77, 1, absl::AbortedError("his")}).ok());
  EXPECT_EQ(run.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  EXPECT_TRUE(ann.Ask(address_, Method::kAbort, AbortRequest{77, 1, absl::AbortedError("hers")}).ok());
  EXPECT_EQ(run.get().status.message(), "the task: hers");
}

// A client that could name any address would use a task to reach addresses that the client cannot
// reach itself.
TEST_F(DenialTest, ValuesOfStepsComeFromAndGoToTasksOfTheClusterOnly) {
  Client ann(folder_ + "/client-ann");
  ASSERT_TRUE(ann.Ask(address_, Method::kOpen, OpenRequest{79, {}}).ok());
  const std::string task = address_.substr(address_.find(':') + 1), other = "192.0.2.7:22";
  const auto registered = [&](const PieceMessage& m) {
    return ann.Begin(address_, Method::kRegister, SessionRequest{79}, m.Put()).get().status;
  };
  PieceMessage from, to;
  from.sources.push_back({"edge", other, "task /job:ps/task:0 at grpc:" + task, 0});
  to.sinks.push_back({"edge", other, "task /job:ps/task:0 at grpc:" + task, 0});
  for (const PieceMessage& m : {from, to}) {
    const Status s = registered(m);
    EXPECT_EQ(s.code(), Code::kPermissionDenied);
    EXPECT_THAT(s.message(), HasSubstr("value 'edge': address '" + other + "' is no task's of the cluster"));
    EXPECT_THAT(s.message(), HasSubstr("its tasks: /job:ps/task:0 at grpc:" + task));
  }
  from.sources[0].address = to.sinks[0].address = task;
  EXPECT_TRUE(registered(from).ok());
  EXPECT_TRUE(registered(to).ok());
}

TEST_F(DenialTest, SessionOptionsThatNameFilesOfTheTaskAreNotAClientsToSet) {
  Client ann(folder_ + "/client-ann");
  const std::string file = folder_ + "/not-hers";
  const Status s = ann.Ask(address_, Method::kOpen, OpenRequest{78, {"placement=learned", "placement_file=" + file}});
  EXPECT_EQ(s.code(), Code::kPermissionDenied);
  EXPECT_THAT(s.message(), HasSubstr("'placement_file' is not a client's to set"));
  const Status profiled = ann.Ask(address_, Method::kOpen, OpenRequest{78, {"profiler=trace:" + file}});
  EXPECT_EQ(profiled.code(), Code::kPermissionDenied);
  EXPECT_THAT(profiled.message(), HasSubstr("'profiler' is not a client's to set"));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(ann.Ask(address_, Method::kOpen, OpenRequest{78, {"optimize=false", "memory_limit=1000000000000000"}}).ok());
}

TEST_F(DenialTest, AClientThatOpensAllSessionsThatItMayKeepsNobodyElseOut) {
  const std::string address = "grpc:127.0.0.1:" + std::to_string(FreePort());
  const Process task(folder_, address,
                     {"--credentials", folder_ + "/ps-0", "--server-option", "max_sessions=6", "--server-option", "max_client_sessions=3"});
  Client ann(folder_ + "/client-ann"), bob(folder_ + "/client-bob"), peer(folder_ + "/ps-0");
  for (uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(ann.Ask(address, Method::kOpen, OpenRequest{i, {}}).ok()) << i;
  const Status fourth = ann.Ask(address, Method::kOpen, OpenRequest{3, {}});
  EXPECT_EQ(fourth.code(), Code::kResourceExhausted);
  EXPECT_THAT(fourth.message(), HasSubstr("'client/ann' has 3 sessions already, as many as the task takes of one client"));
  EXPECT_THAT(fourth.message(), HasSubstr("max_client_sessions"));
  EXPECT_TRUE(ann.Ask(address, Method::kOpen, OpenRequest{2, {}}).ok());  // reopens a session that nobody watches, in its own place
  EXPECT_TRUE(bob.Ask(address, Method::kOpen, OpenRequest{3, {}}).ok());
  EXPECT_TRUE(bob.Ask(address, Method::kOpen, OpenRequest{4, {}}).ok());
  // A task is not a client, but the limit of all sessions holds for it, too.
  EXPECT_TRUE(peer.Ask(address, Method::kOpen, OpenRequest{5, {}}).ok());
  const Status seventh = bob.Ask(address, Method::kOpen, OpenRequest{6, {}});
  EXPECT_EQ(seventh.code(), Code::kResourceExhausted);
  EXPECT_THAT(seventh.message(), HasSubstr("there are 6 sessions already"));
  // A watched session exists already, which is not a lack of room: its client may open it again
  // when the old watch has ended.
  const auto watch = bob.Begin(address, Method::kWatch, SessionRequest{3});
  const Status again = bob.Ask(address, Method::kOpen, OpenRequest{3, {}});
  EXPECT_EQ(again.code(), Code::kAlreadyExists) << again;
  EXPECT_THAT(again.message(), HasSubstr("session 3 is there already"));
}

// 60 bytes that encode `count` copies of the number 1.
std::string ASplat(const std::string& name, uint64_t count) {
  PieceMessage m;
  m.nodes.push_back(Splat(name, count));
  return m.Put();
}

TEST_F(DenialTest, SessionsOfAClientShareItsPartAndLeaveOthersTheirs) {
  constexpr uint64_t kMany = 6 << 20;  // floats: 24 MiB
  const std::string address = "grpc:127.0.0.1:" + std::to_string(FreePort());
  const Process task(
      folder_, address,
      {"--credentials", folder_ + "/ps-0", "--server-option", "memory_limit=100000000", "--server-option", "client_memory_limit=40000000"});
  Client bob(folder_ + "/client-bob");
  ASSERT_TRUE(bob.Ask(address, Method::kOpen, OpenRequest{1, {}}).ok());
  const auto add = [&](Client& who, uint64_t session, const std::string& name) {
    return who.Begin(address, Method::kRegister, SessionRequest{session}, ASplat(name, kMany)).get().status;
  };
  {
    Client ann(folder_ + "/client-ann");
    std::vector<std::future<Client::Answer>> watches;
    for (const uint64_t session : {1, 2}) {
      // A client's option applies to its session only, and raises no limit.
      ASSERT_TRUE(ann.Ask(address, Method::kOpen, OpenRequest{session, {"memory_limit=1000000000000"}}).ok());
      watches.push_back(ann.Begin(address, Method::kWatch, SessionRequest{session}));
    }
    EXPECT_TRUE(add(ann, 1, "first").ok());
    const Status second = add(ann, 2, "second");
    EXPECT_EQ(second.code(), Code::kResourceExhausted);
    EXPECT_THAT(second.message(), HasSubstr("Const 'second'"));
    EXPECT_THAT(second.message(), HasSubstr("client 'client/ann' holds"));
    EXPECT_THAT(second.message(), HasSubstr("of the 40000000 bytes of its memory_limit"));
    EXPECT_TRUE(add(bob, 1, "his").ok());
  }
  // Ann's memory was freed when she disconnected.
  Client again(folder_ + "/client-ann");
  ASSERT_TRUE(again.Ask(address, Method::kOpen, OpenRequest{3, {}}).ok());
  Status s;
  for (int i = 0; i < 1000; ++i) {
    s = add(again, 3, StrCat("third", i));
    if (s.ok()) break;
    EXPECT_EQ(s.code(), Code::kResourceExhausted);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(s.ok()) << s;
}

}  // namespace
}  // namespace thalweg::distributed
