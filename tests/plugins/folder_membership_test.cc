// The leases of the example membership service. The conformance kit checks its other promises.
#include <filesystem>
#include <fstream>
#include <thread>

#include "gtest/gtest.h"

#include "framework/base/strings.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

using namespace std::chrono_literals;

class FolderMembershipTest : public testing::Test {
 protected:
  FolderMembershipTest() {
    RuntimeOptions options;
    options.threads = 1;
    options.disabled_plugins = {"*opencl*"};
    auto runtime = Runtime::Create(options);
    EXPECT_TRUE(runtime.ok()) << runtime.status();
    runtime_ = *runtime;
    Status loaded = runtime_->LoadPlugin(FOLDER_MEMBERSHIP);
    EXPECT_TRUE(loaded.ok()) << loaded;
    auto roles = runtime_->registry().RolesOf<MembershipRole>("file");
    EXPECT_EQ(roles.size(), 1u);
    role_ = roles[0];
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~FolderMembershipTest() override { std::filesystem::remove_all(folder_); }
  void* Join(std::atomic<int>* lost) {
    void* member = nullptr;
    tw_member_config c = {};
    c.size = sizeof c;
    c.address = folder_.data(), c.address_len = folder_.size();
    c.cluster = "c", c.cluster_len = 1;
    c.name = "m", c.name_len = 1;
    c.lease = 2'000'000'000;  // long enough for a busy machine to renew the lease in time
    c.arg = lost;
    c.lost = [](void* arg, const tw_status*) { ++*static_cast<std::atomic<int>*>(arg); };
    Status s = FromC(role_->def.join(role_->host, role_->def.user, &c, 0, &member));
    EXPECT_TRUE(s.ok()) << s;
    return member;
  }
  Status Put(void* member, std::string_view key, uint32_t mine) {
    uint64_t revision = 0;
    const tw_put put = {TW_SIZED(tw_put), key.data(), key.size(), "v", 1, UINT64_MAX, 0, mine, 0};
    return FromC(role_->def.put(role_->host, member, &put, &revision));
  }
  Status Get(void* member, std::string_view key) {
    uint64_t revision = 0;
    tw_sink to = {TW_SIZED(tw_sink), nullptr, [](tw_sink*, const void*, uint64_t) -> tw_status* { return nullptr; }};
    return FromC(role_->def.get(role_->host, member, key.data(), key.size(), 0, &to, &revision));
  }
  Status GetUntilGone(void* member, std::string_view key) {
    Status s;
    for (int i = 0; i < 3000 && s.ok(); ++i) {
      s = Get(member, key);
      std::this_thread::sleep_for(10ms);
    }
    return s;
  }
  void Leave(void* member) { role_->def.leave(role_->host, member); }
  std::vector<std::string> Leases() const {
    std::vector<std::string> out;
    for (const auto& f : std::filesystem::directory_iterator(folder_)) {
      if (f.path().extension() != "") out.push_back(f.path());
    }
    return out;
  }
  const std::string folder_ = testing::TempDir() + StrCat("members-", getpid());
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<const MembershipRole> role_;
  std::atomic<int> lost_a_{0}, lost_b_{0};
};

TEST_F(FolderMembershipTest, AMemberThatLivesKeepsItsKeys) {
  void *a = Join(&lost_a_), *b = Join(&lost_b_);
  EXPECT_TRUE(Put(a, "mine", 1).ok());
  std::this_thread::sleep_for(5s);  // more than two leases
  EXPECT_TRUE(Get(b, "mine").ok());
  EXPECT_EQ(lost_a_ + lost_b_, 0);
  Leave(a);
  EXPECT_EQ(Get(b, "mine").code(), absl::StatusCode::kNotFound);
  Leave(b);
  EXPECT_TRUE(Leases().empty());
}

// Simulates the lease of a member that died: a file with an id whose time stamp no longer changes.
TEST_F(FolderMembershipTest, KeysOfAMemberThatDiedGoWithItsLease) {
  void* a = Join(&lost_a_);
  const std::string lease = Leases().at(0);
  EXPECT_TRUE(Put(a, "mine", 1).ok());
  EXPECT_TRUE(Put(a, "stays", 0).ok());
  std::filesystem::remove(lease);
  for (int i = 0; i < 3000 && lost_a_ == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(lost_a_, 1);  // reported once, and the member renews nothing afterwards
  std::ofstream(lease).close();
  std::filesystem::last_write_time(lease, std::filesystem::file_time_type::clock::now() - 1h);
  void* b = Join(&lost_b_);
  EXPECT_EQ(GetUntilGone(b, "mine").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Get(b, "stays").ok());
  EXPECT_FALSE(std::filesystem::exists(lease));
  EXPECT_EQ(lost_a_, 1);
  Leave(a);
  Leave(b);
}

// The incomplete record of a writer that died is not read, and the next change overwrites it.
TEST_F(FolderMembershipTest, HalfARecordIsCutOff) {
  void* a = Join(&lost_a_);
  EXPECT_TRUE(Put(a, "k", 0).ok());
  const uint64_t bytes = std::filesystem::file_size(folder_ + "/c");
  std::ofstream(folder_ + "/c", std::ios::app | std::ios::binary) << std::string(45, '\1');
  EXPECT_TRUE(Get(a, "k").ok());
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/c"), bytes);
  EXPECT_TRUE(Put(a, "k2", 0).ok());
  EXPECT_TRUE(Get(a, "k2").ok());
  Leave(a);
}

}  // namespace
}  // namespace thalweg
