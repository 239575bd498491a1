// The memory that one client can make a worker process hold. Each attempt to exceed the limit ends
// in an error that names the requested amount and the exhausted account; the process survives, then
// serves another client, and shrinks to about its earlier size. THALWEG_HOLD_MB sets the limit; the
// default is 64. If a control group can be made, the worker runs in one of the limit plus 128 MB
// and dies if it takes more; otherwise its peak is checked. The packets are those of the socket
// transport, whose peers are not authenticated: their account is as large as the task's.
// rights_test.cc tests the accounts of authenticated clients.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "distributed/piece.h"
#include "distributed/task_status.h"
#include "framework/graph/attr_proto.h"
#include "framework/proto/wire.h"
#include "tests/distributed/by_hand.h"
#include "tests/distributed/denial.h"
#include "tests/distributed/splat.h"
#include "thalweg/status.h"

namespace thalweg::distributed {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
namespace by_hand = ::thalweg::testing;

constexpr uint64_t kMega = 1 << 20;
constexpr uint64_t kBeside = 128 * kMega;  // the size of a process that holds nothing for a client

uint64_t Limit() {
  const char* mb = std::getenv("THALWEG_HOLD_MB");
  return (mb ? std::stoull(mb) : 64) * kMega;
}

// Returns a memory figure of a process, in bytes: "VmRSS", "VmHWM".
uint64_t MemoryOf(pid_t pid, const std::string& what) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; in >> word;) {
    uint64_t kb = 0;
    if (word == what + ":" && in >> kb) return kb << 10;
  }
  return 0;
}

// A control group with a limit, if one can be made; otherwise it limits nothing.
class Group {
 public:
  explicit Group(uint64_t bytes) {
    for (const auto& [root, file] :
         {std::pair("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), std::pair("/sys/fs/cgroup", "memory.max")}) {
      const std::string folder = std::string(root) + "/thalweg-hold-" + std::to_string(getpid());
      std::error_code failed;
      if (!std::filesystem::exists(std::string(root) + "/cgroup.procs", failed) || !std::filesystem::create_directory(folder, failed))
        continue;
      folder_ = folder;
      if (Write(file, std::to_string(bytes))) return;
      Remove();
    }
  }
  ~Group() { Remove(); }
  bool is_there() const { return !folder_.empty(); }
  bool Add(pid_t pid) const { return is_there() && Write("cgroup.procs", std::to_string(pid)); }

 private:
  bool Write(const std::string& file, const std::string& text) const {
    std::ofstream out(folder_ + "/" + file);
    out << text << std::flush;
    return out.good();
  }
  void Remove() {
    std::error_code ignored;  // the folder remains until its last process is gone, which is harmless
    if (!folder_.empty()) std::filesystem::remove(folder_, ignored);
    folder_.clear();
  }
  std::string folder_;
};

// A client by hand that can send long messages. The worker keeps the answers that it does not read.
class Hand {
 public:
  explicit Hand(const std::string& address) : fd_(ConnectByHand(address)) {
    EXPECT_GE(fd_, 0) << address;
    const timeval patience = {20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  ~Hand() { close(fd_); }
  Hand(const Hand&) = delete;

  struct Answer {
    int code = -1;  // -1: no answer came
    std::string text, fields, body;
  };
  template <class M>
  uint64_t Begin(Method method, const M& m, std::string_view body = "") {
    WireWriter fields;
    m.Put(&fields);
    const std::string head = PutRequest(method, 0, fields);
    Send(by_hand::Packet(by_hand::kRequest, ++id_, head, body.size()));
    for (size_t at = 0; at < body.size(); at += kPiece)
      Send(by_hand::Packet(by_hand::kPiece, id_, std::string(body.substr(at, kPiece)), 0));
    return id_;
  }
  template <class M>
  Answer Ask(Method method, const M& m, std::string_view body = "") {
    return Await(Begin(method, m, body));
  }
  // Answers arrive in any order.
  Answer Await(uint64_t id) {
    by_hand::Frame f;
    std::string rest;
    for (auto it = coming_.find(id); it == coming_.end() || it->second.body.size() < it->second.bytes; it = coming_.find(id)) {
      if (!by_hand::Hear(fd_, &f, &rest)) return {};
      if (f.kind == by_hand::kAnswer) {
        coming_[f.id] = {std::move(rest), "", f.bytes};
      } else if (f.kind == by_hand::kPiece) {
        coming_[f.id].body += rest;
      }
    }
    Coming whole = std::move(coming_.extract(id).mapped());
    std::string_view fields;
    const auto outcome = GetAnswer(whole.head, &fields);
    EXPECT_TRUE(outcome.ok());
    if (!outcome.ok()) return {};
    return {int(outcome->status.code()), std::string(outcome->status.message()), std::string(fields), std::move(whole.body)};
  }
  // Opens a session and watches it.
  Answer Open(uint64_t session) {
    Answer a = Ask(Method::kOpen, OpenRequest{session, {}});
    if (a.code == 0) Begin(Method::kWatch, SessionRequest{session});
    return a;
  }
  Answer Register(uint64_t session, const PieceMessage& piece) { return Ask(Method::kRegister, SessionRequest{session}, piece.Put()); }

 private:
  static constexpr size_t kPiece = 60000;
  void Send(const std::string& packet) { EXPECT_EQ(send(fd_, packet.data(), packet.size(), MSG_NOSIGNAL), ssize_t(packet.size())); }
  struct Coming {
    std::string head, body;
    uint64_t bytes = 0;
  };
  const int fd_;
  uint64_t id_ = 0;
  std::map<uint64_t, Coming> coming_;
};

uint64_t HandleOf(const Hand::Answer& a) {
  const auto handle = HandleMessage::Get(a.fields);
  EXPECT_TRUE(handle.ok()) << a.text;
  return handle.ok() ? handle->handle : 0;
}

std::string Type(uint32_t dtype) { return *SerializeAttr(AttrValue::Type(dtype)); }

// A placeholder of any shape, and a node that doubles it.
PieceMessage Doubling(uint32_t dtype) {
  PieceMessage m;
  m.nodes.push_back({"x", "Placeholder", "", "", {}, {}, {}, {{"dtype", Type(dtype)}}, {}});
  if (dtype == TW_STRING) {
    m.nodes.push_back({"y", "Identity", "", "", {"x"}, {}, {}, {{"T", Type(dtype)}}, {}});
  } else {
    m.nodes.push_back({"y", "AddV2", "", "", {"x", "x"}, {}, {}, {{"T", Type(dtype)}}, {}});
  }
  m.feeds = {"x"};
  m.fetches = {"y"};
  return m;
}

std::string OneFeed(uint32_t dtype, int64_t count, const std::string& bytes) {
  WireWriter w;
  w.Number(uint32_t{1});
  w.Number(dtype);
  w.Number(uint32_t{1});
  w.Number(count);
  w.Number(uint64_t(bytes.size()));
  w.Raw(bytes.data(), bytes.size());
  return w.Take();
}

class HoldTest : public ::testing::Test {
 protected:
  static constexpr int kNone = 8;  // RESOURCE_EXHAUSTED

  HoldTest() : group_(Limit() + kBeside) {
    char name[] = "/tmp/thalweg-hold-XXXXXX";
    folder_ = mkdtemp(name);
    address_ = "unix:hold" + std::to_string(getpid());
    worker_ = std::make_unique<Process>(folder_, address_,
                                        std::vector<std::string>{"--server-option", "memory_limit=" + std::to_string(Limit())});
    grouped_ = group_.Add(worker_->pid());
    // The first use allocates memory that stays allocated.
    Serves(1);
    Serves(2);
    before_ = MemoryOf(worker_->pid(), "VmRSS");
  }
  ~HoldTest() override {
    worker_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Opens a session and runs a step, as an honest client does.
  void Serves(uint64_t session) {
    Hand honest(address_);
    Hand::Answer a;
    // The memory of a client that is gone is freed soon, but not at once.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    do {
      a = honest.Open(session);
      if (a.code == 0) break;
      ASSERT_EQ(a.code, kNone) << a.text;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    } while (std::chrono::steady_clock::now() < patience);
    ASSERT_EQ(a.code, 0) << a.text;
    a = honest.Register(session, Doubling(TW_FLOAT));
    ASSERT_EQ(a.code, 0) << a.text;
    const std::string one("\0\0\x80\x3f", 4), two("\0\0\0\x40", 4);
    a = honest.Ask(Method::kRun, RunRequest{session, HandleOf(a), 1, 1, 0}, OneFeed(TW_FLOAT, 1, one));
    ASSERT_EQ(a.code, 0) << a.text;
    EXPECT_EQ(a.body, OneFeed(TW_FLOAT, 1, two));
  }

  // Checks the worker after a hostile client has gone.
  void IsAsBefore(const char* what) {
    Serves(3);
    const uint64_t peak = MemoryOf(worker_->pid(), "VmHWM");
    uint64_t now = 0;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    do {
      now = MemoryOf(worker_->pid(), "VmRSS");
      if (now < before_ + kSlack) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    } while (std::chrono::steady_clock::now() < patience);
    EXPECT_LT(now, before_ + kSlack) << what << ": " << now / kMega << " MB are left, and there were " << before_ / kMega;
    EXPECT_LE(peak, Limit() + kBeside) << what << ": " << peak / kMega << " MB at its peak";
    std::printf("%s: limit %d MB%s, peak %d MB, before %d MB, after %d MB\n", what, int(Limit() / kMega),
                grouped_ ? " in a control group" : " (no control group may be made here)", int(peak / kMega), int(before_ / kMega),
                int(now / kMega));
  }
  static constexpr uint64_t kSlack = 24 * kMega;

  const Group group_;
  std::string folder_, address_;
  std::unique_ptr<Process> worker_;
  bool grouped_ = false;
  uint64_t before_ = 0;
};

TEST_F(HoldTest, ConstantsThatUnfold) {
  {
    Hand eve(address_);
    ASSERT_EQ(eve.Open(7).code, 0);
    Hand::Answer a;
    for (int i = 0; i < 100 && a.code <= 0; ++i) {
      PieceMessage m;
      m.nodes.push_back(Splat("c" + std::to_string(i), Limit() / 16));
      a = eve.Register(7, m);
      ASSERT_GE(a.code, 0);
    }
    EXPECT_EQ(a.code, kNone);
    EXPECT_THAT(a.text, HasSubstr("Const 'c"));
    EXPECT_THAT(a.text, HasSubstr("the task holds"));
    // Also registers a constant larger than the whole limit.
    PieceMessage huge;
    huge.nodes.push_back(Splat("huge", uint64_t{1} << 28));
    a = eve.Register(7, huge);
    EXPECT_EQ(a.code, kNone);
    EXPECT_THAT(a.text, HasSubstr("Const 'huge': attribute 'value': "));
  }
  IsAsBefore("constants that unfold");
}

TEST_F(HoldTest, MessagesThatTakeMoreThanTheirBytes) {
  {
    Hand eve(address_);
    ASSERT_EQ(eve.Open(7).code, 0);
    // Sends empty nodes and empty strings.
    WireWriter nodes, texts;
    const auto n = uint32_t(Limit() / 4 / 36);
    nodes.Text("");
    nodes.Number(n);
    nodes.Raw(std::string(size_t{36} * n, '\0').data(), size_t{36} * n);
    for (int i = 0; i < 6; ++i) nodes.Number(uint32_t{0});
    texts.Text("");
    for (int i = 0; i < 3; ++i) texts.Number(uint32_t{0});
    texts.Number(uint32_t(Limit() / 16));
    texts.Raw(std::string(size_t(Limit() / 4), '\0').data(), size_t(Limit() / 4));
    for (int i = 0; i < 3; ++i) texts.Number(uint32_t{0});
    for (const WireWriter* w : {&nodes, &texts}) {
      const Hand::Answer a = eve.Ask(Method::kRegister, SessionRequest{7}, w->bytes());
      EXPECT_EQ(a.code, kNone) << a.text;
      EXPECT_THAT(a.text, HasSubstr("a signature:"));
      EXPECT_THAT(a.text, HasSubstr("the task holds"));
    }
    // Feeds empty strings.
    Hand::Answer a = eve.Register(7, Doubling(TW_STRING));
    ASSERT_EQ(a.code, 0) << a.text;
    const auto count = int64_t(Limit() / 12);
    a = eve.Ask(Method::kRun, RunRequest{7, HandleOf(a), 1, 1, 0}, OneFeed(TW_STRING, count, std::string(size_t(count) * 4, '\0')));
    EXPECT_EQ(a.code, kNone) << a.text;
    EXPECT_THAT(a.text, HasSubstr("the task holds"));
  }
  IsAsBefore("messages that take more than their bytes");
}

TEST_F(HoldTest, AnswersThatNobodyReads) {
  {
    Hand eve(address_);
    ASSERT_EQ(eve.Open(7).code, 0);
    PieceMessage m;
    m.nodes.push_back(Splat("c", 1 << 18));
    m.fetches = {"c"};
    const Hand::Answer a = eve.Register(7, m);
    ASSERT_EQ(a.code, 0) << a.text;
    const uint64_t handle = HandleOf(a), steps = 3 * Limit() / kMega;
    WireWriter nothing;
    nothing.Number(uint32_t{0});
    // Reads no answers until it has sent requests for three times the limit.
    std::vector<uint64_t> asked;
    for (uint64_t step = 1; step <= steps; ++step)
      asked.push_back(eve.Begin(Method::kRun, RunRequest{7, handle, step, step, 0}, nothing.bytes()));
    Hand other(address_);
    for (int i = 0; i < 500; ++i) {
      const auto status = TaskStatus::Get(other.Ask(Method::kStatus, SessionRequest{0}).body);
      if (status.ok() && status->runs.empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    int refused = 0, good = 0;
    std::string text;
    for (const uint64_t id : asked) {
      const Hand::Answer of_step = eve.Await(id);
      ASSERT_GE(of_step.code, 0);
      (of_step.code == 0 ? good : refused)++;
      if (of_step.code != 0) {
        EXPECT_EQ(of_step.code, kNone) << of_step.text;
        text = of_step.text;
      }
    }
    EXPECT_GT(good, 0);
    EXPECT_GT(refused, 0);
    EXPECT_THAT(text, HasSubstr("the task holds"));
    // After it has read the answers, it is served again.
    EXPECT_EQ(eve.Ask(Method::kRun, RunRequest{7, handle, steps + 1, steps + 1, 0}, nothing.bytes()).code, 0);
  }
  IsAsBefore("answers that nobody reads");
}

TEST_F(HoldTest, Feeds) {
  {
    Hand eve(address_);
    ASSERT_EQ(eve.Open(7).code, 0);
    Hand::Answer a = eve.Register(7, Doubling(TW_FLOAT));
    ASSERT_EQ(a.code, 0) << a.text;
    const uint64_t handle = HandleOf(a);
    // Exceeds the limit with the body alone, then with body, feed and result together.
    uint64_t step = 0;
    for (const uint64_t bytes : {Limit() + 1024, Limit() / 5 * 2}) {
      ++step;
      a = eve.Ask(Method::kRun, RunRequest{7, handle, step, step, 0},
                  OneFeed(TW_FLOAT, int64_t(bytes / 4), std::string(bytes / 4 * 4, '\0')));
      EXPECT_EQ(a.code, kNone) << a.text;
      EXPECT_THAT(a.text, HasSubstr("the task holds"));
    }
  }
  IsAsBefore("feeds");
}

TEST_F(HoldTest, SessionsAndGraphs) {
  {
    Hand eve(address_);
    Hand::Answer a;
    // Opens sessions, each with its own graph.
    PieceMessage m;
    for (int i = 0; i < 300; ++i) {
      m.nodes.push_back({"p" + std::to_string(i), "Placeholder", "", "", {}, {}, {}, {{"dtype", Type(TW_FLOAT)}}, {}});
      m.nodes.push_back({"n" + std::to_string(i), "Neg", "", "", {"p" + std::to_string(i)}, {}, {}, {{"T", Type(TW_FLOAT)}}, {}});
    }
    uint64_t session = 10;
    for (; session < 1000 && a.code <= 0; ++session) {
      a = eve.Open(session);
      if (a.code == 0) a = eve.Register(session, m);
      ASSERT_GE(a.code, 0);
    }
    if (Limit() <= 256 * kMega) {
      EXPECT_EQ(a.code, kNone);
      EXPECT_THAT(a.text, HasSubstr("the task holds"));
    }
    // Registers signatures until one is refused.
    m.nodes.clear();
    for (int i = 0; i < 300000 && a.code <= 0; ++i) a = eve.Register(11, m);
    EXPECT_EQ(a.code, kNone);
    EXPECT_THAT(a.text, HasSubstr("the task holds"));
  }
  IsAsBefore("sessions and graphs");
}

TEST_F(HoldTest, ValuesThatOthersPush) {
  {
    Hand eve(address_);
    const uint64_t each = std::min(Limit() / 64, 4 * kMega);  // a task keeps 64 MiB of unrequested values, whatever the limit
    Hand::Answer a = eve.Ask(Method::kOpen, OpenRequest{7, {"memory_limit=" + std::to_string(8 * each)}});
    ASSERT_EQ(a.code, 0) << a.text;
    const std::string owner(WireReader(a.fields).Text());
    eve.Begin(Method::kWatch, SessionRequest{7});
    // Pushes values to a session with memory for eight: the task refuses the others, and they stay
    // with their sender.
    uint64_t taken = 0;
    for (uint64_t step = 1; step <= 32; ++step) {
      WireWriter body;
      body.Number(uint32_t{1});
      body.Text("v");
      body.Number(uint8_t{PushedValue::kHere});
      body.Raw(OneFeed(TW_FLOAT, int64_t(each / 4), std::string(each, '\0')).substr(4).data(), each + 24);
      a = eve.Ask(Method::kPush, PushRequest{7, step, owner}, body.bytes());
      ASSERT_EQ(a.code, 0) << a.text;
      if (a.fields.empty()) ++taken;
    }
    EXPECT_GE(taken, 6u);
    EXPECT_LE(taken, 8u);
  }
  IsAsBefore("values that others push");
}

// A waiting step is not over; later steps that begin and end meanwhile leave nothing behind.
TEST_F(HoldTest, ShortStepsBesideOneThatWaits) {
  worker_.reset();
  constexpr uint64_t kLittle = 4 << 20, kSteps = 60'000;
  worker_ =
      std::make_unique<Process>(folder_, address_, std::vector<std::string>{"--server-option", "memory_limit=" + std::to_string(kLittle)});
  {
    Hand eve(address_);
    ASSERT_EQ(eve.Open(7).code, 0);
    PieceMessage wait, one;
    const std::string of_float = *SerializeAttr(AttrValue::Types({TW_FLOAT}));
    wait.nodes.push_back({"queue", "FIFOQueueV2", "", "", {}, {}, {}, {{"component_types", of_float}}, {}});
    wait.nodes.push_back({"element", "QueueDequeueV2", "", "", {"queue"}, {}, {}, {{"component_types", of_float}}, {}});
    wait.fetches = {"element"};
    one.nodes.push_back(Splat("one", 1));
    one.fetches = {"one"};
    Hand::Answer a = eve.Register(7, wait);
    ASSERT_EQ(a.code, 0) << a.text;
    WireWriter nothing;
    nothing.Number(uint32_t{0});
    eve.Begin(Method::kRun, RunRequest{7, HandleOf(a), 1, 1, 0}, nothing.bytes());
    a = eve.Register(7, one);
    ASSERT_EQ(a.code, 0) << a.text;
    const uint64_t handle = HandleOf(a);
    std::vector<uint64_t> asked;
    for (uint64_t step = 2; step < kSteps;) {
      for (int k = 0; k < 32; ++k) asked.push_back(eve.Begin(Method::kRun, RunRequest{7, handle, step++, 1, 0}, nothing.bytes()));
      for (const uint64_t id : asked) {
        a = eve.Await(id);
        ASSERT_EQ(a.code, 0) << step << " " << a.text;
      }
      asked.clear();
    }
    // Steps that were aborted before they arrived leave nothing behind either.
    for (uint64_t step = kSteps + 100; step < kSteps + 6000; ++step) {
      a = eve.Ask(Method::kAbort, AbortRequest{7, step, Status(absl::StatusCode::kAborted, std::string(300, 'x'))});
      ASSERT_EQ(a.code, 0) << step << " " << a.text;
    }
    EXPECT_NE(eve.Ask(Method::kRun, RunRequest{7, handle, kSteps + 100, 1, 0}, nothing.bytes()).code, 0);
    EXPECT_NE(eve.Ask(Method::kRun, RunRequest{7, handle, 2, 1, 0}, nothing.bytes()).code, 0) << "a step is begun twice";
  }
  IsAsBefore("short steps beside one that waits");
}

// ---- Threads ----

uint64_t ThreadsOf(pid_t pid) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/task");
  return uint64_t(std::distance(begin(all), end(all)));
}

TEST_F(HoldTest, RunsHoldSoManyThreadsAndTheseEnd) {
  worker_.reset();
  worker_ = std::make_unique<Process>(folder_, address_, std::vector<std::string>{"--server-option", "max_threads=24"});
  Serves(1);
  const uint64_t before = ThreadsOf(worker_->pid());
  Hand eve(address_);
  ASSERT_EQ(eve.Open(7).code, 0);
  // work: half a millisecond of computing; wait: a step that waits for a value; bring: a later step
  // that provides the value.
  PieceMessage work, wait, bring;
  work.nodes.push_back(Splat("c", 1 << 20));
  work.nodes.push_back({"loss", "L2Loss", "", "", {"c"}, {}, {}, {{"T", Type(TW_FLOAT)}}, {}});
  work.fetches = {"loss"};
  const std::string of_float = *SerializeAttr(AttrValue::Types({TW_FLOAT}));
  wait.nodes.push_back({"queue", "FIFOQueueV2", "", "", {}, {}, {}, {{"component_types", of_float}}, {}});
  wait.nodes.push_back({"element", "QueueDequeueV2", "", "", {"queue"}, {}, {}, {{"component_types", of_float}}, {}});
  wait.fetches = {"element"};
  bring.nodes.push_back(Splat("one", 1));
  bring.nodes.push_back({"put", "QueueEnqueueV2", "", "", {"queue", "one"}, {}, {}, {{"Tcomponents", of_float}}, {}});
  bring.targets = {"put"};
  uint64_t handles[3];
  const PieceMessage* const pieces[] = {&work, &wait, &bring};
  for (int i = 0; i < 3; ++i) {
    const Hand::Answer a = eve.Register(7, *pieces[i]);
    ASSERT_EQ(a.code, 0) << a.text;
    handles[i] = HandleOf(a);
  }
  WireWriter nothing;
  nothing.Number(uint32_t{0});
  uint64_t step = 0, most = 0;
  std::vector<uint64_t> waiting, working;
  const auto begin = [&](uint64_t handle) { return eve.Begin(Method::kRun, RunRequest{7, handle, ++step, 1, 0}, nothing.bytes()); };
  // Three times as many steps wait as there are threads. They block no thread: other steps run and
  // provide the values.
  for (int i = 0; i < 72; ++i) waiting.push_back(begin(handles[1]));
  for (int i = 0; i < 800; ++i) {
    working.push_back(begin(handles[0]));
    if (i % 50 == 0) most = std::max(most, ThreadsOf(worker_->pid()));
  }
  for (const uint64_t id : working) {
    const Hand::Answer a = eve.Await(id);
    ASSERT_EQ(a.code, 0) << a.text;
    if (id % 50 == 0) most = std::max(most, ThreadsOf(worker_->pid()));
  }
  EXPECT_LE(most, before + 24 + 4) << "tasks that do not block have threads of their own";
  for (int i = 0; i < 72; ++i) begin(handles[2]);
  for (const uint64_t id : waiting) {
    const Hand::Answer a = eve.Await(id);
    ASSERT_EQ(a.code, 0) << a.text;
  }
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (ThreadsOf(worker_->pid()) > before + 2 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LE(ThreadsOf(worker_->pid()), before + 2);
  std::printf("threads: %d before, at most %d with %d steps\n", int(before), int(most), int(step));
}

}  // namespace
}  // namespace thalweg::distributed
