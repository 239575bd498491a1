// Membership through etcd: leases, keys, watches, and a store that goes away and returns. The test
// starts its own etcd.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <new>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "framework/base/strings.h"
#include "framework/runtime/runtime.h"
#include "tests/plugins/etcd_store.h"
#include "tests/support/free_port.h"

// Threads for which operator new fails at chosen places.
std::atomic<int> starved[8];
std::atomic<uint64_t> refusals{0};
void* operator new(size_t n) {
  if (starved[0].load(std::memory_order_relaxed) != 0) {
    const int self = int(syscall(SYS_gettid));
    for (const auto& thread : starved) {
      if (thread != self) continue;
      ++refusals;
      throw std::bad_alloc();
    }
  }
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t n, const std::nothrow_t&) noexcept { return std::malloc(n ? n : 1); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;
using Code = absl::StatusCode;

class Member {
 public:
  Member(const MembershipRole& role, std::string address, int64_t lease = 2'000'000'000, std::string credential = "") : role_(role) {
    tw_member_config c = {};
    c.size = sizeof c;
    c.address = address.data(), c.address_len = address.size();
    c.cluster = "team", c.cluster_len = 4;
    c.name = "m", c.name_len = 1;
    c.credential = credential.data(), c.credential_len = credential.size();
    c.lease = lease;
    c.arg = this;
    c.lost = [](void* arg, const tw_status* s) {
      auto* self = static_cast<Member*>(arg);
      self->why = std::string(s->status.message());
      ++self->lost;
    };
    joined = FromC(role_.def.join(role_.host, role_.def.user, &c, Soon(), &member_));
  }
  ~Member() { Leave(); }
  void Leave() {
    if (member_) role_.def.leave(role_.host, member_);
    member_ = nullptr;
  }
  StatusOr<uint64_t> Put(const std::string& key, const std::string& value, bool mine = false, uint64_t expected = UINT64_MAX) {
    uint64_t revision = 0;
    const tw_put put = {TW_SIZED(tw_put), key.data(), key.size(), value.data(), value.size(), expected, Soon(), mine, 0};
    RETURN_IF_ERROR(FromC(role_.def.put(role_.host, member_, &put, &revision)));
    return revision;
  }
  StatusOr<std::string> Get(const std::string& key, uint64_t* revision = nullptr) {
    std::string value;
    tw_sink to = {TW_SIZED(tw_sink), &value, [](tw_sink* sink, const void* bytes, uint64_t n) -> tw_status* {
                    static_cast<std::string*>(sink->user)->append(static_cast<const char*>(bytes), n);
                    return nullptr;
                  }};
    uint64_t at = 0;
    RETURN_IF_ERROR(FromC(role_.def.get(role_.host, member_, key.data(), key.size(), Soon(), &to, revision ? revision : &at)));
    return value;
  }
  Status Remove(const std::string& key, uint64_t expected = UINT64_MAX) {
    return FromC(role_.def.remove(role_.host, member_, key.data(), key.size(), expected, Soon()));
  }
  int64_t Soon() const { return role_.host->run->now(role_.host) + 5'000'000'000; }
  const MembershipRole& role_;
  void* member_ = nullptr;
  Status joined;
  std::string why;  // why the lease was lost; valid once `lost` is set
  std::atomic<int> lost{0};
};

// Records the events of a watch: "key=value", "key-".
class Watch {
 public:
  Watch(Member* m, const std::string& prefix) : m_(*m) {
    const auto told = [](void* arg, const tw_change* c) {
      auto* self = static_cast<Watch*>(arg);
      std::lock_guard lock(self->mu_);
      self->told_.push_back(StrCat(std::string_view(c->key, c->key_len), c->value ? "=" : "-",
                                   std::string_view(static_cast<const char*>(c->value), c->value ? c->bytes : 0)));
      self->changed_.notify_all();
    };
    EXPECT_TRUE(FromC(m_.role_.def.watch(m_.role_.host, m_.member_, prefix.data(), prefix.size(), told, this, &watch_)).ok());
  }
  ~Watch() { m_.role_.def.unwatch(m_.role_.host, watch_); }
  std::vector<std::string> After(size_t n) {
    std::unique_lock lock(mu_);
    changed_.wait_for(lock, 15s, [&] { return told_.size() >= n; });
    return told_;
  }

 private:
  Member& m_;
  void* watch_ = nullptr;
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::string> told_;
};

std::vector<int> Threads() {
  std::vector<int> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    all.push_back(std::stoi(entry.path().filename().string()));
  return all;
}

class EtcdTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Etcd::Installed()) GTEST_SKIP() << "there is no /usr/bin/etcd (package etcd-server)";
    RuntimeOptions options;
    options.threads = 1;
    options.disabled_plugins = {"*opencl*"};
    options.plugin_settings["plugin.org.thalweg.etcd.plain_password"] = "1";
    auto runtime = Runtime::Create(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    runtime_ = *runtime;
    Status loaded = runtime_->LoadPlugin(ETCD);
    ASSERT_TRUE(loaded.ok() || loaded.code() == Code::kAlreadyExists) << loaded;
    const auto roles = runtime_->registry().RolesOf<MembershipRole>("etcd");
    ASSERT_EQ(roles.size(), 1u);
    role_ = roles[0];
    etcd_ = std::make_unique<Etcd>();
    for (int i = 0; i < 100; ++i) {
      Member first(*role_, etcd_->address());
      if (first.joined.ok()) return;
      std::this_thread::sleep_for(100ms);
    }
    FAIL() << "etcd has not started";
  }
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<const MembershipRole> role_;
  std::unique_ptr<Etcd> etcd_;
};

TEST_F(EtcdTest, KeysHaveValuesAndRevisionsForAllMembers) {
  Member a(*role_, etcd_->address()), b(*role_, etcd_->address());
  uint64_t last = 0;
  for (const std::string& value : {std::string("one"), std::string("zero\0\xff inside", 14), std::string(), std::string(100'000, 'x')}) {
    const auto put = a.Put("k\"ey", value);
    ASSERT_TRUE(put.ok()) << put.status();
    EXPECT_GT(*put, last);
    last = *put;
    uint64_t seen = 0;
    const auto got = b.Get("k\"ey", &seen);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, value);
    EXPECT_EQ(seen, last);
  }
  EXPECT_EQ(a.Put("k\"ey", "other", false, 0).status().code(), Code::kAborted);
  EXPECT_EQ(b.Put("k\"ey", "other", false, last - 1).status().code(), Code::kAborted);
  EXPECT_TRUE(b.Put("k\"ey", "other", false, last).ok());
  EXPECT_EQ(b.Remove("k\"ey", last).code(), Code::kAborted);
  EXPECT_TRUE(b.Remove("k\"ey").ok());
  EXPECT_EQ(a.Get("k\"ey").status().code(), Code::kNotFound);
  EXPECT_TRUE(a.Put("k\"ey", "again", false, 0).ok());
}

TEST_F(EtcdTest, WatchesTellWhatThereIsAndThenEveryChangeInOrder) {
  Member a(*role_, etcd_->address()), b(*role_, etcd_->address());
  ASSERT_TRUE(a.Put("task/1", "a").ok() && a.Put("task/0", "b").ok() && a.Put("other", "c").ok());
  Watch watch(&b, "task/");
  EXPECT_THAT(watch.After(2), ElementsAre("task/1=a", "task/0=b"));
  ASSERT_TRUE(a.Put("task/0", "d").ok() && a.Put("tasks", "e").ok() && a.Remove("task/1").ok() && a.Put("task/2", "").ok());
  EXPECT_THAT(watch.After(5), ElementsAre("task/1=a", "task/0=b", "task/0=d", "task/1-", "task/2="));
}

TEST_F(EtcdTest, KeysOfAMemberGoWithItsLease) {
  constexpr int64_t kLease = 6'000'000'000;  // long enough for a busy machine to renew the lease in time
  Member watcher(*role_, etcd_->address(), kLease), stays(*role_, etcd_->address(), kLease);
  auto leaves = std::make_unique<Member>(*role_, etcd_->address());
  ASSERT_TRUE(leaves->Put("leaves", "1", true).ok() && leaves->Put("kept", "1").ok() && stays.Put("stays", "1", true).ok());
  leaves.reset();
  EXPECT_EQ(watcher.Get("leaves").status().code(), Code::kNotFound);
  EXPECT_TRUE(watcher.Get("kept").ok());
  std::this_thread::sleep_for(9s);  // longer than a lease, which is renewed
  EXPECT_TRUE(watcher.Get("stays").ok());
  EXPECT_EQ(stays.lost, 0);
}

TEST_F(EtcdTest, AMemberOfAStoreThatStandsStillHearsThatItIsLostAndAWatchGoesOnWhenTheStoreIsBack) {
  Member a(*role_, etcd_->address()), b(*role_, etcd_->address(), 30'000'000'000);
  ASSERT_TRUE(b.Put("k", "before").ok());
  Watch watch(&b, "k");
  watch.After(1);
  etcd_->Signal(SIGSTOP);
  for (int i = 0; i < 600 && a.lost == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(a.lost, 1);
  EXPECT_EQ(b.lost, 0);
  etcd_->Signal(SIGCONT);
  etcd_->Stop();
  EXPECT_EQ(b.Get("k").status().code(), Code::kUnavailable);
  EXPECT_THAT(std::string(Message(b.Get("k").status())), HasSubstr("etcd membership: '" + etcd_->address() + "' cannot be reached"));
  etcd_->Start();
  Status put;
  for (int i = 0; i < 600 && !(put = b.Put("k", "after").status()).ok(); ++i) std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(put.ok()) << put;
  EXPECT_THAT(watch.After(2), ElementsAre("k=before", "k=after"));
}

// An etcd with two users who have all rights.
class EtcdWithUsers : public EtcdTest {
 protected:
  void SetUp() override {
    EtcdTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Ask("/v3/auth/role/add", R"({"name": "root"})");
    for (const std::string user : {"root", "ann"}) {
      Ask("/v3/auth/user/add", R"({"name": ")" + user + R"(", "password": "secret"})");
      Ask("/v3/auth/user/grant", R"({"user": ")" + user + R"(", "role": "root"})");
    }
    Ask("/v3/auth/enable", "{}");
  }
  // Returns the answer's text; "" if there was none.
  std::string Ask(const std::string& path, const std::string& json, const std::string& token = "") {
    const std::string address = etcd_->address();
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(uint16_t(std::stoi(address.substr(address.find(':') + 1))));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string answer;
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
      const std::string text =
          StrCat("POST ", path, " HTTP/1.1\r\nHost: ", address, "\r\nConnection: close\r\n",
                 token.empty() ? "" : StrCat("Authorization: ", token, "\r\n"), "Content-Length: ", json.size(), "\r\n\r\n", json);
      send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      char bytes[4096];
      for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;) answer.append(bytes, size_t(n));
    }
    close(fd);
    EXPECT_THAT(answer, HasSubstr(" 200 OK")) << path;
    return answer;
  }
  std::string RootsToken() {
    const std::string answer = Ask("/v3/auth/authenticate", R"({"name": "root", "password": "secret"})"), before = "\"token\":\"";
    const size_t at = answer.find(before) + before.size();
    return answer.substr(at, answer.find('"', at) - at);
  }
};

// The store forgets its tokens when it restarts, and leases are renewed without a token.
TEST_F(EtcdWithUsers, AWatchGoesOnWhereTheStoreKnowsTheTokenNoLonger) {
  Member a(*role_, etcd_->address(), 30'000'000'000, "ann:secret");
  ASSERT_TRUE(a.joined.ok()) << a.joined;
  EXPECT_EQ(Member(*role_, etcd_->address(), 2'000'000'000, "ann:guess").joined.code(), Code::kUnavailable);
  ASSERT_TRUE(a.Put("k", "before").ok());
  Watch watch(&a, "k");
  watch.After(1);
  etcd_->Stop();
  etcd_->Start();
  Status put;
  for (int i = 0; i < 600 && !(put = a.Put("k", "after").status()).ok(); ++i) std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(put.ok()) << put;
  EXPECT_THAT(watch.After(2), ElementsAre("k=before", "k=after"));
  EXPECT_EQ(a.lost, 0);
}

TEST_F(EtcdWithUsers, AMemberWhoseWatchIsRefusedHearsThatItIsLost) {
  Member a(*role_, etcd_->address(), 8'000'000'000, "ann:secret");
  ASSERT_TRUE(a.joined.ok() && a.Put("k", "before").ok());
  Watch watch(&a, "k");
  watch.After(1);
  Ask("/v3/auth/user/changepw", R"({"name": "ann", "password": "another"})", RootsToken());
  etcd_->Stop();
  etcd_->Start();
  for (int i = 0; i < 3000 && a.lost == 0; ++i) std::this_thread::sleep_for(10ms);
  ASSERT_EQ(a.lost, 1);
  EXPECT_THAT(a.why, HasSubstr("a watch has failed for longer than a lease: '" + etcd_->address() +
                               "' answers: etcdserver: authentication failed"));
}

TEST_F(EtcdTest, APasswordIsNotToldInPlainTextUnlessThatIsSaid) {
  RuntimeOptions options;
  options.threads = 1;
  options.disabled_plugins = {"*opencl*"};
  const auto runtime = *Runtime::Create(options);
  ASSERT_TRUE(runtime->LoadPlugin(ETCD).ok());
  const auto roles = runtime->registry().RolesOf<MembershipRole>("etcd");
  // A program that listens there would receive the password; it need not be a store.
  const int port = FreePort(), listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(uint16_t(port));
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  const Status refused = Member(*roles[0], StrCat("127.0.0.1:", port), 2'000'000'000, "ann:secret").joined;
  EXPECT_EQ(refused.code(), Code::kPermissionDenied) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(StrCat("'127.0.0.1:", port, "' would be told the password of 'ann' in plain text; give https://")));
  EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("secret")));
  pollfd came = {listener, POLLIN, 0};
  EXPECT_EQ(poll(&came, 1, 0), 0) << "nobody was even asked";
  close(listener);
}

TEST_F(EtcdTest, AFileWithAPasswordThatOthersMayReadOrThatIsSomebodyElsesIsRefused) {
  const std::string folder = testing::TempDir() + StrCat("etcd-user-", getpid()), file = folder + "/user";
  std::filesystem::create_directories(folder);
  std::ofstream(file) << "ann:secret\n";
  const auto said = [&] { return std::string(Member(*role_, etcd_->address(), 2'000'000'000, folder).joined.message()); };
  chmod(file.c_str(), 0640);
  EXPECT_THAT(said(), HasSubstr("user' can be read by others; chmod 600"));
  chmod(file.c_str(), 0600);
  EXPECT_THAT(said(), Not(HasSubstr("chmod")));
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
    EXPECT_THAT(said(), HasSubstr("user' belongs to user 65534, who may change it"));
  }
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);  // a FIFO without a writer
  EXPECT_THAT(said(), HasSubstr("user' is no file"));
  std::filesystem::remove_all(folder);
}

// ---- Without memory ----

// A member's threads fail to allocate memory for a while, and continue when allocation succeeds
// again.
TEST_F(EtcdTest, ThreadsThatFindNoMemoryGoOnWhenThereIsSome) {
  const auto before = Threads();
  Member a(*role_, etcd_->address(), 30'000'000'000);
  ASSERT_TRUE(a.joined.ok()) << a.joined;
  Watch watch(&a, "k");
  ASSERT_TRUE(a.Put("k", "0").ok());
  ASSERT_EQ(watch.After(1).size(), 1u);
  size_t n = 0;
  for (const int thread : Threads()) {
    if (std::find(before.begin(), before.end(), thread) == before.end()) starved[n++] = thread;
  }
  ASSERT_GE(n, 2u);
  const uint64_t refused = refusals;
  for (int i = 1; i <= 20; ++i) ASSERT_TRUE(a.Put("k", StrCat(i)).ok());
  for (int i = 0; i < 2000 && refusals < refused + 5; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_GE(refusals, refused + 5);
  for (auto& thread : starved) thread = 0;
  ASSERT_TRUE(a.Put("k", "last").ok());
  std::vector<std::string> told;
  for (int i = 0; i < 2000; ++i) {
    told = watch.After(1);
    if (told.back() == "k=last") break;
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(told.back(), "k=last");
  EXPECT_EQ(a.lost, 0);
}

TEST_F(EtcdTest, WhatIsNoStoreIsRefusedWithAReason) {
  EXPECT_THAT(std::string(Message(Member(*role_, "nonsense").joined)), HasSubstr("is no address; give host:port"));
  EXPECT_EQ(Member(*role_, StrCat("127.0.0.1:", FreePort())).joined.code(), Code::kUnavailable);
}

}  // namespace
}  // namespace thalweg
