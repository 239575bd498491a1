// Parts of the collective engines `shm` and `ring`: the checks of a call, the bytes that an operation
// over TCP sends and takes, a member that joins a group in vain, and forks.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/wait.h>

#include "plugins/common/collective_call.h"
#include "plugins/ring/hosts.h"
#include "plugins/ring/on_demand.h"
#include "plugins/ring/operation.h"
#include "plugins/shm/group.h"

// The statuses of the host of these tests.
struct tw_status {
  uint32_t code;
  std::string text;
};

namespace thalweg {
namespace {

using common::CheckedCall;
using common::CollectiveCall;
using common::kNobody;
using ::testing::HasSubstr;

// ---- The host ----

tw_status* MakeStatus(const tw_host*, uint32_t code, const char* text, uint64_t len, tw_status* cause) {
  delete cause;
  return new tw_status{code, std::string(text, len)};
}

class Host {
 public:
  Host() {
    status_.size = sizeof status_;
    status_.make = MakeStatus;
    status_.code = [](const tw_status* s) { return s ? s->code : uint32_t{TW_OK}; };
    status_.text = [](const tw_status* s, tw_sink* to) { return to->put(to, s->text.data(), s->text.size()); };
    status_.release = [](tw_status* s) { delete s; };
    run_.size = sizeof run_;
    run_.now = [](const tw_host*) {
      return passed_ +
             int64_t{std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count()};
    };
    host_.size = sizeof host_;
    host_.status = &status_;
    host_.run = &run_;
  }
  const tw_host* get() const { return &host_; }
  int64_t now() const { return run_.now(&host_); }
  // Sets the clock forward.
  static void Pass(int64_t nanoseconds) { passed_ += nanoseconds; }

 private:
  static inline std::atomic<int64_t> passed_{0};
  tw_status_api status_{};
  tw_run_api run_{};
  tw_host host_{};
};

// A store of one thread.
class Store {
 public:
  explicit Store(const Host* host) : host_(host) {
    api_.size = sizeof api_;
    api_.put = [](void* self, const char* key, uint64_t key_len, const void* value, uint64_t bytes) -> tw_status* {
      static_cast<Store*>(self)->values[std::string(key, key_len)] = std::string(static_cast<const char*>(value), bytes);
      return nullptr;
    };
    api_.get = [](void* self, const char* key, uint64_t key_len, int64_t, tw_sink* to) {
      auto* store = static_cast<Store*>(self);
      const auto found = store->values.find(std::string(key, key_len));
      if (found != store->values.end() && store->answered) store->answered();
      if (found != store->values.end()) return to->put(to, found->second.data(), found->second.size());
      if (store->asked_in_vain) store->asked_in_vain();
      const uint32_t code = store->cancelled ? TW_CANCELLED : TW_DEADLINE_EXCEEDED;
      return MakeStatus(store->host_->get(), code, "not there", 9, nullptr);
    };
  }
  tw_group_config config(uint32_t rank, uint32_t members, int64_t deadline) {
    tw_group_config c{};
    c.size = sizeof c;
    c.name = "g";
    c.name_len = 1;
    c.rank = rank;
    c.members = members;
    c.store = &api_;
    c.store_self = this;
    c.native = "";
    c.deadline = deadline;
    return c;
  }

  std::map<std::string, std::string> values;
  bool cancelled = false;
  std::function<void()> asked_in_vain, answered;

 private:
  const Host* const host_;
  tw_key_value_api api_{};
};

// ---- The checks of a call ----

struct View {
  explicit View(std::vector<float> v) : values(std::move(v)) {
    view.size = sizeof view;
    view.data = values.data();
    view.dtype = TW_FLOAT;
    view.count = values.size();
    view.bytes = values.size() * sizeof(float);
  }
  std::vector<float> values;
  tw_view view{};
};

tw_collective_call CallOf(const tw_view* in, const tw_view* out) {
  tw_collective_call c{};
  c.size = sizeof c;
  c.in = in;
  c.out = out;
  return c;
}

std::string Refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const tw::Error& e) {
    return std::to_string(e.code) + " " + e.text;
  }
  return "nothing was refused";
}

TEST(CollectiveCallTest, InputOfAMemberThatReceivesABroadcastIsNotRead) {
  View out({1, 2, 3});
  tw_collective_call c = CallOf(nullptr, &out.view);
  c.root = 1;
  const CollectiveCall call = CheckedCall(common::Operation::kBroadcast, c, 0, 2);
  EXPECT_EQ(call.in, nullptr);
  EXPECT_EQ(call.bytes, 12u);
}

TEST(CollectiveCallTest, SourcesOfAPermutationAreChecked) {
  View in({1}), out({0});
  const auto refusal = [&](const std::vector<uint32_t>& sources) {
    tw_collective_call c = CallOf(&in.view, &out.view);
    c.sources = sources.data();
    c.n_sources = sources.size();
    return Refusal([&] { CheckedCall(common::Operation::kPermute, c, 0, 2); });
  };
  EXPECT_THAT(refusal({1, kNobody}), HasSubstr("nothing was refused"));
  EXPECT_THAT(refusal({1}), HasSubstr("3 permute of 1 float: 1 sources for 2 members"));
  EXPECT_THAT(refusal({0, 2}), HasSubstr("the source of member 1, 2, is no member"));
}

TEST(CollectiveCallTest, PermutationsDifferByTheirSources) {
  View in({1}), out({0});
  const auto task = [&](const std::vector<uint32_t>& sources) {
    tw_collective_call c = CallOf(&in.view, &out.view);
    c.sources = sources.data();
    c.n_sources = sources.size();
    return CheckedCall(common::Operation::kPermute, c, 0, 2).task;
  };
  EXPECT_EQ(task({1, 0}), task({1, 0}));
  EXPECT_NE(task({1, 0}), task({0, 1}));
}

// ---- Operations over TCP ----

// A call of `count` floats from `in` to `out`.
CollectiveCall FloatsCall(common::Operation operation, uint64_t count, const float* in, float* out) {
  CollectiveCall c;
  c.task.operation = uint32_t(operation);
  c.task.dtype = TW_FLOAT;
  c.task.count = count;
  c.in = reinterpret_cast<const char*>(in);
  c.out = reinterpret_cast<char*>(out);
  c.element = sizeof(float);
  c.bytes = count * sizeof(float);
  return c;
}

// Hands over what one member has for another one, as far as it may, and returns the bytes.
uint64_t Move(std::vector<std::unique_ptr<ring::Operation>>* all, uint32_t from, uint32_t to) {
  uint64_t moved = 0;
  for (;;) {
    const ring::Operation::Bytes bytes = (*all)[from]->Take(to, 4096);
    if (bytes.size == 0) return moved;
    uint64_t done = 0;
    while (done < bytes.size) {
      EXPECT_TRUE((*all)[to]->Expects(from, bytes.stage, 1));
      const ring::Operation::Place place = (*all)[to]->PlaceFor(from, bytes.stage);
      const uint64_t n = std::min(place.size, bytes.size - done);
      std::memcpy(place.data, bytes.data + done, n);
      (*all)[to]->Got(from, bytes.stage, n);
      done += n;
    }
    (*all)[from]->Written(to);
    moved += bytes.size;
  }
}

TEST(RingOperationTest, PlaceEndsWhereTheGrantEnds) {
  constexpr uint64_t kWindow = 4096, kCount = 30'000;  // a window takes two blocks of 2048 bytes
  std::vector<float> in(kCount, 1), out(kCount / 3);
  CollectiveCall call = FloatsCall(common::Operation::kReduceScatter, kCount, in.data(), out.data());
  call.task.reduce = TW_REDUCE_SUM;
  ring::Operation operation(call, 0, 3, kWindow);
  ASSERT_EQ(operation.Granted(1), kWindow);
  operation.Got(1, 1, 4096);
  operation.Got(2, 1, 2048);  // the first block is folded
  ASSERT_TRUE(operation.Grant(1));
  ASSERT_EQ(operation.Granted(1), 4096u + 2048u);
  // The second block of member 1 is in the window still, behind the place of the first one.
  EXPECT_EQ(operation.PlaceFor(1, 1).size, 2048u);
  operation.Got(1, 1, 2048);
  EXPECT_FALSE(operation.Expects(1, 1, 1));
  EXPECT_EQ(operation.PlaceFor(1, 1).size, 0u);
}

TEST(RingOperationTest, PermutationSendsOnlyWhatIsNeeded) {
  constexpr uint64_t kCount = 10'000;
  const std::vector<uint32_t> sources = {2, kNobody, 2, 3};
  std::vector<std::vector<float>> in, out;
  for (int r = 0; r < 4; ++r) {
    in.emplace_back(kCount, float(r + 1));
    out.emplace_back(kCount, -1.0f);
  }
  std::vector<std::unique_ptr<ring::Operation>> all;
  for (uint32_t r = 0; r < 4; ++r) {
    CollectiveCall call = FloatsCall(common::Operation::kPermute, kCount, in[r].data(), out[r].data());
    call.sources = sources;
    all.push_back(std::make_unique<ring::Operation>(call, r, 4, 1 << 20));
  }
  for (uint32_t a = 0; a < 4; ++a) {
    for (uint32_t b = 0; b < 4; ++b) {
      if (a != b) all[a]->Begun(b, all[b]->Granted(a));
    }
  }
  uint64_t moved = 0;
  for (uint32_t a = 0; a < 4; ++a) {
    for (uint32_t b = 0; b < 4; ++b) {
      if (a != b) moved += Move(&all, a, b);
    }
  }
  EXPECT_EQ(moved, kCount * sizeof(float));  // from 2 to 0; all others have what they need
  const float want[] = {3, 0, 3, 4};
  for (uint32_t r = 0; r < 4; ++r) {
    EXPECT_TRUE(all[r]->Done()) << r;
    EXPECT_EQ(out[r], std::vector<float>(kCount, want[r])) << r;
  }
}

TEST(RingOperationTest, GuardEndsWhenItsMemberIsReleasedAndNeedsTheOthersUntilThen) {
  std::vector<std::unique_ptr<ring::Operation>> all;
  for (uint32_t r = 0; r < 2; ++r) {
    CollectiveCall call = FloatsCall(common::Operation::kAllReduce, 3, nullptr, nullptr);
    call.guards = true;
    all.push_back(std::make_unique<ring::Operation>(call, r, 2, 1 << 20));
  }
  EXPECT_FALSE(all[0]->AllBegun());
  for (uint32_t r = 0; r < 2; ++r) all[r]->Begun(1 - r, all[1 - r]->Granted(r));
  EXPECT_TRUE(all[0]->AllBegun());
  EXPECT_EQ(Move(&all, 0, 1), 0u);
  EXPECT_FALSE(all[0]->Done());
  EXPECT_TRUE(all[1]->NeedsMore(0));
  all[0]->Release();
  EXPECT_EQ(Move(&all, 0, 1), 1u);
  EXPECT_TRUE(all[0]->Done());
  EXPECT_TRUE(all[0]->NeedsMore(1));  // it has not said that it is released
  EXPECT_FALSE(all[1]->NeedsMore(0));
  EXPECT_FALSE(all[1]->Done());
  all[1]->Release();
  EXPECT_EQ(Move(&all, 1, 0), 0u);  // member 0 may be gone
  EXPECT_TRUE(all[1]->Done());
}

// ---- Hosts ----

TEST(RingHostsTest, MembersAreOrderedByRankAndHostsByTheirFirstMembers) {
  const ring::HostKey a{{7, 1}}, b{{2, 1}}, c{{2, 5}};
  const ring::Hosts hosts = ring::HostsOf({a, b, a, c, a, b});
  using Ranks = std::vector<uint32_t>;
  EXPECT_EQ(hosts.ranks, (std::vector<Ranks>{{0, 2, 4}, {1, 5}, {3}}));
  EXPECT_EQ(hosts.host, (Ranks{0, 1, 0, 2, 0, 1}));
  EXPECT_EQ(hosts.place, (Ranks{0, 0, 1, 0, 2, 1}));
  EXPECT_EQ(hosts.most, 3u);
}

TEST(RingHostsTest, HostDependsOnItsNameAndOnTheFolderOfSharedMemory) {
  EXPECT_EQ(ring::OwnHost("x", "/tmp"), ring::OwnHost("x", "/tmp"));
  EXPECT_FALSE(ring::OwnHost("x", "/tmp") == ring::OwnHost("y", "/tmp"));
  EXPECT_FALSE(ring::OwnHost("x", "/tmp") == ring::OwnHost("x", "/"));
  // A process that has no such folder can share memory with nobody.
  EXPECT_FALSE(ring::OwnHost("x", "/no such folder") == ring::OwnHost("x", "/no such folder"));
}

// ---- Members that join in vain ----

class ShmJoinTest : public ::testing::Test {
 protected:
  ShmJoinTest() {
    char name[] = "/tmp/collectives_test_XXXXXX";
    settings_.folder = mkdtemp(name);
  }
  ~ShmJoinTest() override { std::filesystem::remove_all(settings_.folder); }
  // Returns the failure of a member that joins.
  std::string Join(uint32_t rank, uint32_t members, int64_t deadline, std::vector<uint32_t> ranks = {}) {
    const tw_group_config c = store_.config(rank, members, deadline);
    try {
      const shm::Group group(host_.get(), c, settings_, std::move(ranks));
    } catch (...) {
      const common::Failed how = common::Caught(host_.get());
      return std::to_string(how.code) + " " + how.text;
    }
    return "it has joined";
  }

  Host host_;
  Store store_{&host_};
  shm::Settings settings_;
};

constexpr int64_t kMinute = 60'000'000'000;

TEST_F(ShmJoinTest, MemberThatMeetsAFailedGroupIsLate) {
  shm::Segment segment;
  segment.Create(settings_.folder, 2, 4096, "window");
  segment.Come(0);
  segment.Break(TW_ABORTED, "member 0 gave up while it waited for the others");
  store_.values["g/shm"] = shm::HostNumber() + " " + segment.path();
  EXPECT_EQ(Join(1, 2, kMinute), std::to_string(TW_DEADLINE_EXCEEDED) +
                                     " member 1 came too late, the others have given up: member 0 gave up while it waited for the others");
  EXPECT_EQ(segment.slot(1).process.load(), 0) << "it has come to a group that had failed";
}

TEST_F(ShmJoinTest, HostThatGivesUpAfterTheDeadlineLeavesTheReason) {
  shm::Segment other;
  store_.cancelled = true;
  constexpr int64_t kDeadline = 1'000'000;
  store_.asked_in_vain = [&] {
    const std::string& path = store_.values["g/shm"];
    ASSERT_TRUE(other.members() || other.Open(path.substr(path.find(' ') + 1), 3));
    for (const int64_t begin = host_.now(); host_.now() < begin + kDeadline;) {
    }
  };
  Join(0, 3, kDeadline);
  EXPECT_EQ(other.Failure().code, uint32_t{TW_DEADLINE_EXCEEDED});
  EXPECT_EQ(other.Failure().text, "not all 3 members have come in time; missing: 1, 2");
  EXPECT_TRUE(std::filesystem::is_empty(settings_.folder));
}

// In a copy of a machine, or in a container that hides the folder of another one.
TEST_F(ShmJoinTest, MemberOfLevelsThatDoesNotShareTheMemoryIsToldTheSetting) {
  store_.values["g/shm"] = shm::HostNumber() + " " + settings_.folder + "/thalweg-0123456789abcdef";
  store_.answered = [] { Host::Pass(1'000'000'000); };
  const std::string failure = Join(1, 2, 0, {4, 6});
  EXPECT_THAT(failure, HasSubstr(std::to_string(TW_FAILED_PRECONDITION) + " '" + settings_.folder + "/thalweg-"));
  EXPECT_THAT(failure, HasSubstr("the memory of member 4, is not in this member's"));
  EXPECT_THAT(failure, HasSubstr("by the setting 'host'"));
}

TEST_F(ShmJoinTest, FileThatIsGoneIsNamedAtTheDeadline) {
  store_.values["g/shm"] = shm::HostNumber() + " " + settings_.folder + "/thalweg-0123456789abcdef";
  store_.answered = [] { Host::Pass(kMinute / 4); };
  EXPECT_THAT(Join(1, 2, kMinute), HasSubstr("member 0 did not come in time; the store names '" + settings_.folder + "/thalweg-"));
}

TEST_F(ShmJoinTest, FileOfALostFirstMemberIsRemoved) {
  auto lost = std::make_unique<shm::Segment>();
  lost->Create(settings_.folder, 2, 4096, "window");
  lost->Come(0);
  const std::string path = lost->path();
  shm::Segment found, again;
  EXPECT_TRUE(found.Open(path, 2));
  EXPECT_TRUE(std::filesystem::exists(path));
  lost.reset();  // ends the lock, as the end of the process does
  EXPECT_FALSE(again.Open(path, 2));
  EXPECT_FALSE(std::filesystem::exists(path));
}

// ---- Forks ----

TEST_F(ShmJoinTest, ChildOfAForkIsNoMember) {
  const tw_group_config c = store_.config(0, 1, kMinute);
  shm::Group group(host_.get(), c, settings_);
  const pid_t child = fork();
  if (child == 0) {
    View in({1}), out({0});
    const std::string refusal = Refusal([&] { group.Start(common::Operation::kAllGather, CallOf(&in.view, &out.view)); });
    _exit(group.forked() && refusal.find("the child of a fork is no member") != refusal.npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_FALSE(group.forked());
}

class EndsSlowly {
 public:
  EndsSlowly(std::promise<void>* begun, std::shared_future<void> go) : begun_(begun), go_(std::move(go)) {}
  ~EndsSlowly() {
    begun_->set_value();
    go_.wait();
  }

 private:
  std::promise<void>* const begun_;
  const std::shared_future<void> go_;
};

TEST(OnDemandTest, ForkWhileTheObjectEndsLeavesTheChildAnObjectOfItsOwn) {
  std::promise<void> begun, go;
  const std::shared_future<void> may_end = go.get_future().share();
  ring::OnDemand<EndsSlowly> shared;
  const auto make = [&] { return std::make_shared<EndsSlowly>(&begun, may_end); };
  shared.Get(make);
  std::future<void> ending = std::async(std::launch::async, [&] { shared.Release(); });
  begun.get_future().wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // the default action ends a child that waits for a lock of its parent
    const auto own = shared.Get(make);
    _exit(own ? 0 : 1);
  }
  int status = -1;
  const pid_t waited = waitpid(child, &status, 0);
  go.set_value();
  ending.wait();
  ASSERT_EQ(waited, child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

TEST(OnDemandTest, ObjectIsMadeOnceAndDestroyedWithItsLastUser) {
  ring::OnDemand<std::string> shared;
  int made = 0;
  const auto make = [&] { return std::make_shared<std::string>(std::to_string(++made)); };
  auto first = shared.Get(make);
  const auto second = shared.Get(make);
  EXPECT_EQ(first, second);
  first.reset();
  shared.Release();
  EXPECT_EQ(*shared.Get(make), "1");  // `second` uses it still
}

}  // namespace
}  // namespace thalweg
