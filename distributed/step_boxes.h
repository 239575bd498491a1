// StepBoxes: data that a task keeps for steps of sessions, one box per step, until the step has
// ended everywhere. The owner guards it with a lock and destroys the boxes that it takes out
// outside that lock.
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
  // budget: the session's account; NULL for no charge.
  explicit BoxesOfSession(MemoryBudget* budget = nullptr) : held(budget, kFree) {}
  static constexpr uint64_t kFree = 16 << 10;  // bytes free of charge: a full session may run steps that make room
  Meter held;                                  // for the records in the boxes; values are paid for elsewhere
  uint64_t oldest = 0;                         // steps before this one have ended everywhere
  std::map<uint64_t, Box> boxes;               // by step
};

// Session: BoxesOfSession, or a class derived from it.
template <class Session>
class StepBoxes {
 public:
  using Box = typename decltype(Session::boxes)::mapped_type;
  void Open(const SessionName& name, MemoryBudget* budget) { sessions_.try_emplace(name, budget); }
  // Returns NULL if the session is not open.
  Session* Find(const SessionName& name) {
    auto it = sessions_.find(name);
    return it == sessions_.end() ? nullptr : &it->second;
  }
  // Returns NULL if there is no box for the step.
  Box* Find(const SessionName& name, uint64_t step) {
    Session* s = Find(name);
    if (!s) return nullptr;
    auto box = s->boxes.find(step);
    return box == s->boxes.end() ? nullptr : &box->second;
  }
  // REQUIRES: the session is open.
  Session Remove(const SessionName& name) { return std::move(sessions_.extract(name).mapped()); }
  // Takes out the boxes of steps before `oldest`.
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
  // Adds up `count` over all boxes.
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
