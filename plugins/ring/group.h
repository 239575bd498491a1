// Group: one member of a group. It finds the other members through the store, then executes
// operations one after the other on the hub's thread.
// Threads: the constructor, the destructor, Start and Abort from any; the functions below the line
// on the hub's thread.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "address.h"
#include "hub.h"
#include "operation.h"
#include "wire.h"

namespace thalweg::ring {

using common::Failed;

// The settings of a group that is a part of another one (level_group.h).
struct Part {
  std::vector<uint32_t> ranks;  // the numbers that messages give the members; empty: their ranks
  std::function<void(const Failed&)>
      failed;  // called on the hub's thread with the group's first failure, as the other members get it; throws nothing
};

class Group {
 public:
  // Waits for the other members. Throws tw::Error, tw::Raised.
  Group(std::shared_ptr<Hub> hub, const tw_group_config& config, Part part = {});
  ~Group();
  Group(const Group&) = delete;

  // Returns true in the child of a fork, where the group can do nothing and must not be destroyed.
  bool forked() const { return hub_->forked(); }
  // Enqueues an operation. Throws tw::Error for one that cannot be executed.
  void Start(common::Operation operation, const tw_collective_call& call);
  // Fails the operations that are enqueued or running, here and at the other members.
  void Abort(const tw_status* why);

  // For a group that is a part of another one, from any thread but the hub's:
  // Enqueues an operation that has been checked.
  void Enqueue(common::CollectiveCall call);
  // Releases the guard that runs.
  void Release();
  // Fails the group, unless it has failed before.
  void FailAll(Failed here, Failed elsewhere) noexcept;
  // Returns the group's first failure; its code is 0 if there is none.
  Failed failure() const noexcept;
  // Returns "member 3 (process 77 on host)" for this member.
  std::string Who() const { return Who(rank_); }

  // ---- On the hub's thread ----
  // Ends the group's work here, and at the other members with the same text or another one.
  void Break(uint32_t code, const std::string& text) { Break(Failed{code, text}, Failed{code, text}); }
  void Break(Failed here, Failed elsewhere) noexcept;
  uint64_t door() const { return own_.door; }
  bool NeedsTime() const { return !joined_ || operation_; }
  bool Uses(const Peer* peer) const;
  void Tick();
  // The connection to the process is open.
  void Opened(Peer* peer);
  void Lost(const Peer* peer, const std::string& why) noexcept;
  // A frame other than kData has come.
  void Receive(const Peer* peer, const Frame& frame, std::string_view text);
  // The bytes of a kData frame begin.
  void Expect(const Peer* peer, const Frame& frame);
  // Returns the memory for the next of them; NULL: they belong to no running operation.
  Operation::Place PlaceFor(const Peer* peer, const Frame& frame) const;
  void Got(const Frame& frame, uint64_t bytes);
  // Gives the next bytes for the member. Returns false if there are none now.
  bool Take(uint32_t to, Frame* frame, const char** data);
  void Written(uint32_t to);

 private:
  struct Work : Job {
    Group* group;
    common::CollectiveCall call;
  };
  struct AbortJob : Job {
    Group* group;
    Failed why;
  };
  struct Seat {
    Record record;
    bool known = false;    // record is there
    bool greeted = false;  // kJoin was sent to that record
    bool came = false;     // kJoin came from that record
    bool left = false, lost = false;
    Peer* peer = nullptr;  // the member's process; NULL: not known, or lost
    std::string trouble;
    uint64_t ready = 0;  // the last operation that the member has begun, with its task and its credit
    common::Task task;
    uint64_t credit = 0;
    bool here() const { return known && greeted && came; }
  };
  int64_t Now() const { return host_->run->now(host_); }

  // joining.cc. On the thread of the constructor:
  class Store;
  struct Seen {
    std::string text;   // a record in the store
    int64_t since = 0;  // when it was seen first
  };
  void Join(const tw_group_config& c);
  void CheckRankIsFree(const Store& store) const;
  void Look(const Store& store, uint32_t rank, Seen* seen);
  std::string OtherSize(uint32_t rank, uint32_t members) const;
  std::string Missing();
  void Late(const std::string& text);
  // On the hub's thread:
  void Learn(uint32_t rank, const Record& record);
  void Greet(uint32_t rank);
  void Joined(const Peer* peer, uint32_t rank, std::string_view text);
  void CheckJoined();
  void Forgotten(uint32_t rank, const std::string& why);

  void Begin(Work* work);
  void StartNext();
  void Compare(uint32_t rank);
  void SendOut();
  void CheckDone();
  void Send(uint32_t to, Kind kind, uint64_t value, std::string_view text);
  void Leave() noexcept;
  void BreakAt(uint32_t rank);
  void BreakLate(uint32_t rank, const char* what);
  std::string Who(uint32_t rank) const;
  uint32_t Told(uint32_t rank) const { return part_.ranks.empty() ? rank : part_.ranks[rank]; }

  const std::shared_ptr<Hub> hub_;
  const tw_host* const host_;
  const std::string name_;
  const uint32_t rank_, members_;
  const int64_t patience_;  // nanoseconds for an operation; 0: no limit
  const Part part_;
  Record own_;

  // Used on the hub's thread only.
  std::vector<Seat> seats_;  // by rank; that of this member is empty
  std::deque<common::CollectiveCall> waiting_;
  std::unique_ptr<Operation> operation_;
  uint64_t number_ = 0;  // of the operation
  int64_t deadline_ = 0;

  mutable std::mutex mu_;  // guards the fields below; only the hub's thread writes to the first two
  Failed failure_;
  bool joined_ = false;
  bool aborted_ = false;
  std::condition_variable changed_;
  AbortJob abort_;
};

}  // namespace thalweg::ring
