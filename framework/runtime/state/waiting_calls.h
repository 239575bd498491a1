// WaitingCalls: kernel calls that wait at a resource for another kernel's update and hold no thread
// meanwhile. They stand in lines, one for each resource and condition. When a resource was updated,
// the first call of each of its lines runs again. When a step is to end (cancelled, closed, past
// its deadline, failed elsewhere), all its calls are woken. The step finds the reason
// (WaitInterrupted) and runs the call or ends it.
// Locks: mu_ is acquired under locks of resources, and held while a step is told. Threads: any;
// deadlines are kept by a thread that exists only while a call with a deadline waits.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "framework/runtime/step/frame.h"

namespace thalweg {

class CancelToken;
class Resource;

// Holds the arguments of the `wait` that a kernel on this thread calls during its execute.
struct WaitWish {
  WaitWish(KernelFrame* f, uint64_t tag_in_step) : frame(f), tag(tag_in_step), outer(current) { current = this; }
  ~WaitWish();
  WaitWish(const WaitWish&) = delete;
  // Returns the wish of the call that runs on this thread with this frame; NULL if there is none
  // that may wait.
  static WaitWish* Of(const KernelFrame* f) { return current && current->frame == f ? current : nullptr; }

  KernelFrame* const frame;
  const uint64_t tag;
  Resource* at = nullptr;  // NULL: the call does not wait
  uint64_t condition = 0, memo = 0;
  bool held = false;     // `at` is a resource that the plugin holds; the wish owns a reference
  uint64_t seen = 0;     // of a held resource: its touch count when the kernel looked
  bool counted = false;  // the kernel has asked for the number of waiting calls
  uint64_t left = 0;     // value of left_ when it first asked

 private:
  WaitWish* const outer;
  static thread_local WaitWish* current;
};

class WaitingCalls {
 public:
  static WaitingCalls& Get();

  // Puts the call of the wish into its line and releases its locks. changed: the call has updated
  // the resources that it opened. The step may have ended when this returns. Throws if there is no
  // memory; nothing has changed then.
  void Wait(const WaitWish& wish, bool changed);
  // Removes a call that has ended or is to end; wakes the next call of its line.
  void Leave(const StepBase* step, uint64_t tag);
  // Wakes the first call of each line of the updated resource.
  void Updated(const Resource* at);
  // Wake all calls in steps of the token, or of the step and the steps inside it. REQUIRES: the
  // step has not ended.
  void Cancelled(const CancelToken* token);
  void CallAll(const StepBase* step);
  // Registers that step `inner` runs for a kernel of `outer`, and ends if `outer` fails.
  void Nest(const StepBase* inner, const StepBase* outer);
  // Registers `inner`, which stands for the step `nested`, inside the same outer step. Does nothing
  // if `nested` is not nested.
  void NestAs(const StepBase* inner, const StepBase* nested);
  void Unnest(const StepBase* inner);
  // Returns an error if a waiting call of the step is to end: that of WaitInterrupted, or CANCELLED
  // if a step around it has failed.
  Status Ended(const StepBase& step);
  // Returns the number of calls in the line before the call of the wish, or in the whole line if
  // that call is not in it or there is no wish.
  uint64_t Count(const Resource* at, uint64_t condition, WaitWish* wish);

 private:
  struct Call {
    StepBase* step = nullptr;
    uint64_t tag = 0;
    Resource* at = nullptr;  // owns a reference
    uint64_t condition = 0, ticket = 0;
    bool held = false;     // see WaitWish
    bool called = false;   // woken; its step has not run it yet
    int64_t deadline = 0;  // 0: none, or passed
  };
  using Line = std::map<uint64_t, Call*>;  // by ticket
  using Key = std::pair<const StepBase*, uint64_t>;

  // REQUIRES for all: mu_ is held.
  void Enter(Call* c, const WaitWish& wish);
  void Enlist(Call* c, Resource* at, uint64_t condition);
  void Delist(Call* c);
  void Forget(Call* c);
  void SetAlarm(Call* c);
  void CallFirsts(const Resource* at, const Call* but);
  static void CallUp(Call* c);
  void CallInside(const StepBase* step);
  bool OuterFailed(const StepBase* step) const;

  void KeepDeadlines();

  std::mutex mu_;
  std::map<Key, Call> calls_;
  std::unordered_map<const Resource*, std::map<uint64_t, Line>> lines_;  // by resource and condition
  std::unordered_map<const StepBase*, const StepBase*> outer_;           // by inner step
  std::unordered_multimap<const StepBase*, const StepBase*> inner_;
  std::set<std::pair<const CancelToken*, Call*>> by_token_;
  std::set<std::pair<int64_t, Call*>> by_deadline_;
  uint64_t tickets_ = 0;
  uint64_t left_ = 0;  // calls that have left a line
  std::condition_variable alarm_;
  int64_t keeper_process_ = 0;  // process of the deadline thread; 0: there is none
};

// Calls an asynchronous kernel with a token of its own, which passes the tag to the step. *pending:
// the call has started or stands in line; it may have ended by now, and its step too, so the caller
// must not touch either. Errors: the call did not start; the kernel's error.
Status StartAsyncCall(KernelFrame* f, uint64_t tag, bool* pending);

}  // namespace thalweg
