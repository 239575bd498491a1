#include "distributed/members.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <filesystem>
#include <utility>

#include "framework/base/shown.h"
#include "framework/runtime/thread_pool.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kLease = 5'000'000'000;  // nanoseconds without a renewal
constexpr int64_t kAgain = 2'000'000'000;  // for the service to answer, when joining is retried again and again
constexpr std::chrono::seconds kPause(1);
constexpr std::string_view kTasks = "task/";

struct Service {
  Address address;
  std::string cluster;
};

StatusOr<Service> ParseService(const std::string& where) {
  const size_t at = where.rfind('/');
  if (at == where.npos || at + 1 == where.size()) {
    return InvalidArgument("membership '", Shown(where), "': write `scheme:address/cluster`, such as etcd:host:2379/team");
  }
  auto address = ParseAddress(where.substr(0, at));
  if (!address.ok()) return Prefix(address.status(), StrCat("membership '", Shown(where), "':"));
  return Service{*std::move(address), where.substr(at + 1)};
}

template <class T>
bool ReadNumber(std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

StatusOr<std::unique_ptr<Members>> Members::Join(Runtime* runtime, const Config& config, std::function<void()> lost) {
  const auto& [where, name, credentials, patience] = config;
  ASSIGN_OR_RETURN(const Service service, ParseService(where));
  const auto found = runtime->registry().RolesOf<MembershipRole>(service.address.scheme);
  if (found.empty()) {
    return NotFound("membership '", where, "': no membership service of scheme '", service.address.scheme,
                    "' is registered; load the plugin that provides it");
  }
  std::unique_ptr<Members> m(new Members(found[0], patience, std::move(lost)));
  tw_member_config c = {TW_SIZED(tw_member_config)};
  c.address = service.address.rest.data();
  c.address_len = service.address.rest.size();
  c.cluster = service.cluster.data();
  c.cluster_len = service.cluster.size();
  c.name = name.data();
  c.name_len = name.size();
  std::error_code no_folder;  // on an error the plugin reports the unreadable path
  const std::string folder = credentials.empty() ? "" : std::filesystem::absolute(credentials, no_folder).string();
  c.credential = folder.data();
  c.credential_len = folder.size();
  c.lease = kLease;
  c.arg = m.get();
  c.lost = [](void* arg, const tw_status*) { static_cast<const Members*>(arg)->lost_(); };
  const MembershipRole& role = *m->role_;
  Status s = FromC(role.def.join(role.host, role.def.user, &c, role.host->run->now(role.host) + patience, &m->member_));
  if (!s.ok()) return Prefix(s, StrCat("membership '", where, "':"));
  return m;
}

Members::~Members() {
  if (watch_) role_->def.unwatch(role_->host, watch_);
  if (member_) role_->def.leave(role_->host, member_);
}

Status Members::Announce(const TaskId& task, uint64_t incarnation) {
  const std::string key = StrCat(kTasks, task.job, "/", task.index), value = StrCat(incarnation);
  uint64_t revision = 0;
  const tw_put put = {TW_SIZED(tw_put),
                      key.data(),
                      key.size(),
                      value.data(),
                      value.size(),
                      UINT64_MAX,
                      role_->host->run->now(role_->host) + patience_,
                      1,
                      0};
  return FromC(role_->def.put(role_->host, member_, &put, &revision));
}

Status Members::Watch(std::function<void(const TaskId& task, uint64_t incarnation)> changed) {
  changed_ = std::move(changed);
  const auto told = [](void* arg, const tw_change* c) { static_cast<Members*>(arg)->Changed(*c); };
  return FromC(role_->def.watch(role_->host, member_, kTasks.data(), kTasks.size(), told, this, &watch_));
}

// Ignores keys that are no task's, and values that are no incarnation.
void Members::Changed(const tw_change& c) {
  std::string_view key(c.key, size_t(c.key_len));
  const size_t slash = key.rfind('/');
  if (!key.starts_with(kTasks) || slash < kTasks.size()) return;
  TaskId task{std::string(key.substr(kTasks.size(), slash - kTasks.size())), 0};
  uint64_t incarnation = 0;
  if (!ReadNumber(key.substr(slash + 1), &task.index)) return;
  if (c.value && !ReadNumber({static_cast<const char*>(c.value), size_t(c.bytes)}, &incarnation)) return;
  changed_(task, incarnation);
}

// ---- Membership ----

Status Membership::Start() { return Join(config_).status(); }

// Returns the previous member. If `each` failed for a new member, its announcement may still have
// arrived: the member stays, and `each` runs again.
StatusOr<std::unique_ptr<Members>> Membership::Join(const Members::Config& config) {
  std::lock_guard one(member_mu_);
  uint64_t which = 0;
  {
    std::lock_guard lock(mu_);
    if (!next_ || next_is_ <= lost_) which = ++joins_;
  }
  std::unique_ptr<Members> spent;  // destroyed when `each` has succeeded for its successor
  if (which) {
    ASSIGN_OR_RETURN(auto member, Members::Join(runtime_, config, [this, which] { Lost(which); }));
    spent = std::exchange(next_, std::move(member));
    next_is_ = which;
  }
  RETURN_IF_ERROR(each_(next_.get()));
  member_.swap(next_);
  std::lock_guard lock(mu_);
  joined_ = next_is_;
  return std::move(next_);
}

// The plugin waits for this call and cannot handle exceptions. Joining again destroys the member
// whose thread this may be, so it needs another thread.
void Membership::Lost(uint64_t which) {
  std::unique_lock lock(mu_);
  lost_ = std::max(lost_, which);
  if (stopping_ || joining_ || joined_ > lost_) return;
  joining_ = true;
  do {
    lock.unlock();
    try {
      if (runtime_->pool().HasThreadForTasks()) return runtime_->pool().Blocking([this] { JoinAgain(); });
    } catch (const std::exception&) {  // no memory: handled like a missing thread, there may be some later
    }
    lock.lock();
  } while (!changed_.wait_for(lock, kPause, [this] { return stopping_; }));
  joining_ = false;
  changed_.notify_all();
}

void Membership::JoinAgain() {
  std::unique_lock lock(mu_);
  while (!stopping_ && joined_ <= lost_) {
    lock.unlock();
    bool good = false;
    try {
      Members::Config config = config_;
      config.patience = kAgain;
      good = Join(config).ok();
    } catch (const std::exception&) {  // no memory
    }
    lock.lock();
    if (!good) changed_.wait_for(lock, kPause, [this] { return stopping_; });
  }
  joining_ = false;
  changed_.notify_all();
}

bool Membership::joined() const {
  std::lock_guard lock(mu_);
  return joined_ > lost_;
}

void Membership::Stop() {
  {
    std::unique_lock lock(mu_);
    stopping_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !joining_; });
  }
  std::lock_guard one(member_mu_);
  next_.reset();
  member_.reset();
}

}  // namespace thalweg::distributed
