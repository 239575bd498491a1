// Membership through an etcd that authenticates itself and its clients, with certificates as
// `thalweg cluster init` makes them, and with every kind of invalid certificate.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/stat.h>

#include "distributed/members.h"
#include "framework/base/strings.h"
#include "framework/runtime/runtime.h"
#include "tests/plugins/etcd_store.h"
#include "tools/credentials/certificate.h"

namespace thalweg::distributed {
namespace {

using credentials::Make;
using credentials::Pair;
using credentials::Recipe;
using credentials::WriteSecret;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
using Code = absl::StatusCode;
using std::chrono::steady_clock;
constexpr int64_t kDay = 24 * 3600;

// Returns true if the condition becomes true in time.
template <typename F>
bool Soon(F f) {
  for (const auto until = steady_clock::now() + 60s; !f() && steady_clock::now() < until;) std::this_thread::sleep_for(5ms);
  return f();
}

class EtcdTlsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Etcd::Installed()) GTEST_SKIP() << "there is no /usr/bin/etcd (package etcd-server)";
    folder_ = testing::TempDir() + StrCat("etcd-tls-", getpid());
    RuntimeOptions options;
    options.threads = 1;
    options.disabled_plugins = {"*opencl*"};
    runtime_ = *Runtime::Create(options);
    const Status loaded = runtime_->LoadPlugin(ETCD);
    ASSERT_TRUE(loaded.ok() || loaded.code() == Code::kAlreadyExists) << loaded;
    Recipe authority = Good("authority");
    authority.authority = true;
    ca_ = Make(authority, nullptr);
    member_ = Folder("member", ca_.cert, Make(Good("ps"), &ca_));
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  // Valid for both sides: etcd's gateway is its own client.
  static Recipe Good(const std::string& name) {
    Recipe r;
    r.name = name;
    r.hosts = {"127.0.0.1"};
    r.server = r.client = true;
    r.ends = kDay;
    return r;
  }
  std::string Folder(const std::string& name, const std::string& ca, const Pair& pair) {
    const std::string place = folder_ + "/" + name;
    std::filesystem::create_directories(place);
    WriteSecret(place + "/ca.pem", ca);
    if (!pair.cert.empty()) {
      WriteSecret(place + "/cert.pem", pair.cert);
      WriteSecret(place + "/key.pem", pair.key);
    }
    return place;
  }
  void StartStore(const Recipe& recipe) {
    const std::string place = Folder("store", ca_.cert, Make(recipe, &ca_));
    store_ = std::make_unique<Etcd>(std::vector<std::string>{"--cert-file", place + "/cert.pem", "--key-file", place + "/key.pem",
                                                             "--trusted-ca-file", place + "/ca.pem", "--client-cert-auth"},
                                    "https");
  }
  StatusOr<std::unique_ptr<Members>> Join(const std::string& credentials, const std::string& scheme = "https://") {
    const Members::Config config = {StrCat("etcd:", scheme, store_->address(), "/team"), "m", credentials};
    return Members::Join(runtime_.get(), config, [this] { ++lost_; });
  }
  // Joins once the store has started.
  std::unique_ptr<Members> Joined(const std::string& credentials) {
    const auto until = steady_clock::now() + 60s;
    StatusOr<std::unique_ptr<Members>> m = Join(credentials);
    for (; !m.ok() && m.status().code() == Code::kUnavailable && steady_clock::now() < until; m = Join(credentials))
      std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(m.ok()) << m.status();
    return m.ok() ? *std::move(m) : nullptr;
  }
  void ExpectDenied(const std::string& credentials, const std::string& why) {
    const auto m = Join(credentials);
    EXPECT_EQ(m.status().code(), Code::kPermissionDenied) << m.status();
    EXPECT_THAT(std::string(m.status().message()), HasSubstr(why));
  }

  std::string folder_, member_;
  Pair ca_;
  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<Etcd> store_;
  std::atomic<int> lost_{0};
};

TEST_F(EtcdTlsTest, MembersWithCertificatesMeetAndHearOfEachOther) {
  StartStore(Good("store"));
  auto task = Joined(member_), client = Joined(member_);
  ASSERT_TRUE(task && client);
  std::atomic<uint64_t> heard{0}, gone{0};
  ASSERT_TRUE(task->Announce({"ps", 0}, 7).ok());
  ASSERT_TRUE(client
                  ->Watch([&](const TaskId& id, uint64_t incarnation) {
                    EXPECT_EQ(id.text(), "/job:ps/task:0");
                    incarnation ? heard = incarnation : ++gone;
                  })
                  .ok());
  Soon([&] { return heard == 7; });
  EXPECT_EQ(heard, 7u);
  // Replaced files are used from the next connection on.
  const Pair fresh = Make(Good("ps"), &ca_);
  WriteSecret(member_ + "/cert.pem", fresh.cert);
  WriteSecret(member_ + "/key.pem", fresh.key);
  ASSERT_TRUE(task->Announce({"ps", 0}, 8).ok());
  Soon([&] { return heard == 8; });
  EXPECT_EQ(heard, 8u);
  task.reset();
  Soon([&] { return gone == 1; });
  EXPECT_EQ(gone, 1u);
  EXPECT_EQ(lost_, 0);
}

// The member loses its lease. Its next announcement is stored, but its answer is lost; watchers do
// not hear that the task was gone.
TEST_F(EtcdTlsTest, AMemberWhoseWordWasNotAnsweredSaysItAgain) {
  StartStore(Good("store"));
  auto client = Joined(member_);
  ASSERT_TRUE(client);
  std::atomic<uint64_t> heard{0}, gone{0};
  ASSERT_TRUE(client->Watch([&](const TaskId&, uint64_t incarnation) { incarnation ? ++heard : ++gone; }).ok());
  std::vector<Members*> said;
  const Members::Config config = {StrCat("etcd:https://", store_->address(), "/team"), "m", member_};
  Membership membership(runtime_.get(), config, [&](Members* m) -> Status {
    said.push_back(m);
    RETURN_IF_ERROR(m->Announce({"ps", 0}, 7));
    return said.size() == 2 ? Error(Code::kDeadlineExceeded, "as if nobody had answered") : Status();
  });
  ASSERT_TRUE(membership.Start().ok());
  EXPECT_TRUE(Soon([&] { return membership.joined() && heard >= 1; }));
  store_->Stop();
  EXPECT_TRUE(Soon([&] { return !membership.joined(); }));
  store_->Start();
  EXPECT_TRUE(Soon([&] { return membership.joined() && heard >= 2; }));
  EXPECT_EQ(gone, 0u);
  membership.Stop();
  EXPECT_TRUE(Soon([&] { return gone == 1; }));
  ASSERT_GE(said.size(), 3u);
  EXPECT_NE(said[0], said[1]);
  EXPECT_EQ(said[1], said[2]);
}

// The stack size exceeds the address space, so no thread can start. A member that loses its lease
// then rejoins as soon as a thread can start.
TEST_F(EtcdTlsTest, AMemberJoinsAgainWhenThereIsAThread) {
  StartStore(Good("store"));
  EXPECT_TRUE(Joined(member_));  // the store has started
  std::atomic<int> joined{0};
  const Members::Config config = {StrCat("etcd:https://", store_->address(), "/team"), "m", member_};
  Membership membership(runtime_.get(), config, [&](Members*) { return ++joined, Status(); });
  ASSERT_TRUE(membership.Start().ok());
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_init(&huge);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 48), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  store_->Stop();
  EXPECT_TRUE(Soon([&] { return !membership.joined(); }));
  store_->Start();
  std::this_thread::sleep_for(3s);
  EXPECT_EQ(joined, 1);
  EXPECT_FALSE(membership.joined());
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  EXPECT_TRUE(Soon([&] { return membership.joined(); }));
}

TEST_F(EtcdTlsTest, AFolderOfItsOwnComesBeforeThatOfTheCluster) {
  StartStore(Good("store"));
  Recipe other = Good("another authority");
  other.authority = true;
  const Pair others = Make(other, nullptr);
  const std::string cluster = Folder("cluster", others.cert, Make(Good("ps"), &others));
  EXPECT_TRUE(Joined(member_));  // the store has started
  ExpectDenied(cluster, "has not proven who it is");
  Folder("cluster/etcd", ca_.cert, Make(Good("ps"), &ca_));
  EXPECT_TRUE(Joined(cluster));
  // The user's name and password, which this store does not know.
  WriteSecret(cluster + "/etcd/user", "ann:secret\n");
  const Status s = Join(cluster).status();
  EXPECT_THAT(std::string(s.message()), HasSubstr("authentication is not enabled"));
  EXPECT_THAT(std::string(s.message()), ::testing::Not(HasSubstr("secret")));
}

TEST_F(EtcdTlsTest, WhoProvesTooLittleIsRefusedOnEitherSide) {
  StartStore(Good("store"));
  EXPECT_TRUE(Joined(member_));
  Recipe other = Good("another authority"), expired = Good("ps"), server = Good("ps");
  other.authority = true;
  expired.begins = -2 * kDay, expired.ends = -kDay;
  server.client = false;
  const Pair others = Make(other, nullptr);
  ExpectDenied(Folder("unknown store", others.cert, Make(Good("ps"), &ca_)), "has not proven who it is");
  ExpectDenied(Folder("no certificate", ca_.cert, {}), "TLS with '127.0.0.1' fails");
  ExpectDenied(Folder("unknown authority", ca_.cert, Make(Good("ps"), &others)), "TLS with '127.0.0.1' fails");
  ExpectDenied(Folder("expired", ca_.cert, Make(expired, &ca_)), "TLS with '127.0.0.1' fails");
  ExpectDenied(Folder("for servers", ca_.cert, Make(server, &ca_)), "TLS with '127.0.0.1' fails");
  EXPECT_TRUE(Joined(member_));
}

TEST_F(EtcdTlsTest, AStoreWithTheCertificateOfAnotherMachineIsRefused) {
  Recipe elsewhere = Good("store");
  elsewhere.hosts = {"etcd.example.org", "192.0.2.7"};
  StartStore(elsewhere);
  const auto until = steady_clock::now() + 60s;
  Status s;
  while ((s = Join(member_).status()).code() == Code::kUnavailable && steady_clock::now() < until) std::this_thread::sleep_for(50ms);
  EXPECT_EQ(s.code(), Code::kPermissionDenied) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("IP address mismatch"));
}

TEST_F(EtcdTlsTest, WhoSpeaksOneWayIsNotHeardTheOther) {
  StartStore(Good("store"));
  EXPECT_TRUE(Joined(member_));
  EXPECT_FALSE(Join(member_, "").ok());
  EXPECT_FALSE(Join(member_, "http://").ok());
  store_.reset();  // the next store uses its folder
  store_ = std::make_unique<Etcd>();
  const auto until = steady_clock::now() + 60s;
  while (!Join("", "").ok() && steady_clock::now() < until) std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(Join(member_, "http://").ok());  // needs no certificates
  const Status s = Join(member_).status();
  EXPECT_EQ(s.code(), Code::kUnavailable) << s;
}

TEST_F(EtcdTlsTest, FilesThatCannotBeUsedAreNamed) {
  StartStore(Good("store"));
  EXPECT_TRUE(Joined(member_));
  const auto wrong = [&](const std::string& folder) { return std::string(Join(folder).status().message()); };
  chmod((member_ + "/key.pem").c_str(), 0644);
  EXPECT_THAT(wrong(member_), HasSubstr("member/key.pem' can be read by others; chmod 600"));
  WriteSecret(member_ + "/key.pem", Make(Good("ps"), &ca_).key);
  EXPECT_THAT(wrong(member_), HasSubstr("member/key.pem' cannot be used"));
  WriteSecret(member_ + "/cert.pem", "nonsense");
  EXPECT_THAT(wrong(member_), HasSubstr("member/cert.pem' cannot be used"));
  WriteSecret(member_ + "/ca.pem", "nonsense");
  EXPECT_THAT(wrong(member_), HasSubstr("member/ca.pem' cannot be used"));
  std::filesystem::remove(member_ + "/ca.pem");
  std::filesystem::create_symlink("ca.pem", member_ + "/ca.pem");
  EXPECT_THAT(wrong(member_), HasSubstr("member/ca.pem' cannot be read"));
  EXPECT_THAT(wrong(member_ + "s"), HasSubstr("members' cannot be read"));
}

}  // namespace
}  // namespace thalweg::distributed
