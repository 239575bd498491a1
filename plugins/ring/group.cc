#include "group.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "peer.h"

namespace thalweg::ring {
namespace {

using common::Finish;

std::string_view BytesOf(const common::Task& task) { return {reinterpret_cast<const char*>(&task), sizeof task}; }

}  // namespace

Group::Group(std::shared_ptr<Hub> hub, const tw_group_config& c, Part part)
    : hub_(std::move(hub)),
      host_(hub_->host()),
      name_(c.name, c.name_len),
      rank_(c.rank),
      members_(c.members),
      patience_(c.deadline),
      part_(std::move(part)),
      own_(hub_->record()),
      seats_(c.members) {
  common::CheckConfig(c);
  own_.members = members_;
  own_.door = RandomNumber();
  std::exception_ptr wrong;
  hub_->Call([&] {
    try {
      hub_->Add(this);
      CheckJoined();
    } catch (...) {
      wrong = std::current_exception();
    }
  });
  if (wrong) std::rethrow_exception(wrong);
  try {
    Join(c);
  } catch (...) {
    hub_->Call([this] {
      Leave();
      hub_->Remove(this);
    });
    throw;
  }
}

Group::~Group() {
  hub_->Call([this] {
    Leave();
    hub_->Remove(this);
  });
}

// ---- From any thread ----

void Group::Start(common::Operation operation, const tw_collective_call& c) {
  if (forked()) common::Fail(TW_FAILED_PRECONDITION, "the child of a fork is no member of its parent's group; start processes by exec");
  Enqueue(common::CheckedCall(operation, c, rank_, members_));
}

void Group::Enqueue(common::CollectiveCall call) {
  auto work = std::make_unique<Work>();
  work->group = this;
  work->call = std::move(call);
  work->run = [](Job* job) {
    auto* w = static_cast<Work*>(job);
    w->group->Begin(w);
  };
  {
    std::lock_guard lock(mu_);
    if (failure_.code) common::Fail(failure_.code, failure_.text);
  }
  common::Keep(host_, work->call);
  hub_->Post(work.release());
}

void Group::Abort(const tw_status* why) {
  if (forked()) return;
  {
    std::lock_guard lock(mu_);
    if (std::exchange(aborted_, true)) return;
  }
  abort_.group = this;
  abort_.why = common::FailedOf(host_, why);
  abort_.run = [](Job* job) {
    auto* a = static_cast<AbortJob*>(job);
    Group* g = a->group;
    try {
      g->Break(a->why, {TW_ABORTED, g->Who(g->rank_) + " has aborted: " + a->why.text});
    } catch (const std::bad_alloc&) {
      g->Break({a->why.code, ""}, {TW_ABORTED, ""});
    }
  };
  hub_->Post(&abort_);
}

void Group::Release() {
  hub_->Call([this] {
    if (!operation_ || !operation_->call().guards) return;
    operation_->Release();
    try {
      SendOut();
      CheckDone();
    } catch (const std::bad_alloc&) {
      Break({TW_RESOURCE_EXHAUSTED, ""}, {TW_RESOURCE_EXHAUSTED, ""});
    }
  });
}

void Group::FailAll(Failed here, Failed elsewhere) noexcept {
  hub_->Call([&] { Break(std::move(here), std::move(elsewhere)); });
}

Failed Group::failure() const noexcept {
  std::lock_guard lock(mu_);
  return common::CopyOf(failure_);
}

// ---- Ends ----

// Sends nothing elsewhere if that failure has no code.
void Group::Break(Failed here, Failed elsewhere) noexcept {
  if (failure_.code) return;
  {
    std::lock_guard lock(mu_);
    failure_ = std::move(here);
  }
  changed_.notify_all();
  for (uint32_t r = 0; r < members_; ++r) {
    Seat& seat = seats_[r];
    if (!seat.peer) continue;
    seat.peer->Forget(this);
    if (elsewhere.code && !seat.left) Send(r, Kind::kFailed, elsewhere.code, elsewhere.text);
  }
  const auto operation = std::move(operation_);
  if (operation) Finish(host_, operation->call(), failure_);
  for (; !waiting_.empty(); waiting_.pop_front()) Finish(host_, waiting_.front(), failure_);
  if (part_.failed) part_.failed(elsewhere.code ? elsewhere : failure_);
}

void Group::BreakAt(uint32_t rank) {
  const Seat& seat = seats_[rank];
  Break(TW_UNAVAILABLE, Who(rank) + (seat.left ? " has left the group" : " is lost: " + seat.trouble));
}

void Group::Leave() noexcept {
  try {
    if (!joined_) {
      Break({TW_CANCELLED, "the group was given up"}, {TW_ABORTED, Who(rank_) + " gave up while it waited for the others"});
    } else if (operation_ || !waiting_.empty()) {
      Break({TW_CANCELLED, "the group was destroyed"}, {TW_ABORTED, Who(rank_) + " left during an operation"});
    }
  } catch (const std::bad_alloc&) {
    Break({TW_CANCELLED, ""}, {TW_ABORTED, ""});
  }
  for (uint32_t r = 0; r < members_; ++r) {
    if (!seats_[r].peer) continue;
    seats_[r].peer->Forget(this);
    if (!failure_.code) Send(r, Kind::kLeave, 0, {});
  }
}

void Group::Lost(const Peer* peer, const std::string& why) noexcept {
  try {
    for (uint32_t r = 0; r < members_; ++r) {
      Seat& seat = seats_[r];
      if (seat.peer != peer) continue;
      seat.peer = nullptr;
      if (!joined_) {
        Forgotten(r, why);
        continue;
      }
      const bool needed = operation_ && operation_->NeedsMore(r);
      if (operation_ && !needed) operation_->Forgo(r);
      if (!seat.left) {
        seat.lost = true;
        seat.trouble = why;
        if (needed) BreakAt(r);
      }
      CheckDone();
    }
  } catch (const std::bad_alloc&) {
    for (Seat& seat : seats_) {
      if (seat.peer == peer) seat.peer = nullptr;
    }
    Break({TW_UNAVAILABLE, ""}, {TW_UNAVAILABLE, ""});
  }
}

void Group::Tick() {
  if (!joined_) {
    for (Seat& seat : seats_) {
      if (seat.known && !seat.greeted) seat.peer = hub_->Reach(seat.record);
    }
  }
  if (!operation_ || hub_->now() < deadline_) return;
  // A member that has not begun the operation keeps the others from ending theirs, so it is named first.
  for (uint32_t r = 0; r < members_; ++r) {
    if (r != rank_ && !operation_->has_begun(r)) return BreakLate(r, " did not come to operation ");
  }
  if (operation_->call().guards && hub_->now() < deadline_ + 3 * kStepPatience) return;  // the steps know better
  for (uint32_t r = 0; r < members_; ++r) {
    if (r != rank_ && operation_->NeedsMore(r)) return BreakLate(r, " did not do its part of operation ");
  }
}

void Group::BreakLate(uint32_t rank, const char* what) {
  const uint64_t told = operation_->call().number;
  Break(TW_DEADLINE_EXCEEDED,
        Who(rank) + what + std::to_string(told ? told : number_) + " within " + std::to_string(patience_ / 1'000'000) + " ms");
}

bool Group::Uses(const Peer* peer) const {
  return std::any_of(seats_.begin(), seats_.end(), [peer](const Seat& s) { return s.peer == peer; });
}

std::string Group::Who(uint32_t rank) const {
  const Record& record = rank == rank_ ? own_ : seats_[rank].record;
  std::string who = "member " + std::to_string(Told(rank));
  if (record.pid) who += " (process " + std::to_string(record.pid) + " on " + record.host + ")";
  return who;
}

// ---- Operations ----

// Takes the work.
void Group::Begin(Work* work) {
  const std::unique_ptr<Work> owner(work);
  if (failure_.code) return Finish(host_, work->call, failure_);
  try {
    waiting_.push_back(work->call);
  } catch (const std::bad_alloc&) {
    Break({TW_RESOURCE_EXHAUSTED, ""}, {TW_RESOURCE_EXHAUSTED, ""});  // the others wait for this operation
    return Finish(host_, work->call, failure_);
  }
  try {
    StartNext();
  } catch (const std::bad_alloc&) {
    Break({TW_RESOURCE_EXHAUSTED, ""}, {TW_RESOURCE_EXHAUSTED, ""});
  }
}

void Group::StartNext() {
  while (!operation_ && !waiting_.empty()) {
    ++number_;
    try {
      operation_ = std::make_unique<Operation>(waiting_.front(), rank_, members_, hub_->settings().window);
    } catch (const std::bad_alloc&) {
      return Break(TW_RESOURCE_EXHAUSTED,
                   Who(rank_) + " has no memory for " + common::TaskText(waiting_.front().task) + "; set a smaller 'window'");
    }
    waiting_.pop_front();
    const int64_t deadline = operation_->call().deadline;
    deadline_ = deadline ? deadline : patience_ ? hub_->now() + patience_ : INT64_MAX;
    for (uint32_t r = 0; r < members_; ++r) {
      if (r == rank_) continue;
      if (!seats_[r].peer || seats_[r].left) return BreakAt(r);
      Send(r, Kind::kReady, operation_->Granted(r), BytesOf(operation_->call().task));
    }
    for (uint32_t r = 0; r < members_ && operation_; ++r) {
      if (r != rank_ && seats_[r].ready == number_) Compare(r);
    }
    if (operation_) SendOut();
    if (operation_ && operation_->Done()) Finish(host_, std::exchange(operation_, nullptr)->call(), {});
  }
}

// The member has begun this operation: does it call the same?
void Group::Compare(uint32_t rank) {
  const Seat& seat = seats_[rank];
  const common::Task& own = operation_->call().task;
  if (seat.task == own) {
    operation_->Begun(rank, seat.credit);
    if (operation_->call().guards && operation_->AllBegun()) operation_->call().watcher->AllBegun();
    return;
  }
  Break(TW_INVALID_ARGUMENT, "the members disagree: member " + std::to_string(Told(rank_)) + " calls " + common::TaskText(own) +
                                 ", member " + std::to_string(Told(rank)) + " " + common::TaskText(seat.task));
}

void Group::SendOut() {
  for (uint32_t r = 0; r < members_; ++r) {
    if (seats_[r].peer && operation_->HasBytes(r)) seats_[r].peer->HasBytes(this, r);
  }
}

void Group::CheckDone() {
  if (!operation_ || !operation_->Done()) return;
  Finish(host_, std::exchange(operation_, nullptr)->call(), {});
  StartNext();
}

bool Group::Take(uint32_t to, Frame* frame, const char** data) {
  if (!operation_) return false;
  const Operation::Bytes bytes = operation_->Take(to, kMostData);
  if (bytes.size == 0) return false;
  *frame = {Kind::kData, rank_, seats_[to].record.door, number_, bytes.stage, uint32_t(bytes.size), 0};
  *data = bytes.data;
  return true;
}

void Group::Written(uint32_t to) {
  if (operation_) operation_->Written(to);
  CheckDone();
}

// ---- Frames ----

void Group::Send(uint32_t to, Kind kind, uint64_t value, std::string_view text) {
  const Seat& seat = seats_[to];
  if (seat.peer) seat.peer->Send({kind, rank_, seat.record.door, number_, 0, 0, value}, text);
}

void Group::Receive(const Peer* peer, const Frame& frame, std::string_view text) {
  if (frame.from >= members_ || frame.from == rank_) return;
  Seat& seat = seats_[frame.from];
  if (frame.kind == Kind::kJoin) return Joined(peer, frame.from, text);
  if (frame.kind == Kind::kFailed && (seat.peer == peer || !joined_)) {
    const bool is_code = frame.value > TW_OK && frame.value <= TW_UNAUTHENTICATED;
    return Break({is_code ? uint32_t(frame.value) : uint32_t{TW_ABORTED}, std::string(text)}, {});
  }
  if (seat.peer != peer || !seat.came) return;
  if (frame.kind == Kind::kLeave) {
    if (!joined_) return Forgotten(frame.from, "it has left the group");
    seat.left = true;
    if (operation_ && operation_->NeedsMore(frame.from)) BreakAt(frame.from);
  } else if (frame.kind == Kind::kCredit) {
    if (!operation_ || frame.number != number_) return;
    operation_->Credit(frame.from, frame.value);
    SendOut();
  } else if (frame.kind == Kind::kReady) {
    const bool now = operation_ && frame.number == number_ && !operation_->has_begun(frame.from);
    if ((!now && frame.number != number_ + 1) || text.size() != sizeof seat.task) {
      return Break(TW_INTERNAL, Who(frame.from) + " has sent a message that does not fit operation " + std::to_string(number_));
    }
    seat.ready = frame.number;
    seat.credit = frame.value;
    std::memcpy(&seat.task, text.data(), sizeof seat.task);
    if (!now) return;
    Compare(frame.from);
    if (!operation_) return;
    SendOut();
    CheckDone();
  }
}

void Group::Expect(const Peer* peer, const Frame& frame) {
  if (frame.from >= members_ || seats_[frame.from].peer != peer || failure_.code) return;
  // Members send bytes only to one that has begun the operation. These would arrive in the middle of it.
  if (frame.number > number_) {
    return Break(TW_INTERNAL,
                 Who(frame.from) + " has sent bytes of operation " + std::to_string(frame.number) + ", which this member has not begun");
  }
  if (!operation_ || frame.number != number_) return;
  if (operation_->Expects(frame.from, frame.stage, frame.length)) return;
  Break(TW_INTERNAL, Who(frame.from) + " has sent bytes that " + common::TaskText(operation_->call().task) + " does not expect");
}

Operation::Place Group::PlaceFor(const Peer* peer, const Frame& frame) const {
  if (frame.from >= members_ || seats_[frame.from].peer != peer || !operation_ || frame.number != number_) return {};
  if (!operation_->Expects(frame.from, frame.stage, 1)) return {};
  return operation_->PlaceFor(frame.from, frame.stage);
}

void Group::Got(const Frame& frame, uint64_t bytes) {
  if (operation_->Got(frame.from, frame.stage, bytes)) {
    for (uint32_t r = 0; r < members_; ++r) {
      if (r != rank_ && operation_->Grant(r)) Send(r, Kind::kCredit, operation_->Granted(r), {});
    }
    SendOut();
  }
  CheckDone();
}

}  // namespace thalweg::ring
