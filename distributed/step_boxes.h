// StepBoxes: what a task keeps for steps of sessions, a box for each step, until the step is over everywhere. For whoever guards it with a
// lock and lets what it takes out end outside of that.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "distributed/messages.h"
#include "distributed/meter.h"

namespace thalweg::distributed {

template <class Box>
struct BoxesOfSession {
  // budget: the session's account; NULL: nobody pays.
  explicit BoxesOfSession(MemoryBudget* budget = nullptr) : held(budget, kFree) {}
  static constexpr uint64_t kFree = 16 << 10;  // bytes that cost nothing: a session that is full may run steps that make room
  Meter held;                                  // for what stands in the boxes, beside values: those are paid for
  uint64_t oldest = 0;                         // steps before this one are over everywhere
  std::map<uint64_t, Box> boxes;               // by step
};

// Session: BoxesOfSession, or what adds to it.
template <class Session>
class StepBoxes {
 public:
  using Box = typename decltype(Session::boxes)::mapped_type;
  void Open(const SessionName& name, MemoryBudget* budget) { sessions_.try_emplace(name, budget); }
  // NULL: it is not open.
  Session* Find(const SessionName& name) {
    auto it = sessions_.find(name);
    return it == sessions_.end() ? nullptr : &it->second;
  }
  // NULL: there is none of that step.
  Box* Find(const SessionName& name, uint64_t step) {
    Session* s = Find(name);
    if (!s) return nullptr;
    auto box = s->boxes.find(step);
    return box == s->boxes.end() ? nullptr : &box->second;
  }
  // REQUIRES: it is open.
  Session Remove(const SessionName& name) { return std::move(sessions_.extract(name).mapped()); }
  // Takes out the boxes of steps before this one.
  std::vector<Box> Forget(const SessionName& name, uint64_t oldest) {
    std::vector<Box> over;
    Session* s = Find(name);
    if (!s || oldest <= s->oldest) return over;
    s->oldest = oldest;
    for (auto box = s->boxes.begin(); box != s->boxes.end() && box->first < oldest; box = s->boxes.erase(box)) {
      over.push_back(std::move(box->second));
    }
    return over;
  }
  // Of what `count` says of each box.
  template <class Count>
  uint64_t Sum(Count count) const {
    uint64_t n = 0;
    for (const auto& [name, session] : sessions_) {
      for (const auto& [step, box] : session.boxes) n += count(box);
    }
    return n;
  }

 private:
  std::map<SessionName, Session> sessions_;
};

}  // namespace thalweg::distributed
