#include "group.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>
#include <vector>

#include "../common/fold.h"
#include "../common/setting.h"

namespace thalweg::shm {
namespace {

using common::Fail;

constexpr int64_t kGlance = 10'000'000;       // nanoseconds between looks at whether the awaited member lives
constexpr int64_t kUnshared = 2'000'000'000;  // nanoseconds in which the end of a member that is gone is told
constexpr int64_t kPause = 50'000'000;        // nanoseconds for the store to answer before others are looked at
constexpr int kSpins = 200;                   // looks at a number before sleeping
constexpr uint64_t kSmall = 4096;             // bytes that each member folds whole, which saves a meeting

tw_status* Append(tw_sink* to, const void* bytes, uint64_t n) {
  static_cast<std::string*>(to->user)->append(static_cast<const char*>(bytes), n);
  return nullptr;
}

}  // namespace

Settings SettingsOf(const tw_host* host) {
  Settings settings;
  const std::string folder = common::Setting(host, "folder");
  if (!folder.empty()) settings.folder = folder;
  settings.window = common::NumberSetting<uint64_t>(host, "window", settings.window, 64, 1 << 30);
  return settings;
}

std::string HostNumber() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  if (!std::getline(file, text) || text.empty()) Fail(TW_UNAVAILABLE, "cannot read /proc/sys/kernel/random/boot_id");
  return text;
}

// ---- Joining ----

Group::Group(const tw_host* host, const tw_group_config& c, const Settings& settings, std::vector<uint32_t> ranks)
    : host_(host),
      name_(c.name, c.name_len),
      rank_(c.rank),
      members_(c.members),
      patience_(c.deadline),
      ranks_(std::move(ranks)),
      segment_(std::make_unique<Segment>()),
      calls_(host, [this](const Work& w) { return Run(w); }) {
  common::CheckConfig(c);
  const int64_t deadline = patience_ ? Now() + patience_ : INT64_MAX;
  try {
    if (rank_ == 0) {
      segment_->Create(settings.folder, members_, std::max<uint64_t>(settings.window / 64, members_) * 64, settings.window_setting);
      segment_->Come(0);
      Put(c, name_ + "/shm", HostNumber() + " " + segment_->path());
    } else {
      Find(c, settings.folder, deadline);
      segment_->Come(rank_);
    }
    Put(c, ComingKey(rank_), "here");
    AwaitMembers(c, deadline);
  } catch (...) {
    // The others learn of it, unless this member never was one of them. The host may have given up
    // because the deadline has passed.
    if (segment_->came()) {
      if (Now() >= deadline) {
        segment_->Break(TW_DEADLINE_EXCEEDED, MissingText(common::kNobody));
      } else {
        segment_->Break(TW_ABORTED, Who(rank_) + " gave up while it waited for the others");
      }
      segment_->Unlink();  // nobody needs to find a group that has failed
    } else if (rank_ == 0) {
      segment_->Unlink();
    }
    throw;
  }
  segment_->Unlink();
}

// Stores a value.
void Group::Put(const tw_group_config& c, const std::string& key, const std::string& value) const {
  tw::check(c.store->put(c.store_self, key.data(), key.size(), value.data(), value.size()));
}

// Waits a little for a key. Returns false if nobody has stored it yet. A host that cancels the join
// lets the store fail.
bool Group::Get(const tw_group_config& c, const std::string& key, int64_t deadline, std::string* value) const {
  value->clear();
  tw_sink to = {TW_SIZED(tw_sink), value, Append};
  tw_status* s = c.store->get(c.store_self, key.data(), key.size(), std::min(deadline, Now() + kPause), &to);
  if (!s) return true;
  if (host_->status->code(s) != TW_DEADLINE_EXCEEDED) throw tw::Raised{s};
  host_->status->release(s);
  return false;
}

// Opens the memory of rank 0. A store may still hold the path of an earlier group.
void Group::Find(const tw_group_config& c, const std::string& folder, int64_t deadline) {
  const std::string begin = folder + "/thalweg-";
  std::string path;
  int64_t since = 0;  // when the path was read first
  for (std::string value; Now() < deadline;) {
    if (!Get(c, name_ + "/shm", deadline, &value)) continue;
    const size_t space = value.find(' ');
    if (space == value.npos) Fail(TW_DATA_LOSS, "the store holds '" + value + "' for member 0");
    if (value.substr(0, space) != HostNumber()) {
      Fail(TW_FAILED_PRECONDITION, "member 0 is on another host; set collective_engine=levels for members on several hosts");
    }
    if (value.compare(space + 1, value.npos, path) != 0) since = Now();
    path = value.substr(space + 1);
    if (path.compare(0, begin.size(), begin) != 0 || path.find('/', begin.size()) != path.npos) {
      Fail(TW_FAILED_PRECONDITION, "member 0 has its memory in '" + path + "', this one in '" + folder + "'; set the same folder for all");
    }
    segment_ = std::make_unique<Segment>();
    if (segment_->Open(path, members_)) {
      // Before this member comes, so that it is late whatever ended the group.
      const Failed failure = segment_->Failure();
      if (!failure.code) return;
      Fail(TW_DEADLINE_EXCEEDED, "member " + std::to_string(Told(rank_)) + " came too late, the others have given up: " + failure.text);
    }
    // The key of a part is new, and the group of all members tells of a member that is lost or has given up.
    if (!ranks_.empty() && Now() - since >= kUnshared) {
      Fail(TW_FAILED_PRECONDITION, "'" + path + "', the memory of member " + std::to_string(Told(0)) + ", is not in this member's '" +
                                       folder + "', although both seem to be on one host; give them different names by the setting 'host'");
    }
    usleep(kPause / 10 / 1000);
  }
  const std::string gone =
      path.empty() ? "" : "; the store names '" + path + "', the file of a member 0 that is gone or has another '" + folder + "'";
  Fail(TW_DEADLINE_EXCEEDED, "member " + std::to_string(Told(0)) + " did not come in time" + gone);
}

// The file's name is a part of the keys, so that they are never those of an earlier group.
std::string Group::ComingKey(uint32_t rank) const {
  return name_ + segment_->path().substr(segment_->path().rfind('/')) + "/" + std::to_string(rank);
}

void Group::AwaitMembers(const tw_group_config& c, int64_t deadline) {
  std::string value;
  for (uint32_t r = 0; r < members_; ++r) {
    while (!Get(c, ComingKey(r), deadline, &value)) {
      const Failed failure = segment_->Failure();
      if (failure.code) Fail(failure.code, failure.text);
      if (Now() < deadline) continue;
      Break(TW_DEADLINE_EXCEEDED, MissingText(r));
    }
  }
}

// Returns "not all 3 members have come in time; missing: 1, 2". awaited: a member whose key is not
// there; or kNobody.
std::string Group::MissingText(uint32_t awaited) const {
  std::string missing;
  for (uint32_t r = 0; r < members_; ++r) {
    if (r != awaited && segment_->slot(r).process.load() != 0) continue;
    missing += (missing.empty() ? "; missing: " : ", ") + std::to_string(Told(r));
  }
  return "not all " + std::to_string(members_) + " members have come in time" + missing;
}

// ---- The queue ----

Group::~Group() {
  if (!calls_.idle()) {
    {
      std::lock_guard lock(mu_);
      if (!is_aborted_) aborted_ = {TW_CANCELLED, "the group was destroyed"};
      is_aborted_ = true;
    }
    segment_->Break(TW_ABORTED, Who(rank_) + " left during an operation");
  }
  calls_.End();
  segment_->slot(rank_).left.store(1);
  segment_->WakeAll(rank_);
}

void Group::Start(Operation operation, const tw_collective_call& c) {
  if (forked()) Fail(TW_FAILED_PRECONDITION, "the child of a fork is no member of its parent's group; start processes by exec");
  Work w = common::CheckedCall(operation, c, rank_, members_);
  {
    std::lock_guard lock(mu_);
    if (is_aborted_) Fail(aborted_.code, aborted_.text);
  }
  const Failed failure = segment_->Failure();
  if (failure.code) Fail(failure.code, failure.text);
  calls_.Add(std::move(w));
}

void Group::Abort(const tw_status* why) {
  if (forked()) return;
  const Failed how = common::FailedOf(host_, why);
  {
    std::lock_guard lock(mu_);
    if (is_aborted_) return;
    aborted_ = how;
    is_aborted_ = true;
  }
  segment_->Break(TW_ABORTED, Who(rank_) + " has aborted: " + how.text);
}

Failed Group::Run(const Work& w) noexcept {
  Failed how;
  try {
    Execute(w);
  } catch (const tw::Error&) {
    how = common::Caught(host_);
  } catch (...) {  // std::bad_alloc
    how.code = TW_RESOURCE_EXHAUSTED;
    try {
      how.text = Who(rank_) + " has no memory for " + common::TaskText(w.task);
    } catch (const std::bad_alloc&) {  // the code alone says it
    }
    segment_->Break(how.code, how.text);
  }
  if (how.code && is_aborted_) {
    std::lock_guard lock(mu_);
    how = common::CopyOf(aborted_);
  }
  return how;
}

// ---- Operations ----

void Group::Execute(const Work& w) {
  CheckFailure();
  deadline_ = w.deadline ? w.deadline : patience_ ? Now() + patience_ : INT64_MAX;
  told_ = w.number ? w.number : number_ + 1;
  segment_->slot(rank_).tasks[number_ % 2] = w.task;
  compared_ = false;
  switch (Operation(w.task.operation)) {
    case Operation::kAllReduce: Reduce(w); break;
    case Operation::kBroadcast: Broadcast(w); break;
    case Operation::kAllGather: Gather(w); break;
    case Operation::kReduceScatter:
    case Operation::kAllToAll: Exchange(w); break;
    case Operation::kPermute: Permute(w); break;
  }
  ++number_;
}

void Group::Reduce(const Work& w) {
  std::vector<const char*> from(members_);
  uint64_t at = 0;
  do {
    const uint64_t size = std::min(segment_->window(), w.bytes - at), count = size / w.element;
    std::memcpy(window(rank_), w.in + at, size);
    Meet();
    const bool whole = size <= kSmall;
    const uint64_t first = whole ? 0 : count * rank_ / members_, end = whole ? count : count * (rank_ + 1) / members_;
    for (uint32_t r = 0; r < members_; ++r) from[r] = window(r) + first * w.element;
    char* to = whole ? w.out + at : segment_->out() + first * w.element;
    common::Fold(w.task.dtype, w.task.reduce, from.data(), members_, end - first, to);
    which_ ^= 1;
    if (!whole) {
      Meet();
      std::memcpy(w.out + at, segment_->out(), size);
    }
    at += size;
  } while (at < w.bytes);
}

void Group::Broadcast(const Work& w) {
  uint64_t at = 0;
  do {
    const uint64_t size = std::min(segment_->window(), w.bytes - at);
    if (rank_ == w.task.root) std::memcpy(window(rank_), w.in + at, size);
    Meet();
    if (rank_ != w.task.root || w.in != w.out) std::memcpy(w.out + at, window(w.task.root), size);
    which_ ^= 1;
    at += size;
  } while (at < w.bytes);
}

void Group::Gather(const Work& w) {
  uint64_t at = 0;
  do {
    const uint64_t size = std::min(segment_->window(), w.bytes - at);
    std::memcpy(window(rank_), w.in + at, size);
    Meet();
    for (uint32_t r = 0; r < members_; ++r) std::memcpy(w.out + r * w.bytes + at, window(r), size);
    which_ ^= 1;
    at += size;
  } while (at < w.bytes);
}

// The window has a piece for each receiver.
void Group::Exchange(const Work& w) {
  const bool folds = Operation(w.task.operation) == Operation::kReduceScatter;
  const uint64_t part = w.bytes / members_, piece = segment_->window() / members_ / 64 * 64;
  std::vector<const char*> from(members_);
  uint64_t at = 0;
  do {
    const uint64_t size = std::min(piece, part - at);
    for (uint32_t r = 0; r < members_; ++r) std::memcpy(window(rank_) + r * piece, w.in + r * part + at, size);
    Meet();
    for (uint32_t r = 0; r < members_; ++r) from[r] = window(r) + rank_ * piece;
    if (folds) {
      common::Fold(w.task.dtype, w.task.reduce, from.data(), members_, size / w.element, w.out + at);
    } else {
      for (uint32_t r = 0; r < members_; ++r) std::memcpy(w.out + r * part + at, from[r], size);
    }
    which_ ^= 1;
    at += size;
  } while (at < part);
}

void Group::Permute(const Work& w) {
  const uint32_t source = w.sources[rank_];
  const bool sends = std::find(w.sources.begin(), w.sources.end(), rank_) != w.sources.end();
  uint64_t at = 0;
  do {
    const uint64_t size = std::min(segment_->window(), w.bytes - at);
    if (sends) std::memcpy(window(rank_), w.in + at, size);
    Meet();
    if (source == common::kNobody) {
      std::fill_n(w.out + at, size, char{0});
    } else {
      std::memcpy(w.out + at, window(source), size);
    }
    which_ ^= 1;
    at += size;
  } while (at < w.bytes);
}

// ---- Meetings ----

// A window is written again two pieces later. The meeting between tells that all members have read
// it by then, so two windows suffice.
void Group::Meet() {
  Slot& own = segment_->slot(rank_);
  own.phase.store(++phase_, std::memory_order_release);
  FutexWake(own.phase);
  for (uint32_t r = 0; r < members_; ++r) {
    if (r != rank_) Await(r);
  }
  if (!compared_) CompareTasks();
  compared_ = true;
}

void Group::Await(uint32_t rank) {
  Slot& other = segment_->slot(rank);
  const auto there = [&](uint32_t phase) { return int32_t(phase - phase_) >= 0; };
  for (int i = 0; i < kSpins; ++i) {
    if (there(other.phase.load(std::memory_order_acquire))) return;
  }
  for (;;) {
    const uint32_t gone = other.left.load(std::memory_order_acquire);
    const bool alive = segment_->IsAlive(rank);
    const uint32_t phase = other.phase.load(std::memory_order_acquire);
    if (there(phase)) return;  // before it left or was lost
    CheckFailure();
    if (gone) Break(TW_UNAVAILABLE, Who(rank) + " has left the group");
    if (!alive) Break(TW_UNAVAILABLE, Who(rank) + " is lost: its process has ended");
    if (Now() >= deadline_) {
      Break(TW_DEADLINE_EXCEEDED,
            Who(rank) + " did not come to operation " + std::to_string(told_) + " within " + std::to_string(patience_ / 1'000'000) + " ms");
    }
    FutexWait(other.phase, phase, kGlance);
  }
}

void Group::CompareTasks() {
  const Task& own = segment_->slot(rank_).tasks[number_ % 2];
  for (uint32_t r = 0; r < members_; ++r) {
    const Task& other = segment_->slot(r).tasks[number_ % 2];
    if (other == own) continue;
    Break(TW_INVALID_ARGUMENT, "the members disagree: member " + std::to_string(Told(rank_)) + " calls " + common::TaskText(own) +
                                   ", member " + std::to_string(Told(r)) + " " + common::TaskText(other));
  }
}

void Group::CheckFailure() const {
  if (is_aborted_) Fail(TW_ABORTED, "aborted");  // Run reports why
  const Failed failure = segment_->Failure();
  if (failure.code) Fail(failure.code, failure.text);
}

void Group::Break(uint32_t code, const std::string& text) {
  segment_->Break(code, text);
  const Failed first = segment_->Failure();
  if (first.code) Fail(first.code, first.text);
  Fail(code, text);
}

std::string Group::Who(uint32_t rank) const {
  return "member " + std::to_string(Told(rank)) + " (process " + std::to_string(segment_->slot(rank).process.load()) + ")";
}

}  // namespace thalweg::shm
