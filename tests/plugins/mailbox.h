// Mailbox: a minimal model of a host over a transport. Messages of steps are matched by key, once,
// whichever side comes first: a sent message waits here until a peer requests it with a call, which
// is answered when the message is there. Deadlines, aborts and finished steps are handled on this
// side alone; the transport only sees calls.
// Threads: any. A Delivery lives as long as any thread may still use it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/registry/role.h"

namespace thalweg {

// An operation that must end once, with its status.
struct Delivery {
  std::vector<char> bytes;
  std::string head;  // of the message, or of the answer
  bool wanted = true;
  std::atomic<uint64_t> ended{0};  // the place of its end among those of all deliveries
  void End(const Status& s) {
    static std::atomic<uint64_t> count;
    std::lock_guard lock(mu);
    ended = ++count;
    ++times;
    how = s;
    changed.notify_all();
  }
  Status Wait() {
    std::unique_lock lock(mu);
    if (!changed.wait_for(lock, std::chrono::seconds(20), [&] { return times > 0; })) return absl::InternalError("it waits on");
    return times == 1 ? how : absl::InternalError("it ended twice");
  }
  bool over() {
    std::lock_guard lock(mu);
    return times > 0;
  }
  // Callbacks for tw_message.
  static void Place(void* arg, const tw_incoming* m, tw_placing* to) {
    auto* d = static_cast<Delivery*>(arg);
    d->head.assign(static_cast<const char*>(m->head), m->head_bytes);
    d->bytes.assign(d->wanted ? m->bytes : 0, 0);
    if (d->wanted) tw_put_place(to, d->bytes.data());
  }
  static void Done(void* arg, tw_status* s) { static_cast<Delivery*>(arg)->End(FromC(s)); }

 private:
  std::mutex mu;
  std::condition_variable changed;
  int times = 0;
  Status how;
};

class Mailbox {
 public:
  using Key = std::pair<uint64_t, std::string>;  // step, key
  explicit Mailbox(const TransportRole& role) : role_(role) {}

  // Returns the head of the call that requests a message.
  static std::string Ask(const Key& key) { return "r" + Step(key.first) + key.second; }
  static Key Asked(std::string_view head) {
    Key key;
    std::memcpy(&key.first, head.data() + 1, sizeof key.first);
    key.second = head.substr(1 + sizeof key.first);
    return key;
  }

  // The delivery ends when a peer has the message.
  void Send(const Key& key, Delivery* message) {
    std::unique_lock lock(mu_);
    if (auto over = over_.find(key.first); over != over_.end()) return message->End(over->second);
    auto asked = asked_.find(key);
    if (asked == asked_.end()) return void(sent_.emplace(key, message));
    Request r = asked->second;
    asked_.erase(asked);
    lock.unlock();
    Answer(r.self, Status(), message);
  }
  // Handles a peer's request for a message.
  void Serve(const tw_incoming* call) {
    const Key key = Asked({static_cast<const char*>(call->head), call->head_bytes});
    std::unique_lock lock(mu_);
    auto over = over_.find(key.first);
    auto sent = sent_.find(key);
    const Status why = over == over_.end() ? Status() : over->second;
    if (why.ok() && sent == sent_.end()) return void(asked_.emplace(key, Request{call->id, call->self}));
    Delivery* message = why.ok() ? sent->second : nullptr;
    if (message) sent_.erase(sent);
    lock.unlock();
    Answer(call->self, why, message);
  }
  // Handles the end of the peer's interest in the call.
  void Gone(uint64_t id) {
    std::unique_lock lock(mu_);
    for (auto it = asked_.begin(); it != asked_.end(); ++it) {
      if (it->second.id != id) continue;
      void* self = it->second.self;
      asked_.erase(it);
      lock.unlock();
      return Answer(self, absl::CancelledError("nobody waits"), nullptr);
    }
  }
  // Ends the step here: fails sent messages and requests, now or later. The caller itself tells the
  // peers and cancels its own requests.
  void Abort(uint64_t step, const Status& why) {
    std::vector<void*> asked;
    std::vector<Delivery*> sent;
    {
      std::lock_guard lock(mu_);
      over_.emplace(step, why);  // a real host keeps the last finished step instead
      for (auto it = asked_.begin(); it != asked_.end();) {
        if (it->first.first == step) asked.push_back(it->second.self);
        it = it->first.first == step ? asked_.erase(it) : std::next(it);
      }
      for (auto it = sent_.begin(); it != sent_.end();) {
        if (it->first.first == step) sent.push_back(it->second);
        it = it->first.first == step ? sent_.erase(it) : std::next(it);
      }
    }
    for (void* self : asked) Answer(self, why, nullptr);
    for (Delivery* m : sent) m->End(why);
  }
  // Removes the result from an answer's head and returns it; the rest of the head is the message's.
  static Status Result(std::string* head) {
    if (head->empty()) return absl::InternalError("an answer without a head");
    const auto code = static_cast<absl::StatusCode>(head->front());
    head->erase(0, 1);
    return code == absl::StatusCode::kOk ? Status() : Status(code, *head);
  }

 private:
  struct Request {
    uint64_t id;
    void* self;
  };
  static std::string Step(uint64_t step) { return std::string(reinterpret_cast<const char*>(&step), sizeof step); }
  void Answer(void* self, const Status& s, Delivery* message) {
    std::string head(1, char(s.code()));
    head += message ? message->head : std::string(s.message());
    tw_message m = {
        TW_SIZED(tw_message), head.data(), head.size(), nullptr, 0, nullptr, nullptr, nullptr, [](void*, tw_status* t) { (void)FromC(t); }};
    if (message) m.body = message->bytes.data(), m.bytes = message->bytes.size(), m.arg = message, m.done = Delivery::Done;
    role_.def.answer(role_.host, self, &m);
  }
  const TransportRole& role_;
  std::mutex mu_;
  std::map<Key, Delivery*> sent_;
  std::multimap<Key, Request> asked_;
  std::map<uint64_t, Status> over_;
};

}  // namespace thalweg
