// WaitingCalls: kernel calls that wait at a resource for what another kernel has yet to do there, and hold no thread meanwhile. They stand
// in lines, one for each resource and condition. The first of a line is run again when its resource was updated; any call, when its step
// is to end: cancelled, closed, past its deadline, failed elsewhere. The step finds out which (WaitInterrupted), and runs it or ends it.
// Locks: mu_ is taken under locks of resources, and held while a step hears of its turn. Threads: any; deadlines are kept by a thread that
// is there only while a call with a deadline waits.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "framework/runtime/frame.h"

namespace thalweg {

class CancelToken;
class Resource;

// What a kernel says to `wait` while it runs on this thread.
struct WaitWish {
  WaitWish(KernelFrame* f, uint64_t tag_in_step) : frame(f), tag(tag_in_step), outer(current) { current = this; }
  ~WaitWish();
  WaitWish(const WaitWish&) = delete;
  // Of the call that runs on this thread with this frame; NULL: none that may wait does.
  static WaitWish* Of(const KernelFrame* f) { return current && current->frame == f ? current : nullptr; }

  KernelFrame* const frame;
  const uint64_t tag;
  Resource* at = nullptr;  // NULL: it does not wait
  uint64_t condition = 0, memo = 0;
  bool held = false;     // at a resource that the plugin holds: the wish refers to it
  uint64_t seen = 0;     // of such a one: how often it was touched when the kernel looked
  bool counted = false;  // the kernel has asked how many wait
  uint64_t left = 0;     // and so many calls had left their lines when it first did

 private:
  WaitWish* const outer;
  static thread_local WaitWish* current;
};

class WaitingCalls {
 public:
  static WaitingCalls& Get();

  // The call of the wish stands in line from now on, and its locks go. changed: it has updated what it opened. The step may be over when
  // this returns. Throws where there is no memory, and then nothing has changed.
  void Wait(const WaitWish& wish, bool changed);
  // The call is over, or ends: who comes next is called.
  void Leave(const StepBase* step, uint64_t tag);
  // The resource was updated: the first of each line is called.
  void Updated(const Resource* at);
  // All calls in steps of the token, or of the step and those inside it, are called. The step is not over.
  void Cancelled(const CancelToken* token);
  void CallAll(const StepBase* step);
  // The step `inner` runs for a kernel of `outer`, and ends when that has failed.
  void Nest(const StepBase* inner, const StepBase* outer);
  // The same for what stands for a step that was nested; else nothing.
  void NestAs(const StepBase* inner, const StepBase* nested);
  void Unnest(const StepBase* inner);
  // Whether a call of the step that waits is to end: WaitInterrupted, or a step around it has failed.
  Status Ended(const StepBase& step);
  // How many stand in a line before the call of the wish, or, where it stands in none or there is no wish, in all of the line.
  uint64_t Count(const Resource* at, uint64_t condition, WaitWish* wish);

 private:
  struct Call {
    StepBase* step = nullptr;
    uint64_t tag = 0;
    Resource* at = nullptr;  // a reference
    uint64_t condition = 0, ticket = 0;
    bool held = false;     // see WaitWish
    bool called = false;   // and its step is yet to run it
    int64_t deadline = 0;  // 0: none, or over
  };
  using Line = std::map<uint64_t, Call*>;  // by ticket
  using Key = std::pair<const StepBase*, uint64_t>;

  // REQUIRES of all: mu_.
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
  int64_t keeper_process_ = 0;  // where the thread of the deadlines is; 0: there is none
};

// Calls an asynchronous kernel, with a token of its own that tells the step of the tag. *pending: it has started, or stands in line; it may
// then be over, and its step too, so nothing of either is to be looked at. Errors: it did not start; what the kernel said.
Status StartAsyncCall(KernelFrame* f, uint64_t tag, bool* pending);

}  // namespace thalweg
