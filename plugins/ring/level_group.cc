#include "level_group.h"

#include <chrono>
#include <condition_variable>
#include <new>
#include <utility>

namespace thalweg::ring {
namespace {

constexpr std::chrono::milliseconds kLook{25};  // between looks at whether the host still waits for the group
constexpr const char* kNoMemory = " has no memory for its part of the operation";

std::string NumberText(uint64_t v) {
  std::string digits(16, '0');
  for (int i = 0; i < 16; ++i) digits[size_t(i)] = "0123456789abcdef"[v >> (60 - 4 * i) & 15];
  return digits;
}

}  // namespace

// The store of the parts while they join. It fails when the group of all has failed, so that members
// that wait for each other through the store end.
class LevelGroup::Store {
 public:
  Store(LevelGroup* group, const tw_group_config& c) : group_(group), api_(c.store), self_(c.store_self), name_(c.name, c.name_len) {
    own_.size = sizeof own_;
    own_.put = [](void* self, const char* key, uint64_t key_len, const void* value, uint64_t bytes) {
      const auto* s = static_cast<Store*>(self);
      return s->api_->put(s->self_, key, key_len, value, bytes);
    };
    own_.get = [](void* self, const char* key, uint64_t key_len, int64_t deadline, tw_sink* to) {
      const auto* s = static_cast<Store*>(self);
      const Failed why = s->group_->all_->failure();
      if (why.code) return tw_fail(s->group_->host_, TW_CANCELLED, why.text.data(), why.text.size());
      return s->api_->get(s->self_, key, key_len, deadline, to);
    };
  }
  const tw_key_value_api* api() const { return &own_; }
  const std::string& name() const { return name_; }
  // Returns the host's reason if it no longer waits for the group: reading a key that nobody writes
  // then fails with CANCELLED. NULL: it waits.
  tw_status* Unwanted() const {
    const std::string key = name_ + "/levels/wanted";
    tw_sink nowhere = {TW_SIZED(tw_sink), nullptr, [](tw_sink*, const void*, uint64_t) -> tw_status* { return nullptr; }};
    tw_status* s = api_->get(self_, key.data(), key.size(), group_->Now(), &nowhere);
    if (!s || group_->host_->status->code(s) != TW_DEADLINE_EXCEEDED) return s;
    group_->host_->status->release(s);
    return nullptr;
  }

 private:
  LevelGroup* const group_;
  const tw_key_value_api* const api_;
  void* const self_;
  const std::string name_;
  tw_key_value_api own_{};
};

// Waits for a call of the group of all or of the leaders.
class LevelGroup::Waiter final : public common::Watcher {
 public:
  explicit Waiter(LevelGroup* group) : group_(group) {}

  void AllBegun() noexcept override {
    std::lock_guard lock(mu_);
    begun_ = true;
    changed_.notify_all();
  }
  void Ended(const Failed& how) noexcept override {
    std::lock_guard lock(mu_);
    how_ = common::CopyOf(how);
    ended_ = true;
    changed_.notify_all();
  }
  // Returns false if the call has failed before.
  bool AwaitBegun() {
    Await([this] { return begun_ || ended_; });
    std::lock_guard lock(mu_);
    return !ended_;
  }
  Failed AwaitEnd() {
    Await([this] { return ended_; });
    std::lock_guard lock(mu_);
    return std::move(how_);
  }

 private:
  template <class Reached>
  void Await(Reached reached) {
    std::unique_lock lock(mu_);
    if (!group_->store_) return changed_.wait(lock, reached);
    while (!changed_.wait_for(lock, kLook, reached)) {
      lock.unlock();
      group_->CheckWanted();
      lock.lock();
    }
  }

  LevelGroup* const group_;
  std::mutex mu_;  // guards the fields below
  std::condition_variable changed_;
  bool begun_ = false, ended_ = false;
  Failed how_;
};

// ---- Joining ----

LevelGroup::LevelGroup(std::shared_ptr<Hub> hub, const tw_group_config& c)
    : host_(hub->host()), rank_(c.rank), members_(c.members), patience_(c.deadline), calls_(host_, [this](const Call& w) {
        return Run(w);
      }) {
  all_ = std::make_unique<Group>(hub, c, Part{{}, [this](const Failed& why) { Broken(why); }});
  Store store(this, c);
  store_ = &store;
  try {
    const std::vector<Greeting> greetings = Greet(hub->settings());
    if (flat_) {
      store_ = nullptr;
      return;
    }
    Call guard;
    guard.task.operation = uint32_t(common::Operation::kAllGather);
    guard.task.dtype = TW_UINT8;
    guard.deadline = patience_ ? Now() + patience_ : 0;
    const Failed how = Guarded(std::move(guard), [&] {
      try {
        JoinParts(hub, c, greetings[0].number);
      } catch (...) {
        const Failed why = common::Caught(host_);
        common::Fail(why.code, all_->Who() + ": " + why.text);
      }
    });
    if (how.code) common::Fail(how.code, how.text);
  } catch (...) {
    LeaveParts();
    all_.reset();
    throw;
  }
  store_ = nullptr;
  if (hosts_.ranks.size() == 1) all_.reset();
}

// Tells the other members of this one's host, and learns of theirs.
std::vector<LevelGroup::Greeting> LevelGroup::Greet(const Settings& settings) {
  const Greeting own = {OwnHost(settings.host, settings.folder), RandomNumber(), settings.levels ? 1u : 0u};
  std::vector<Greeting> greetings(members_);
  Call c;
  c.task.operation = uint32_t(common::Operation::kAllGather);
  c.task.dtype = TW_UINT8;
  c.task.count = sizeof own;
  c.in = reinterpret_cast<const char*>(&own);
  c.out = reinterpret_cast<char*>(greetings.data());
  c.bytes = sizeof own;
  c.deadline = patience_ ? Now() + patience_ : 0;
  const Failed how = RunOn(all_.get(), std::move(c));
  if (how.code) common::Fail(how.code, how.text);
  std::vector<HostKey> keys;
  for (const Greeting& g : greetings) {
    keys.push_back(g.host);
    if (!g.levels) flat_ = true;
  }
  hosts_ = HostsOf(keys);
  if (hosts_.ranks.size() == members_) flat_ = true;
  return greetings;
}

void LevelGroup::JoinParts(const std::shared_ptr<Hub>& hub, const tw_group_config& c, uint64_t number) {
  const uint32_t own = hosts_.host[rank_];
  tw_group_config part = c;
  part.store = store_->api();
  part.store_self = store_;
  const std::string name = store_->name() + "/levels/" + NumberText(number);
  if (own_host().size() > 1) {
    const std::string host_name = name + "/host" + std::to_string(own);
    part.name = host_name.data();
    part.name_len = host_name.size();
    part.rank = place();
    part.members = uint32_t(own_host().size());
    shm::Settings settings;
    settings.folder = hub->settings().folder;
    settings.window = hub->settings().shared_window;
    settings.window_setting = "shared_window";
    auto local = std::make_unique<shm::Group>(host_, part, settings, own_host());
    std::lock_guard lock(mu_);
    local_ = std::move(local);
  }
  if (!leads() || hosts_.ranks.size() == 1) return;
  const std::string leaders_name = name + "/leaders";
  part.name = leaders_name.data();
  part.name_len = leaders_name.size();
  part.rank = own;
  part.members = uint32_t(hosts_.ranks.size());
  Part of_all;
  for (const auto& ranks : hosts_.ranks) of_all.ranks.push_back(ranks[0]);
  auto leaders = std::make_unique<Group>(hub, part, std::move(of_all));
  std::lock_guard lock(mu_);
  leaders_ = std::move(leaders);
}

// Called while this member waits for others. Fails the group if the host does not want it any more.
void LevelGroup::CheckWanted() noexcept {
  tw_status* s = store_->Unwanted();
  if (!s) return;
  const Failed why = common::FailedOf(host_, s);
  host_->status->release(s);
  FailAll(why);
}

// Destroys the groups of the host and of the leaders. Not under the lock, because the hub's thread,
// for which the leaders' group waits, takes it.
void LevelGroup::LeaveParts() {
  std::unique_ptr<shm::Group> local;
  std::unique_ptr<Group> leaders;
  std::lock_guard lock(mu_);
  local = std::move(local_);
  leaders = std::move(leaders_);
}

LevelGroup::~LevelGroup() {
  if (!calls_.idle()) {
    all_->FailAll(Own(TW_CANCELLED, " has left the group"), Own(TW_ABORTED, " left during an operation"));
  }
  calls_.End();
  LeaveParts();
  all_.reset();
}

// ---- Calls ----

void LevelGroup::Start(common::Operation operation, const tw_collective_call& c) {
  if (forked()) {
    common::Fail(TW_FAILED_PRECONDITION, "the child of a fork is no member of its parent's group; start processes by exec");
  }
  if (!all_) return local_->Start(operation, c);
  Call w = common::CheckedCall(operation, c, rank_, members_);
  const Failed why = all_->failure();
  if (why.code) common::Fail(why.code, why.text);
  w.number = ++number_;
  if (flat_) return all_->Enqueue(std::move(w));
  calls_.Add(std::move(w));
}

void LevelGroup::Abort(const tw_status* why) {
  if (forked()) return;
  if (!all_) return local_->Abort(why);
  all_->Abort(why);
}

Failed LevelGroup::Run(const Call& w) noexcept {
  told_ = w.number;
  deadline_ = patience_ ? Now() + patience_ : INT64_MAX;
  Call c;
  try {
    c = w;
  } catch (const std::bad_alloc&) {
    FailAll(Own(TW_RESOURCE_EXHAUSTED, kNoMemory));  // the others wait for this operation
    return all_->failure();
  }
  c.line = nullptr;
  c.deadline = deadline_;
  const auto operation = common::Operation(w.task.operation);
  if (operation == common::Operation::kAllToAll || operation == common::Operation::kPermute) return RunOn(all_.get(), std::move(c));
  return Guarded(std::move(c), [&] { Execute(w); });
}

Failed LevelGroup::RunOn(Group* group, Call c) noexcept {
  Waiter waiter(this);
  c.watcher = &waiter;
  try {
    group->Enqueue(std::move(c));
  } catch (...) {
    Failed how = common::Caught(host_);
    FailAll(how);
    return how;
  }
  return waiter.AwaitEnd();
}

Failed LevelGroup::Guarded(Call guard, const std::function<void()>& f) noexcept {
  Waiter waiter(this);
  guard.guards = true;
  guard.watcher = &waiter;
  try {
    all_->Enqueue(std::move(guard));
  } catch (...) {
    Failed how = common::Caught(host_);
    FailAll(how);
    return how;
  }
  if (waiter.AwaitBegun()) {
    Failed how;
    try {
      f();
    } catch (const std::bad_alloc&) {
      how = Own(TW_RESOURCE_EXHAUSTED, kNoMemory);
    } catch (...) {
      how = common::Caught(host_);
    }
    if (how.code) {
      FailAll(how);
    } else {
      all_->Release();
    }
  }
  return waiter.AwaitEnd();
}

// Fails the group at all members. Members do not cancel each other's steps.
void LevelGroup::FailAll(const Failed& how) noexcept {
  const bool cancelled = how.code == TW_CANCELLED;
  all_->FailAll(common::CopyOf(how), cancelled ? Own(TW_ABORTED, " gave up while it waited for the others") : common::CopyOf(how));
}

Failed LevelGroup::Own(uint32_t code, const char* what) const noexcept {
  Failed how{code, ""};
  try {
    how.text = all_->Who() + what;
  } catch (const std::bad_alloc&) {  // the code alone says it
  }
  return how;
}

// The group of all has failed.
void LevelGroup::Broken(const Failed& why) noexcept {
  std::lock_guard lock(mu_);
  if (local_) local_->Break(why);
  if (!leaders_) return;
  leaders_->Break(common::CopyOf(why), common::CopyOf(why));
}

}  // namespace thalweg::ring
