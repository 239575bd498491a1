// Operation: one collective operation at one member, as two stages of bytes to and from each other
// member. It sends nothing itself: the group asks it for bytes and gives it those that arrive.
//
//   operation       stage 1, to member r             then                     stage 2, to all others
//   all_reduce      share r of the input             folds its own share      its share of the result
//   reduce_scatter  part r of the input              folds its own part       -
//   broadcast       share r, from the root alone     -                        its share
//   all_to_all      part r of the input              -                        -
//   all_gather      -                                -                        its input
//   permute         its input, if r gets it          -                        -
//   a guard         -                                is released              one byte
//
// A share is one of as many nearly equal parts as there are members. all_reduce of few bytes sends
// the whole input in stage 1 and folds it at each member; a broadcast of few bytes, or to one
// member, sends all in stage 1. Both save a step. Bytes of stage 2 go out as they are ready.
// A guard moves no values: it is the frame of an operation that other groups execute (level_group.h).
// It compares the tasks of all members, and makes the loss of a member known until that member has
// been released. It ends at a member when that member has been released and has told those of the
// others that have not.
// Bytes that are to be folded wait in a window for each member; a member sends only as many as the
// receiver's window takes (Credit). All other bytes arrive where they belong.
// Threads: that of the hub.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../common/collective_call.h"

namespace thalweg::ring {

// Nanoseconds after the deadline at which the next step of an operation of several groups ends.
constexpr int64_t kStepPatience = 125'000'000;

class Operation {
 public:
  // Takes the memory for windows. window: bytes for one member.
  Operation(const common::CollectiveCall& call, uint32_t rank, uint32_t members, uint64_t window);
  Operation(const Operation&) = delete;

  const common::CollectiveCall& call() const { return call_; }
  // Bytes of stage 1 that this member takes from another one, from the first byte on.
  uint64_t Granted(uint32_t from) const { return flows_[from].granted; }
  // Extends what is granted to the member. Returns false if that is not worth a message yet.
  bool Grant(uint32_t to);

  // The member has begun this operation, and takes that many bytes of stage 1.
  void Begun(uint32_t rank, uint64_t credit);
  bool has_begun(uint32_t rank) const { return flows_[rank].begun; }
  void Credit(uint32_t rank, uint64_t bytes);

  struct Bytes {
    uint32_t stage = 0;
    const char* data = nullptr;
    uint64_t size = 0;  // 0: nothing is to be sent now
  };
  // Returns bytes to send to the member, at most `most`, and counts them as taken.
  Bytes Take(uint32_t to, uint64_t most);
  bool HasBytes(uint32_t to) const;
  // Bytes that were taken have been handed to the system.
  void Written(uint32_t to) { --flows_[to].unwritten; }

  // Returns false if the member may not send that many bytes now.
  bool Expects(uint32_t from, uint32_t stage, uint64_t bytes) const;
  struct Place {
    char* data = nullptr;
    uint64_t size = 0;
  };
  // Returns the memory for the next bytes from the member. REQUIRES: it is expected to send some.
  Place PlaceFor(uint32_t from, uint32_t stage) const;
  // n bytes have been put there. Returns true if there may be more to send to all others.
  bool Got(uint32_t from, uint32_t stage, uint64_t n);

  // Returns true if the operation cannot end without more from the member, or for it.
  bool NeedsMore(uint32_t rank) const;
  bool Done() const;
  bool AllBegun() const;
  // The member is lost, and not needed any more.
  void Forgo(uint32_t rank) { flows_[rank].unwritten = 0; }
  // Tells a guard that this member has done its part.
  void Release() { released_ = true; }

 private:
  // The bytes to and from one other member.
  struct Flow {
    bool begun = false;
    const char* from1 = nullptr;
    uint64_t out1 = 0, sent1 = 0, credit = 0;  // bytes to send, sent, taken by the receiver
    char* to1 = nullptr;                       // NULL: into the window
    uint64_t in1 = 0, got1 = 0, granted = 0;   // bytes to come, here, granted to the sender
    char* window = nullptr;
    uint64_t out2 = 0, sent2 = 0;
    char* to2 = nullptr;
    uint64_t in2 = 0, got2 = 0;
    uint32_t unwritten = 0;  // pieces that were taken and not handed to the system yet
    char note = 0;           // the byte of a guard
  };
  struct Share {
    uint64_t first, size;  // bytes
  };
  Share ShareOf(uint32_t rank) const;
  void PlanReduce();
  void PlanReduceWhole();
  void PlanReduceScatter();
  void PlanBroadcast();
  void PlanGather();
  void PlanAllToAll();
  void PlanPermute();
  void PlanGuard();
  void FoldInto(char* out, const char* own, uint64_t bytes);
  bool Fold();
  uint64_t Ready2() const;
  bool Owes(uint32_t rank) const;

  const common::CollectiveCall call_;
  const uint32_t rank_, members_;
  const uint64_t most_window_;
  std::vector<Flow> flows_;  // by rank; that of this member is empty

  const char* from2_ = nullptr;  // source of stage 2
  bool relays_ = false;          // stage 2 sends what comes from the root in stage 1
  bool released_ = false;

  // Folding: `own_` and the members' windows into `fold_to_`.
  bool folds_ = false;
  const char* own_ = nullptr;
  char* fold_to_ = nullptr;
  uint64_t fold_bytes_ = 0, folded_ = 0, window_ = 0, block_ = 0;
  std::unique_ptr<char[]> windows_, folded_block_, copy_;
  std::vector<const char*> sources_;
};

}  // namespace thalweg::ring
