// Kernels that wait at a resource, in steps that block a thread meanwhile and in steps that block
// none.
#include "framework/runtime/state/waiting_calls.h"

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"
#include "tests/framework/support/test_ops.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::ClearJournal;
using testing_support::Floats;
using testing_support::Journal;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

using absl::StatusCode;

// A run without a waiting caller, and its result.
class Started {
 public:
  Started(Session& session, const CallableSpec& spec, std::vector<Tensor> feeds = {}, RunOptions options = {})
      : feeds_(std::move(feeds)), fetches_(spec.fetches.size()) {
    session.Start(spec, feeds_.data(), options, fetches_.data(), [this](Status s) {
      std::lock_guard lock(mu_);
      status_ = std::move(s);
      over_ = true;
      changed_.notify_all();
    });
  }
  ~Started() { (void)Wait(); }
  bool over() {
    std::lock_guard lock(mu_);
    return over_;
  }
  Status Wait() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return over_; });
    return status_;
  }
  std::vector<float> Fetched() {
    EXPECT_TRUE(Wait().ok()) << status_;
    return status_.ok() ? Values(fetches_[0]) : std::vector<float>();
  }

 private:
  std::vector<Tensor> feeds_, fetches_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool over_ = false;
  Status status_;
};

class WaitingCallsTest : public testing::TestWithParam<uint32_t> {
 protected:
  WaitingCallsTest() : g_(GetParam()), tray_(g_.Op("Tray", {}, {.name = "tray", .attrs = {{"key", AttrValue::String("tray")}}})) {
    ClearJournal();
    letters_ = g_.Input(Shape({-1}));
    post_ = g_.Op("Post", {tray_, letters_}).node;
    session_ = g_.NewSession();
  }
  CallableSpec Await(int64_t letters) { return {{}, {g_.Op("Await", {tray_}, {.attrs = {{"letters", AttrValue::Int(letters)}}})}, {}}; }
  void Post(const std::vector<float>& letters) {
    auto s = Step(*session_, {{letters_}, {}, {post_}}, {Floats(letters)});
    EXPECT_TRUE(s.ok()) << s.status();
  }

  TestGraph g_;
  Edge tray_, letters_;
  const Node* post_ = nullptr;
  std::unique_ptr<Session> session_;
};
INSTANTIATE_TEST_SUITE_P(Threads, WaitingCallsTest, testing::Values(2, 4));

TEST_P(WaitingCallsTest, AStepGoesOnOnceAnotherHasDoneWhatItWaitsFor) {
  Started step(*session_, Await(2));
  EXPECT_FALSE(step.over());
  Post({1});
  EXPECT_FALSE(step.over());
  Post({2, 3});
  EXPECT_THAT(step.Fetched(), ElementsAre(1, 2));
  EXPECT_THAT(Started(*session_, Await(1)).Fetched(), ElementsAre(3));
}

TEST_P(WaitingCallsTest, ACallerWhoWaitsForTheStepGetsTheSame) {
  std::thread poster([&] {
    for (float x : {1, 2, 3}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      Post({x});
    }
  });
  auto out = Step(*session_, Await(3));
  poster.join();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(1, 2, 3));
}

TEST_P(WaitingCallsTest, WhoeverCameFirstIsServedFirst) {
  const CallableSpec two = Await(2), one = Await(1);
  Started first(*session_, two), second(*session_, two), third(*session_, one);
  Post({1});
  Post({2, 3});
  EXPECT_THAT(first.Fetched(), ElementsAre(1, 2));
  EXPECT_FALSE(third.over());
  Post({4, 5});
  EXPECT_THAT(second.Fetched(), ElementsAre(3, 4));
  EXPECT_THAT(third.Fetched(), ElementsAre(5));
}

TEST_P(WaitingCallsTest, OtherConditionsHearOfWhatAWaitingCallTook) {
  Post({1});
  Started empty(*session_, {{}, {}, {g_.Op("AwaitEmpty", {tray_}, {.attrs = {{"tag", AttrValue::Int(7)}}}).node}});
  EXPECT_FALSE(empty.over());
  Started two(*session_, Await(2));  // takes the available letter, and waits for another
  EXPECT_TRUE(empty.Wait().ok());
  EXPECT_THAT(Journal(), ElementsAre(7, 7));
  EXPECT_FALSE(two.over());
  Post({2});
  EXPECT_THAT(two.Fetched(), ElementsAre(1, 2));
}

TEST_P(WaitingCallsTest, CancelEndsOneAndTheNextInLineIsServed) {
  CancelToken token;
  const CallableSpec spec = Await(1);
  Started first(*session_, spec, {}, {.cancel = &token}), second(*session_, spec);
  token.Cancel();
  const Status s = first.Wait();
  EXPECT_EQ(s.code(), StatusCode::kCancelled);
  EXPECT_THAT(Text(s), AllOf(HasSubstr("Await"), HasSubstr("the step was cancelled")));
  Post({5});
  EXPECT_THAT(second.Fetched(), ElementsAre(5));
}

// A waiter that arrives while the previous one is cancelled gets the letters that the previous one
// leaves.
TEST_P(WaitingCallsTest, WhoeverLeavesWhileTheNextBeginsToWaitIsSeen) {
  const auto all = [&](int64_t n) {
    return CallableSpec{{}, {g_.Op("AwaitAll", {tray_}, {.attrs = {{"letters", AttrValue::Int(n)}}})}, {}};
  };
  const CallableSpec two = all(2), one = all(1);
  for (int i = 0; i < 3000; ++i) {
    CancelToken token;
    Started first(*session_, two, {}, {.cancel = &token});
    Post({float(i)});
    std::thread cancel([&] { token.Cancel(); });
    Started second(*session_, one);
    cancel.join();
    EXPECT_EQ(first.Wait().code(), StatusCode::kCancelled);
    EXPECT_THAT(second.Fetched(), ElementsAre(float(i)));
  }
}

TEST_P(WaitingCallsTest, ACancelledTokenEndsACallThatBeginsToWait) {
  Edge later = g_.Op("Later", {letters_});
  Edge await = g_.Op("Await", {tray_}, {.controls = {later.node}});
  for (int i = 0; i < 20; ++i) {
    CancelToken now;
    Started step(*session_, {{letters_}, {await}, {}}, {Floats({1})}, {.cancel = &now});
    now.Cancel();
    EXPECT_EQ(step.Wait().code(), StatusCode::kCancelled);
  }
}

TEST_P(WaitingCallsTest, ADeadlineEndsACallWithoutAnybodyDoingAnything) {
  const auto began = std::chrono::steady_clock::now();
  Started step(*session_, Await(1), {}, {.deadline_ns = 30'000'000});
  const Status s = step.Wait();
  EXPECT_EQ(s.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(s), HasSubstr("the step's deadline has passed"));
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(30));
  auto out = Step(*session_, Await(1), {}, {.deadline_ns = 5'000'000});
  EXPECT_EQ(out.status().code(), StatusCode::kDeadlineExceeded);
}

TEST_P(WaitingCallsTest, CloseEndsWhatWaits) {
  const CallableSpec spec = Await(1);
  Started first(*session_, spec), second(*session_, spec);
  EXPECT_TRUE(session_->Close().ok());
  for (Started* step : {&first, &second}) {
    EXPECT_TRUE(step->over());
    const Status s = step->Wait();
    EXPECT_EQ(s.code(), StatusCode::kCancelled);
    EXPECT_THAT(Text(s), HasSubstr("the session was closed"));
  }
}

TEST_P(WaitingCallsTest, AFailureElsewhereInTheStepEndsIt) {
  Edge picky = g_.Op("Picky", {g_.Op("Later", {letters_})});
  CallableSpec spec = Await(1);
  spec.feeds = {letters_};
  spec.fetches.push_back(picky);
  for (int i = 0; i < 20; ++i) {
    Started step(*session_, spec, {Floats({-2, 0})});
    EXPECT_EQ(step.Wait().code(), StatusCode::kOutOfRange);
    EXPECT_EQ(Step(*session_, spec, {Floats({-2, 0})}).status().code(), StatusCode::kOutOfRange);
  }
  Post({1});
  EXPECT_THAT(Started(*session_, Await(1)).Fetched(), ElementsAre(1));
}

TEST_P(WaitingCallsTest, ADroppedResourceEndsThoseWhoWaitForIt) {
  Started step(*session_, Await(1));
  g_.runtime().resources().ResetContainer(session_->options().container);
  const Status s = step.Wait();
  EXPECT_EQ(s.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(s), HasSubstr("has no contents"));
}

TEST_P(WaitingCallsTest, OnlyAsynchronousKernelsMayWaitAndOnlyAtWhatTheyHaveOpened) {
  auto s = Step(*session_, {{}, {}, {g_.Op("WaitsInTurn", {tray_}).node}}).status();
  EXPECT_EQ(s.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(s), HasSubstr("only a call of an asynchronous kernel in a step can wait"));
  s = Step(*session_, {{}, {}, {g_.Op("WaitsForAnother", {tray_}).node}}).status();
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(s), HasSubstr("input 1 of 1 does not exist"));
}

TEST_P(WaitingCallsTest, StatisticsAreOfTheWholeStep) {
  StepStats stats;
  Started step(*session_, Await(1), {}, {.stats = &stats});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  Post({1});
  EXPECT_THAT(step.Fetched(), ElementsAre(1));
  EXPECT_EQ(stats.nodes().size(), stats.total().nodes);
  EXPECT_GE(stats.total().total_ns, 5'000'000);
}

int ThreadsOfProcess() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  }
  return 0;
}

TEST_P(WaitingCallsTest, ManyStepsThatWaitHoldNoThreads) {
  constexpr int kSteps = 2000;
  const CallableSpec spec = Await(1);
  std::vector<std::unique_ptr<Started>> steps;
  steps.push_back(std::make_unique<Started>(*session_, spec));
  const int before = ThreadsOfProcess();
  while (steps.size() < kSteps) steps.push_back(std::make_unique<Started>(*session_, spec));
  EXPECT_EQ(ThreadsOfProcess(), before);
  std::vector<float> letters(kSteps);
  for (size_t i = 0; i < kSteps; ++i) letters[i] = float(i);
  Post(letters);
  for (size_t i = 0; i < kSteps; ++i) EXPECT_THAT(steps[i]->Fetched(), ElementsAre(float(i)));
  EXPECT_LE(ThreadsOfProcess(), before + 2 * int(GetParam()));
}

TEST_P(WaitingCallsTest, MeetFromManyThreadsAtOnce) {
  constexpr int kEach = 200;
  const Edge full = g_.Op("Tray", {}, {.attrs = {{"key", AttrValue::String("full")}}});
  ASSERT_TRUE(Step(*session_, {{letters_}, {}, {g_.Op("Post", {full, letters_}).node}}, {Floats({1})}).ok());
  const CallableSpec one = Await(1), never = {{}, {}, {g_.Op("AwaitEmpty", {full}).node}};
  std::atomic<int> taken{0}, ended{0};
  auto many = [](auto&& work) {
    return std::thread([work] {
      for (int i = 0; i < kEach; ++i) work(i);
    });
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.push_back(many([&](int) { Post({1}); }));
    threads.push_back(many([&](int) { taken += Started(*session_, one).Wait().ok(); }));
    threads.push_back(many([&](int i) {
      CancelToken token;
      Started step(*session_, never, {}, {.deadline_ns = i % 2 ? 100'000 : 0, .cancel = &token});
      if (i % 2 == 0) token.Cancel();
      ended += !step.Wait().ok();
    }));
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(taken, 2 * kEach);
  EXPECT_EQ(ended, 2 * kEach);
}

}  // namespace
}  // namespace thalweg
