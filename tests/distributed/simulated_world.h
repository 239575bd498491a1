// A world of processes that communicate over a simulated transport under a simulated clock: one
// thread and one queue of events. A seed sets the delay of each message and the faults. The same
// seed gives the same run.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "distributed/clock.h"
#include "framework/registry/role.h"
#include "tests/framework/support/fakes.h"

namespace thalweg::distributed {

class World {
 public:
  explicit World(uint64_t seed) : random(seed) {}
  using Name = std::pair<int64_t, uint64_t>;

  Name At(int64_t ns, std::function<void()> f) {
    const Name name{std::max(ns, now), ++count_};
    events_.emplace(name, std::move(f));
    return name;
  }
  Name After(int64_t ns, std::function<void()> f) { return At(now + ns, std::move(f)); }
  void Forget(const Name& name) { events_.erase(name); }
  // Runs all events up to that time.
  void RunUntil(int64_t ns) {
    while (!events_.empty() && events_.begin()->first.first <= ns) {
      auto first = events_.extract(events_.begin());
      now = first.key().first;
      log = log * 1099511628211u ^ uint64_t(now);
      first.mapped()();
    }
    now = ns;
  }
  uint64_t Below(uint64_t n) { return random() % n; }

  std::mt19937_64 random;
  int64_t now = 1;
  int64_t slowest = 50'000'000;          // nanoseconds that a message may take at most
  uint64_t log = 14695981039346656037u;  // hash of the times of all events

 private:
  std::map<Name, std::function<void()>> events_;
  uint64_t count_ = 0;
};

class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(World* world) : world_(world) {}
  int64_t Now() const override { return world_->now; }
  uint64_t At(int64_t ns, std::function<void()> f) override {
    const uint64_t name = ++names_;
    if (stopped_) return name;
    at_[name] = world_->At(ns, [this, name, f = std::move(f)] {
      at_.erase(name);
      f();
    });
    return name;
  }
  void Forget(uint64_t name) override {
    auto it = at_.find(name);
    if (it == at_.end()) return;
    world_->Forget(it->second);
    at_.erase(it);
  }
  void Stop() override {
    stopped_ = true;
    for (auto& [name, event] : at_) world_->Forget(event);
    at_.clear();
  }

 private:
  World* const world_;
  uint64_t names_ = 0;
  bool stopped_ = false;
  std::map<uint64_t, World::Name> at_;
};

// The transport role in a world. Faults: Kill an endpoint, Cut a connection.
class SimulatedTransport {
 public:
  explicit SimulatedTransport(World* world) : world_(world) {
    role_ = std::make_shared<TransportRole>();
    role_->name = "sim";
    role_->host = &host_.c;
    tw_transport_def& d = role_->def;
    d.size = sizeof d;
    d.user = this;
    d.security = TW_TRANSPORT_SAME_HOST;
    d.poll = [](const tw_host*, void*, uint64_t, uint32_t (*)(void*), void*) -> uint32_t { return 0; };
    d.wake = [](const tw_host*, void*) {};
    d.listen = Listen;
    d.connect = Connect;
    d.call = CallPeer;
    d.cancel = [](const tw_host*, void* peer, uint64_t id) {
      auto* p = static_cast<Peer*>(peer);
      p->world->After(0, [p, id, t = p->transport] { t->EndOf(p, id, TW_CANCELLED); });
    };
    d.answer = Answer;
    d.close_peer = [](const tw_host*, void* peer) {
      auto* p = static_cast<Peer*>(peer);
      p->world->After(0, [p] { p->transport->LosePeer(p, TW_CANCELLED); });
    };
    d.close = [](const tw_host*, void* endpoint) {
      static_cast<Endpoint*>(endpoint)->transport->CloseEndpoint(static_cast<Endpoint*>(endpoint));
    };
  }
  std::shared_ptr<const TransportRole> role() const { return role_; }
  uint64_t calls() const { return calls_.size(); }  // in progress

  // Cuts off the process at the address: it sends and receives nothing any more.
  void Kill(const std::string& address) {
    auto it = listening_.find(address);
    if (it == listening_.end()) return;
    Endpoint* e = it->second;
    e->dead = true;
    listening_.erase(it);
    for (auto& p : peers_) {
      if (p->to == e || p->from == e) world_->After(Delay(), [this, p = p.get()] { LosePeer(p, TW_UNAVAILABLE); });
    }
  }
  // Ends the connections between two addresses.
  void Cut(const std::string& a, const std::string& b) {
    for (auto& p : peers_) {
      const bool both = (p->from->address == a && p->to->address == b) || (p->from->address == b && p->to->address == a);
      if (both) world_->After(Delay(), [this, p = p.get()] { LosePeer(p, TW_UNAVAILABLE); });
    }
  }

 private:
  struct Endpoint {
    SimulatedTransport* transport;
    std::string address;
    tw_endpoint_config config;
    bool dead = false;
  };
  struct Peer {
    SimulatedTransport* transport;
    World* world;
    Endpoint *from, *to;
    bool lost = false;
  };
  struct Call {
    Peer* peer = nullptr;
    uint64_t id = 0, number = 0;
    tw_message m{};
    std::string head, body;
    tw_incoming in{};
    bool over = false;  // for the caller
    bool served = false, answered = false, gone = false;
    tw_message answer{};
    std::string answer_head;
  };

  static tw_status* Fail(uint32_t code, const char* text) { return ToC(Status(absl::StatusCode(code), text)); }
  int64_t Delay() { return int64_t(world_->Below(uint64_t(world_->slowest))); }

  static tw_status* Listen(const tw_host*, void* user, const tw_endpoint_config* c, tw_sink* bound, void** out) {
    auto* t = static_cast<SimulatedTransport*>(user);
    t->endpoints_.push_back(std::make_unique<Endpoint>(Endpoint{t, {c->address, size_t(c->address_len)}, *c}));
    Endpoint* e = t->endpoints_.back().get();
    if (!t->listening_.emplace(e->address, e).second) return Fail(TW_UNAVAILABLE, "the address is taken");
    *out = e;
    return bound->put(bound, e->address.data(), e->address.size());
  }
  static tw_status* Connect(const tw_host*, void* endpoint, const char* address, uint64_t len, void** out) {
    auto* e = static_cast<Endpoint*>(endpoint);
    auto* t = e->transport;
    auto it = t->listening_.find({address, size_t(len)});
    if (it == t->listening_.end()) return Fail(TW_UNAVAILABLE, "nobody is there");
    t->peers_.push_back(std::make_unique<Peer>(Peer{t, t->world_, e, it->second}));
    *out = t->peers_.back().get();
    return nullptr;
  }
  static tw_status* CallPeer(const tw_host*, void* peer, uint64_t id, const tw_message* m) {
    auto* p = static_cast<Peer*>(peer);
    auto* t = p->transport;
    if (p->lost) return Fail(TW_UNAVAILABLE, "is lost");
    auto c = std::make_shared<Call>();
    c->peer = p;
    c->id = id;
    c->number = ++t->numbers_;
    c->m = *m;
    c->head.assign(static_cast<const char*>(m->head), size_t(m->head_bytes));
    t->calls_.emplace(c->number, c);
    t->world_->After(t->Delay(), [t, c] { t->Deliver(c); });
    return nullptr;
  }

  void Deliver(const std::shared_ptr<Call>& c) {
    Endpoint* to = c->peer->to;
    if (c->over || to->dead || c->peer->lost) return;
    void *data = nullptr, *region = nullptr;
    c->in = {TW_SIZED(tw_incoming), c->number, TW_S("somebody"), c->head.data(), c->head.size(), nullptr, c->m.bytes, nullptr};
    tw_ask_place(to->config.place, to->config.arg, &c->in, &data, &region);
    if (data && c->m.bytes) std::memcpy(data, c->m.body, size_t(c->m.bytes));
    c->in.body = data;
    c->in.self = c.get();
    c->served = true;
    to->config.serve(to->config.arg, &c->in);
  }

  static void Answer(const tw_host*, void* self, const tw_message* m) {
    auto* c = static_cast<Call*>(self);
    auto* t = c->peer->transport;
    auto call = t->calls_.at(c->number);
    c->answered = true;
    c->answer = *m;
    c->answer_head.assign(static_cast<const char*>(m->head), size_t(m->head_bytes));
    t->world_->After(t->Delay(), [t, call] { t->Arrive(call); });
  }

  // The answer arrives at the caller.
  void Arrive(const std::shared_ptr<Call>& c) {
    if (!c->answer.done) return;
    const bool heard = !c->over && !c->peer->lost && !c->peer->to->dead;
    if (heard) {
      tw_incoming in = {TW_SIZED(tw_incoming), c->id,   TW_S("somebody"), c->answer_head.data(),
                        c->answer_head.size(), nullptr, c->answer.bytes,  nullptr};
      void *data = nullptr, *region = nullptr;
      tw_ask_place(c->m.place, c->m.arg, &in, &data, &region);
      if (data && c->answer.bytes) std::memcpy(data, c->answer.body, size_t(c->answer.bytes));
    }
    auto answered = std::exchange(c->answer.done, nullptr);
    answered(c->answer.arg, heard ? nullptr : Fail(TW_CANCELLED, "nobody waits"));
    if (heard) End(c, nullptr);
    Clear(c);
  }

  // Ends the call for the caller.
  void End(const std::shared_ptr<Call>& c, tw_status* s) {
    if (c->over) return (void)FromC(s);
    c->over = true;
    c->m.done(c->m.arg, s);
    if (c->served && !c->answered) {
      world_->After(Delay(), [c] {
        if (!c->answered && !std::exchange(c->gone, true)) c->peer->to->config.gone(c->peer->to->config.arg, c->number);
      });
    }
    Clear(c);
  }
  void Clear(const std::shared_ptr<Call>& c) {
    if (c->over && (!c->served || (c->answered && !c->answer.done))) calls_.erase(c->number);
  }
  void EndOf(Peer* p, uint64_t id, uint32_t code) {
    for (auto& [number, c] : std::map(calls_)) {
      if (c->peer == p && c->id == id) End(c, Fail(code, "was ended"));
    }
  }
  void LosePeer(Peer* p, uint32_t code) {
    if (std::exchange(p->lost, true)) return;
    for (auto& [number, c] : std::map(calls_)) {
      if (c->peer == p) End(c, Fail(code, "is lost"));
    }
  }
  // Ends open calls at once instead of waiting for them.
  void CloseEndpoint(Endpoint* e) {
    auto it = listening_.find(e->address);
    if (it != listening_.end() && it->second == e) listening_.erase(it);
    for (auto& p : peers_) {
      if (p->from == e) LosePeer(p.get(), TW_CANCELLED);
      if (p->to == e) LosePeer(p.get(), TW_UNAVAILABLE);
    }
    for (auto& [number, c] : std::map(calls_)) {
      if (c->peer->to == e && c->answered) Arrive(c);
    }
    e->dead = true;
  }

  World* const world_;
  testing_support::FakeHost host_;
  std::shared_ptr<TransportRole> role_;
  uint64_t numbers_ = 0;
  std::map<std::string, Endpoint*> listening_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<uint64_t, std::shared_ptr<Call>> calls_;
};

}  // namespace thalweg::distributed
