// Forks a process that has a server and sessions with a target. The child has copies: its calls on
// them are refused at once, destroying them changes nothing and takes no time, and the parent is
// not affected.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/wait.h>

#include "tests/distributed/servers.h"

namespace thalweg::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kWhatToDo = "start the child as a program of its own";

class ForkTest : public ::testing::Test {
 protected:
  ForkTest() : graph_(client_) {
    tw::Scope s(graph_);
    s.on(Servers::task(1).c_str());
    y_ = s.op("AddV2", {s.scalar(TW_FLOAT, 1), s.scalar(TW_FLOAT, 2)});
    s.finish();
    session_ = std::make_unique<tw::Session>(servers_->session(graph_));
  }
  float Step() { return session_->run({}, {y_})[0].values<float>()[0]; }
  // Runs `what` in a child, for at most half a minute, and returns how the child ended. The child
  // itself prints failed expectations.
  static int InChild(const std::function<void()>& what, bool by_exit = false) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      what();
      const int code = HasFailure() ? 1 : 0;
      if (by_exit) std::exit(code);
      _exit(code);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  }
  std::unique_ptr<Servers> servers_ = std::make_unique<Servers>(2);
  tw::Runtime client_ = NewRuntime();
  tw::Graph graph_;
  tw_output y_ = 0;
  std::unique_ptr<tw::Session> session_;
};

TEST_F(ForkTest, AStepOfASessionOfItsParentIsRefused) {
  ASSERT_EQ(Step(), 3);
  EXPECT_EQ(InChild([this] {
              const Failure f = FailureOf([this] { Step(); });
              EXPECT_EQ(f.code, uint32_t{TW_FAILED_PRECONDITION});
              EXPECT_THAT(f.text, HasSubstr(kWhatToDo));
              const Failure prepared = FailureOf([this] { tw::Callable(*session_, {}, {y_})({}); });
              EXPECT_EQ(prepared.code, uint32_t{TW_FAILED_PRECONDITION});
            }),
            0);
  EXPECT_EQ(Step(), 3);
}

TEST_F(ForkTest, ParentsOfManyChildrenGoOnWhateverThoseTry) {
  ASSERT_EQ(Step(), 3);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(InChild([this] {
                EXPECT_EQ(FailureOf([this] { Step(); }).code, uint32_t{TW_FAILED_PRECONDITION});
                if (!OverGrpc()) return;  // other transports may let a child connect anew
                const Failure opened = FailureOf([this] { servers_->session(graph_).run({}, {y_}); });
                EXPECT_EQ(opened.code, uint32_t{TW_FAILED_PRECONDITION});
                EXPECT_THAT(opened.text, HasSubstr(kWhatToDo));
                const Failure served = FailureOf([] { Servers(1); });
                EXPECT_EQ(served.code, uint32_t{TW_FAILED_PRECONDITION});
                EXPECT_THAT(served.text, HasSubstr(kWhatToDo));
              }),
              0)
        << i;
    for (int k = 0; k < 5; ++k) EXPECT_EQ(Step(), 3) << i;
  }
}

TEST_F(ForkTest, ASessionAndServersOfItsParentMayBeEnded) {
  ASSERT_EQ(Step(), 3);
  EXPECT_EQ(InChild([this] {
              session_.reset();
              servers_.reset();
            }),
            0);
  EXPECT_EQ(Step(), 3);
}

TEST_F(ForkTest, AChildMayEndAsProgramsDo) {
  ASSERT_EQ(Step(), 3);
  EXPECT_EQ(InChild([] {}, true), 0);
  EXPECT_EQ(InChild([this] { FailureOf([this] { Step(); }); }, true), 0);
  EXPECT_EQ(Step(), 3);
}

}  // namespace
}  // namespace thalweg::testing
