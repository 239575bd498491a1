// The part of Group in which the members find each other. A member puts its record into the store,
// looks for those of the others, and greets each by kJoin, over the connection between the
// processes. It is joined when it has greeted all others and all have greeted it.
#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "group.h"
#include "peer.h"

namespace thalweg::ring {
namespace {

using common::Fail;

constexpr std::chrono::milliseconds kShortest{1}, kLongest{25};  // between two looks for members that have not come
constexpr int64_t kLookAgain = 200'000'000;                      // nanoseconds between looks for other records in place of known ones
constexpr int64_t kStale = 500'000'000;                          // nanoseconds in which a member replaces the record of an earlier start
constexpr int kAsking = 1000;                                    // milliseconds for a process to say that it has the rank already

std::string ProcessText(const Record& r) { return "process " + std::to_string(r.pid) + " on " + r.host; }

}  // namespace

// The records of the group's members in its store.
class Group::Store {
 public:
  Store(const Group& group, const tw_group_config& c) : group_(group), api_(c.store), self_(c.store_self) {}

  void Put(uint32_t rank, const std::string& value) const {
    const std::string key = KeyOf(std::to_string(rank));
    tw::check(api_->put(self_, key.data(), key.size(), value.data(), value.size()));
  }
  // Returns the record of the member; empty if there is none yet.
  std::string Get(uint32_t rank) const { return GetNow(KeyOf(std::to_string(rank))); }
  // Throws if the host no longer waits for the group: reading a key that nobody writes then fails
  // with CANCELLED.
  void CheckWanted() const { GetNow(KeyOf("wanted")); }

 private:
  std::string KeyOf(const std::string& what) const { return group_.name_ + "/ring/" + what; }
  std::string GetNow(const std::string& key) const {
    std::string value;
    tw_sink to = {TW_SIZED(tw_sink), &value, [](tw_sink* s, const void* bytes, uint64_t n) -> tw_status* {
                    static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), n);
                    return nullptr;
                  }};
    tw_status* s = api_->get(self_, key.data(), key.size(), group_.Now(), &to);
    if (!s) return value;
    if (group_.host_->status->code(s) != TW_DEADLINE_EXCEEDED) throw tw::Raised{s};
    group_.host_->status->release(s);
    return {};
  }

  const Group& group_;
  const tw_key_value_api* const api_;
  void* const self_;
};

// ---- On the thread that makes the group ----

void Group::Join(const tw_group_config& c) {
  const Store store(*this, c);
  const int64_t end = patience_ ? Now() + patience_ : INT64_MAX;
  CheckRankIsFree(store);
  store.Put(rank_, own_.text());
  std::vector<Seen> seen(members_);
  int64_t look_again = 0;
  for (std::chrono::milliseconds pause = kShortest;; pause = std::min(2 * pause, kLongest)) {
    const bool again = Now() >= look_again;
    if (again) look_again = Now() + kLookAgain;
    for (uint32_t r = 0; r < members_; ++r) {
      if (again || seen[r].text.empty()) Look(store, r, &seen[r]);
    }
    {
      std::unique_lock lock(mu_);
      changed_.wait_for(lock, pause, [this] { return joined_ || failure_.code != 0; });
      if (failure_.code) Fail(failure_.code, failure_.text);
      if (joined_) return;
    }
    store.CheckWanted();
    if (Now() < end) continue;
    Late("not all " + std::to_string(members_) + " members have come in time; missing: " + Missing());
    std::lock_guard lock(mu_);
    if (joined_) return;
    Fail(failure_.code, failure_.text);
  }
}

// The deadline has passed at this member. The members that it has met need not wait until theirs.
void Group::Late(const std::string& text) {
  Failed here{TW_DEADLINE_EXCEEDED, text};
  Failed elsewhere{TW_DEADLINE_EXCEEDED, Who(rank_) + " gave up while it waited for the others: " + text};
  hub_->Call([&] {
    if (!joined_) Break(std::move(here), std::move(elsewhere));
  });
}

// The store may hold the record of an earlier start with our rank, or that of a process that lives.
void Group::CheckRankIsFree(const Store& store) const {
  Record other;
  if (!other.Parse(store.Get(rank_)) || other.version != kVersion || AskFor(other, kAsking) != Answer::kThere) return;
  Fail(TW_ALREADY_EXISTS,
       "the group already has a member " + std::to_string(rank_) + ", " + ProcessText(other) + "; give each member another rank");
}

// Looks for the record of a member.
void Group::Look(const Store& store, uint32_t rank, Seen* seen) {
  const std::string text = store.Get(rank);
  if (text.empty()) return;
  Record record;
  if (!record.Parse(text)) {
    Fail(TW_DATA_LOSS, "the store holds '" + text.substr(0, 200) + "' for member " + std::to_string(rank) +
                           ", which is no record of this engine; set a new folder as collective_store");
  }
  if (rank == rank_) {
    if (record.door == own_.door && record.version == kVersion) return;
    Fail(TW_ALREADY_EXISTS,
         "another process has come as member " + std::to_string(rank) + ", " + ProcessText(record) + "; give each member another rank");
  }
  if (text != seen->text) *seen = {text, Now()};
  if (record.version != kVersion || record.members != members_) {
    if (Now() - seen->since < kStale) return;
    if (record.version == kVersion) Fail(TW_INVALID_ARGUMENT, OtherSize(rank, record.members));
    Fail(TW_FAILED_PRECONDITION, "member " + std::to_string(rank) + " has version " + std::to_string(record.version) +
                                     " of this engine, and this member version " + std::to_string(kVersion) +
                                     "; install the same version on all hosts");
  }
  std::exception_ptr wrong;
  hub_->Call([&] {
    try {
      if (!joined_ && !seats_[rank].came) Learn(rank, record);
    } catch (...) {
      wrong = std::current_exception();
    }
  });
  if (wrong) std::rethrow_exception(wrong);
}

std::string Group::OtherSize(uint32_t rank, uint32_t members) const {
  return "the group of member " + std::to_string(rank_) + " has " + std::to_string(members_) + " members, that of member " +
         std::to_string(rank) + " has " + std::to_string(members) + "; give all the same number";
}

// Returns "1, 2 (10.0.0.7:4000: Connection refused)".
std::string Group::Missing() {
  std::string text;
  std::exception_ptr wrong;
  hub_->Call([&] {
    try {
      for (uint32_t r = 0; r < members_; ++r) {
        const Seat& seat = seats_[r];
        if (r == rank_ || seat.here()) continue;
        text += (text.empty() ? "" : ", ") + std::to_string(Told(r));
        const std::string& trouble = seat.peer && !seat.peer->trouble().empty() ? seat.peer->trouble() : seat.trouble;
        if (!trouble.empty()) {
          text += " (" + trouble + ")";
        } else if (seat.known) {
          text += " (" + seat.record.address.text() + (seat.greeted ? " has not answered)" : " cannot be reached yet)");
        }
      }
    } catch (...) {
      wrong = std::current_exception();
    }
  });
  if (wrong) std::rethrow_exception(wrong);
  return text;
}

// ---- On the hub's thread ----

void Group::Learn(uint32_t rank, const Record& record) {
  Seat& seat = seats_[rank];
  if (seat.known && seat.record.door == record.door) return;
  seat.record = record;
  seat.known = true;
  seat.greeted = false;
  seat.peer = hub_->Reach(record);
  if (seat.peer->open()) Greet(rank);
}

void Group::Opened(Peer* peer) {
  for (uint32_t r = 0; r < members_; ++r) {
    if (seats_[r].peer == peer && !seats_[r].greeted) Greet(r);
  }
}

void Group::Greet(uint32_t rank) {
  Seat& seat = seats_[rank];
  Send(rank, Kind::kJoin, 0, own_.text());
  seat.greeted = true;
  seat.trouble.clear();
  CheckJoined();
}

// A process greets us as that member.
void Group::Joined(const Peer* peer, uint32_t rank, std::string_view text) {
  Record record;
  if (!record.Parse(text) || record.version != kVersion || record.process != peer->process()) return;
  Seat& seat = seats_[rank];
  if (joined_ || failure_.code) {
    if (!failure_.code && seat.record.door == record.door) return;
    const Failed why = failure_.code ? failure_
                                     : Failed{TW_ALREADY_EXISTS, "the group already has a member " + std::to_string(rank) + ", " +
                                                                     ProcessText(seat.record) + "; give each member another rank"};
    hub_->Reach(record)->Send({Kind::kFailed, rank_, record.door, 0, 0, 0, why.code}, why.text);
    return;
  }
  Learn(rank, record);
  seat.came = true;
  if (record.members != members_) return Break(TW_INVALID_ARGUMENT, OtherSize(rank, record.members));
  CheckJoined();
}

void Group::CheckJoined() {
  if (joined_) return;
  for (uint32_t r = 0; r < members_; ++r) {
    if (r != rank_ && !seats_[r].here()) return;
  }
  {
    std::lock_guard lock(mu_);
    joined_ = true;
  }
  changed_.notify_all();
}

// The member's process has ended before all were there. Another one may come in its place.
void Group::Forgotten(uint32_t rank, const std::string& why) {
  std::string where = seats_[rank].record.address.text();
  seats_[rank] = Seat();
  seats_[rank].trouble = std::move(where) + ": " + why;
}

}  // namespace thalweg::ring
