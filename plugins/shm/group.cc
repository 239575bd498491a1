#include "group.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "../common/fold.h"

namespace thalweg::shm {
namespace {

using common::Fail;

constexpr int64_t kGlance = 10'000'000;  // nanoseconds between looks at whether the awaited member lives
constexpr int64_t kPause = 50'000'000;   // nanoseconds for the store to answer before others are looked at
constexpr int kSpins = 200;              // looks at a number before sleeping
constexpr uint64_t kSmall = 4096;        // bytes that each member folds whole, which saves a meeting

// A number that differs from start to start of a machine: members of one host have the same one.
std::string HostNumber() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  if (!std::getline(file, text) || text.empty()) Fail(TW_UNAVAILABLE, "cannot read /proc/sys/kernel/random/boot_id");
  return text;
}

tw_status* Append(tw_sink* to, const void* bytes, uint64_t n) {
  static_cast<std::string*>(to->user)->append(static_cast<const char*>(bytes), n);
  return nullptr;
}

}  // namespace

// ---- Joining ----

Group::Group(const tw_host* host, const tw_group_config& c, const Settings& settings)
    : host_(host),
      name_(c.name, c.name_len),
      rank_(c.rank),
      members_(c.members),
      patience_(c.deadline),
      segment_(std::make_unique<Segment>()) {
  if (members_ == 0 || rank_ >= members_) {
    Fail(TW_INVALID_ARGUMENT, "rank " + std::to_string(rank_) + " is none of " + std::to_string(members_) + " members");
  }
  if (c.native_len) Fail(TW_UNIMPLEMENTED, "works on host memory, not on queues of '" + std::string(c.native, c.native_len) + "'");
  const int64_t deadline = patience_ ? Now() + patience_ : INT64_MAX;
  try {
    if (rank_ == 0) {
      segment_->Create(settings.folder, members_, std::max<uint64_t>(settings.window / 64, members_) * 64);
      segment_->Come(0);
      Put(c, name_ + "/shm", HostNumber() + " " + segment_->path());
    } else {
      Find(c, settings.folder, deadline);
      segment_->Come(rank_);
    }
    Put(c, ComingKey(rank_), "here");
    AwaitMembers(c, deadline);
  } catch (...) {
    // The others learn of it, unless this member never was one of them.
    if (segment_->came()) segment_->Break(TW_ABORTED, Who(rank_) + " gave up while it waited for the others");
    if (rank_ == 0) segment_->Unlink();
    throw;
  }
  segment_->Unlink();
  thread_ = std::thread([this] { Loop(); });
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
  for (std::string value; Now() < deadline;) {
    if (!Get(c, name_ + "/shm", deadline, &value)) continue;
    const size_t space = value.find(' ');
    if (space == value.npos) Fail(TW_DATA_LOSS, "the store holds '" + value + "' for member 0");
    if (value.substr(0, space) != HostNumber()) {
      Fail(TW_FAILED_PRECONDITION, "member 0 is on another host; set collective_engine=ring for members on several hosts");
    }
    const std::string path = value.substr(space + 1);
    if (path.compare(0, begin.size(), begin) != 0 || path.find('/', begin.size()) != path.npos) {
      Fail(TW_FAILED_PRECONDITION, "member 0 has its memory in '" + path + "', this one in '" + folder + "'; set the same folder for all");
    }
    segment_ = std::make_unique<Segment>();
    if (segment_->Open(path, members_)) return;
    usleep(kPause / 10 / 1000);
  }
  Fail(TW_DEADLINE_EXCEEDED, "member 0 did not come in time");
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
      std::string missing;
      for (uint32_t other = 0; other < members_; ++other) {
        if (segment_->slot(other).process.load() == 0) missing += (missing.empty() ? "" : ", ") + std::to_string(other);
      }
      Break(TW_DEADLINE_EXCEEDED, "not all " + std::to_string(members_) + " members have come in time; missing: " + missing);
    }
  }
}

// ---- The queue ----

Group::~Group() {
  {
    std::lock_guard lock(mu_);
    ending_ = true;
    if (running_ || !work_.empty()) {
      if (!is_aborted_) aborted_ = {TW_CANCELLED, "the group was destroyed"};
      is_aborted_ = true;
      segment_->Break(TW_ABORTED, Who(rank_) + " left during an operation");
    }
  }
  changed_.notify_all();
  thread_.join();
  segment_->slot(rank_).left.store(1);
  segment_->WakeAll(rank_);
}

void Group::Start(Operation operation, const tw_collective_call& c) {
  const Work w = common::CheckedCall(operation, c, rank_, members_);
  std::lock_guard lock(mu_);
  if (is_aborted_) Fail(aborted_.code, aborted_.text);
  const Failed failure = segment_->Failure();
  if (failure.code) Fail(failure.code, failure.text);
  work_.push_back(w);
  host_->timeline->retain(w.line);
  changed_.notify_all();
}

void Group::Abort(const tw_status* why) {
  Failed how = {host_->status->code(why), ""};
  tw_sink to = {TW_SIZED(tw_sink), &how.text, Append};
  if (tw_status* s = host_->status->text(why, &to)) host_->status->release(s);  // a text that finds no memory stays empty
  {
    std::lock_guard lock(mu_);
    if (is_aborted_) return;
    aborted_ = how;
    is_aborted_ = true;
  }
  segment_->Break(TW_ABORTED, Who(rank_) + " has aborted: " + how.text);
}

void Group::Loop() {
  std::unique_lock lock(mu_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !work_.empty(); });
    if (work_.empty()) return;
    const Work w = work_.front();
    running_ = true;
    lock.unlock();
    Failed how;
    try {
      Execute(w);
    } catch (const tw::Error& e) {
      how = {e.code, e.text};
    } catch (const std::exception& e) {
      how = {TW_RESOURCE_EXHAUSTED, e.what()};
      segment_->Break(how.code, Who(rank_) + ": " + how.text);
    }
    lock.lock();
    if (how.code && is_aborted_) how = aborted_;
    work_.pop_front();
    running_ = false;
    lock.unlock();
    Finish(w, how);
    lock.lock();
  }
}

void Group::Finish(const Work& w, const Failed& how) {
  const tw_timeline_api* t = host_->timeline;
  if (how.code) t->fail(w.line, tw_fail(host_, how.code, how.text.data(), how.text.size()));
  t->signal(w.line, w.value);
  t->release(w.line);
}

// ---- Operations ----

void Group::Execute(const Work& w) {
  CheckFailure();
  deadline_ = patience_ ? Now() + patience_ : INT64_MAX;
  segment_->slot(rank_).tasks[number_ % 2] = w.task;
  compared_ = false;
  switch (Operation(w.task.operation)) {
    case Operation::kAllReduce: Reduce(w); break;
    case Operation::kBroadcast: Broadcast(w); break;
    case Operation::kAllGather: Gather(w); break;
    case Operation::kReduceScatter:
    case Operation::kAllToAll: Exchange(w); break;
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
      Break(TW_DEADLINE_EXCEEDED, Who(rank) + " did not come to operation " + std::to_string(number_) + " within " +
                                      std::to_string(patience_ / 1'000'000) + " ms");
    }
    FutexWait(other.phase, phase, kGlance);
  }
}

void Group::CompareTasks() {
  const Task& own = segment_->slot(rank_).tasks[number_ % 2];
  for (uint32_t r = 0; r < members_; ++r) {
    const Task& other = segment_->slot(r).tasks[number_ % 2];
    if (other == own) continue;
    Break(TW_INVALID_ARGUMENT, "the members disagree: member " + std::to_string(rank_) + " calls " + common::TaskText(own) + ", member " +
                                   std::to_string(r) + " " + common::TaskText(other));
  }
}

void Group::CheckFailure() const {
  if (is_aborted_) Fail(TW_ABORTED, "aborted");  // Loop reports why
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
  return "member " + std::to_string(rank) + " (process " + std::to_string(segment_->slot(rank).process.load()) + ")";
}

}  // namespace thalweg::shm
