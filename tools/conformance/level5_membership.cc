// Level 5: membership, with two members of one cluster.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tools/conformance/guarded.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/queue.h"

namespace thalweg::conformance {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kMs = 1000000;
constexpr uint64_t kInAnyCase = UINT64_MAX, kIfNone = 0;

class Participant {
 public:
  explicit Participant(const MembershipRole& role) : role_(role) {}
  ~Participant() { Leave(); }
  Status Join(const std::string& address, const std::string& cluster, const std::string& name) {
    Padded<tw_member_config> padded(RecordSize<tw_member_config>());
    tw_member_config& c = padded.c;
    c.address = address.data();
    c.address_len = address.size();
    c.cluster = cluster.data();
    c.cluster_len = cluster.size();
    c.name = name.data();
    c.name_len = name.size();
    c.credential = "";
    c.lease = 5000 * kMs;
    return FromC(role_.def.join(role_.host, role_.def.user, &c, Soon(), &member_));
  }
  void Leave() {
    if (member_) role_.def.leave(role_.host, member_);
    member_ = nullptr;
  }
  StatusOr<uint64_t> Put(const std::string& key, const std::string& value, uint64_t expected = kInAnyCase, bool mine = false) {
    uint64_t revision = 0;
    const tw_put put = {TW_SIZED(tw_put), key.data(), key.size(), value.data(), value.size(), expected, Soon(), mine, 0};
    RETURN_IF_ERROR(FromC(role_.def.put(role_.host, member_, &put, &revision)));
    return revision;
  }
  StatusOr<std::string> Get(const std::string& key, uint64_t* out_revision) {
    std::string value;
    tw_sink sink = {TW_SIZED(tw_sink), &value, [](tw_sink* to, const void* bytes, uint64_t n) -> tw_status* {
                      static_cast<std::string*>(to->user)->append(static_cast<const char*>(bytes), n);
                      return nullptr;
                    }};
    RETURN_IF_ERROR(FromC(role_.def.get(role_.host, member_, key.data(), key.size(), Soon(), &sink, out_revision)));
    return value;
  }
  Status Remove(const std::string& key, uint64_t expected = kInAnyCase) {
    return FromC(role_.def.remove(role_.host, member_, key.data(), key.size(), expected, Soon()));
  }
  const MembershipRole& role() const { return role_; }
  void* member() const { return member_; }

 private:
  int64_t Soon() const { return role_.host->run->now(role_.host) + 5000 * kMs; }
  const MembershipRole& role_;
  void* member_ = nullptr;
};

// Records the events of a watch.
class Watch {
 public:
  explicit Watch(Participant* p) : p_(*p) {}
  ~Watch() { Stop(); }
  Status Start(const std::string& prefix) {
    return FromC(p_.role().def.watch(p_.role().host, p_.member(), prefix.data(), prefix.size(), Changed, this, &watch_));
  }
  void Stop() {
    if (watch_) p_.role().def.unwatch(p_.role().host, watch_);
    watch_ = nullptr;
  }
  bool WaitFor(size_t changes) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, kSoon, [&] { return told_.size() >= changes; });
  }
  std::vector<std::string> told() {
    std::lock_guard lock(mu_);
    return told_;
  }
  std::string wrong() {
    std::lock_guard lock(mu_);
    return wrong_;
  }

 private:
  static void Changed(void* arg, const tw_change* c) {
    auto* self = static_cast<Watch*>(arg);
    if (self->inside_.exchange(true)) self->wrong_ = "two changes were told at once";
    {
      std::lock_guard lock(self->mu_);
      if (c->revision < self->last_) self->wrong_ = StrCat("revision ", c->revision, " came after ", self->last_);
      self->last_ = c->revision;
      self->told_.push_back(StrCat(std::string_view(c->key, c->key_len), c->value ? "=" : "-",
                                   c->value ? std::string_view(static_cast<const char*>(c->value), c->bytes) : std::string_view()));
      self->changed_.notify_all();
    }
    self->inside_ = false;
  }
  Participant& p_;
  void* watch_ = nullptr;
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::string> told_;
  std::string wrong_;
  uint64_t last_ = 0;
  std::atomic<bool> inside_{false};
};

Outcome Wants(const Status& s, Code code, std::string_view what) {
  if (s.code() == code) return {};
  return Fail(what, ": ", s.ok() ? "no error" : s.ToString(), " instead of ", absl::StatusCodeToString(code));
}

Outcome KeepsValues(Participant& a, Participant& b) {
  uint64_t last = 0;
  for (const std::string& value : {std::string("one"), std::string("zero\0inside", 11), std::string(), std::string(100000, 'x')}) {
    ASSIGN_OR_RETURN(uint64_t revision, a.Put("key", value));
    if (revision <= last) return Fail("revision ", revision, " follows ", last);
    last = revision;
    uint64_t seen = 0;
    ASSIGN_OR_RETURN(std::string got, b.Get("key", &seen));
    if (got != value) return Fail("of ", value.size(), " bytes another member gets ", got.size(), ", or others");
    if (seen != revision) return Fail("put answered revision ", revision, ", get ", seen);
  }
  return a.Remove("key");
}

Outcome ComparesRevisions(Participant& a, Participant& b) {
  ASSIGN_OR_RETURN(uint64_t first, a.Put("k", "1", kIfNone));
  RETURN_UNLESS_PASSED(Wants(b.Put("k", "2", kIfNone).status(), Code::kAborted, "putting a key that must not be there, and is"));
  ASSIGN_OR_RETURN(uint64_t second, b.Put("k", "2", first));
  RETURN_UNLESS_PASSED(Wants(a.Put("k", "3", first).status(), Code::kAborted, "putting at an older revision"));
  RETURN_UNLESS_PASSED(Wants(a.Remove("k", first), Code::kAborted, "removing at an older revision"));
  uint64_t revision = 0;
  ASSIGN_OR_RETURN(std::string got, a.Get("k", &revision));
  if (got != "2" || revision != second) return Fail("what was refused took effect: '", got, "'");
  return a.Remove("k", second);
}

Outcome TellsChanges(Participant& a, Participant& b) {
  RETURN_IF_ERROR(a.Put("w/old", "0").status());
  RETURN_IF_ERROR(a.Put("other", "0").status());
  Watch watch(&b);
  RETURN_IF_ERROR(watch.Start("w/"));
  if (!watch.WaitFor(1)) return Fail("what was there is not told");
  std::vector<std::string> want = {"w/old=0"};
  for (int i = 0; i < 20; ++i) {
    RETURN_IF_ERROR(a.Put("w/new", std::to_string(i)).status());
    want.push_back(StrCat("w/new=", i));
  }
  RETURN_IF_ERROR(a.Remove("w/new"));
  want.emplace_back("w/new-");
  if (!watch.WaitFor(want.size())) return Fail(watch.told().size(), " of ", want.size(), " changes were told");
  watch.Stop();
  RETURN_IF_ERROR(a.Put("w/old", "after").status());
  std::this_thread::sleep_for(kAWhile);
  if (std::string s = watch.wrong(); !s.empty()) return Fail(s);
  const std::vector<std::string> told = watch.told();
  for (size_t i = 0; i < std::max(want.size(), told.size()); ++i) {
    if (i >= told.size() || i >= want.size() || told[i] != want[i]) {
      return Fail("change ", i, " was told as '", i < told.size() ? told[i] : "", "' instead of '", i < want.size() ? want[i] : "", "'");
    }
  }
  RETURN_IF_ERROR(a.Remove("w/old"));
  return a.Remove("other");
}

Outcome TakesKeysAlong(Participant& a, Participant& b) {
  RETURN_IF_ERROR(a.Put("mine", "1", kInAnyCase, true).status());
  RETURN_IF_ERROR(a.Put("stays", "1").status());
  uint64_t revision = 0;
  RETURN_IF_ERROR(b.Get("mine", &revision).status());
  a.Leave();
  Status s;
  for (int i = 0; i < 200; ++i) {
    s = b.Get("mine", &revision).status();
    if (!s.ok()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  RETURN_UNLESS_PASSED(Wants(s, Code::kNotFound, "getting a key of a member that left"));
  RETURN_IF_ERROR(b.Get("stays", &revision).status());
  return b.Remove("stays");
}

Outcome MissesKeys(Participant& a, Participant&) {
  uint64_t revision = 0;
  RETURN_UNLESS_PASSED(Wants(a.Get("nothing", &revision).status(), Code::kNotFound, "getting"));
  RETURN_IF_ERROR(a.Put("gone", "1").status());
  RETURN_IF_ERROR(a.Remove("gone"));
  return Wants(a.Get("gone", &revision).status(), Code::kNotFound, "getting what was removed");
}

}  // namespace

void CheckMemberships(Run& run, World& world) {
  if (!world.play().name.empty() && !run.options().full) return;
  for (const auto& role : world.registry().RolesOf<MembershipRole>()) {
    if (role->plugin != world.id()) continue;
    auto check = [&](int rule, Outcome (*body)(Participant&, Participant&)) {
      run.Check(rule, role->name, [&]() -> Outcome {
        Participant a(*role), b(*role);
        const std::string cluster = StrCat("conformance-", getpid(), "-", rule);
        if (Status s = a.Join(run.options().at, cluster, "a"); !s.ok()) {
          if (run.options().at.empty()) return Skip("no service to try it at; --at names one (", Message(s), ")");
          return s;
        }
        RETURN_IF_ERROR(b.Join(run.options().at, cluster, "b"));
        return body(a, b);
      });
    };
    check(561, KeepsValues);
    check(562, ComparesRevisions);
    check(563, TellsChanges);
    check(564, TakesKeysAlong);
    check(565, MissesKeys);
  }
}

}  // namespace thalweg::conformance
