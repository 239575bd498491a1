#include "hub.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "../common/thread.h"
#include "group.h"
#include "incoming.h"
#include "peer.h"

namespace thalweg::ring {
namespace {

constexpr int64_t kTick = 20'000'000;          // nanoseconds between looks at what has a time limit
constexpr int64_t kGreeting = 10'000'000'000;  // nanoseconds for a stranger to say who it is
constexpr int64_t kFlushing = 1'000'000'000;   // nanoseconds for the last words of a process
constexpr size_t kMostStrangers = 64;          // connections that have not said who they are
constexpr int kAccepts = 16;                   // connections accepted in a round

[[noreturn]] void FailOn(const char* what) {
  throw tw::Error{TW_UNAVAILABLE, std::string("cannot make ") + what + ": " + std::strerror(errno)};
}

}  // namespace

class Hub::Listener final : public Watched {
 public:
  explicit Listener(Hub* hub) : hub_(hub) {}
  void Ready(uint32_t) override { hub_->Accept(); }
  void GiveUp(const std::string&) noexcept override {}  // the caller finds its connection closed, and calls again

 private:
  Hub* const hub_;
};

Hub::Hub(const tw_host* host, const Settings& settings) : host_(host), settings_(settings), accepts_(new Listener(this)) {
  record_.process = RandomNumber();
  record_.token = {{RandomNumber(), RandomNumber()}};
  record_.pid = uint64_t(getpid());
  record_.host = OwnHostName();
  sigset_t all, before;
  sigfillset(&all);
  try {
    listener_ = Listen(settings_, &record_.address);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) FailOn("an epoll descriptor");
    waker_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waker_ < 0) FailOn("an event descriptor");
    if (!Watch(waker_, EPOLLIN, nullptr) || !Watch(listener_, EPOLLIN, accepts_.get())) FailOn("an entry of an epoll descriptor");
    listens_ = true;
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's threads
    try {
      thread_ = common::StartThread([this] { Run(); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  } catch (...) {
    for (int fd : {listener_, epoll_, waker_}) {
      if (fd >= 0) close(fd);
    }
    throw;
  }
}

Hub::~Hub() {
  {
    std::lock_guard lock(mu_);
    ending_ = true;
  }
  const uint64_t one = 1;
  (void)!write(waker_, &one, sizeof one);  // a full counter wakes the thread, too
  thread_.join();
  strangers_.clear();
  peers_.clear();
  for (int fd : {listener_, epoll_, waker_}) close(fd);
}

bool Hub::forked() const { return record_.pid != uint64_t(getpid()); }

// ---- Jobs ----

void Hub::Post(Job* job) {
  job->next = nullptr;
  {
    std::lock_guard lock(mu_);
    (last_ ? last_->next : first_) = job;
    last_ = job;
  }
  const uint64_t one = 1;
  (void)!write(waker_, &one, sizeof one);  // a full counter wakes the thread, too
}

void Hub::RunJobs() {
  Job* job;
  {
    std::lock_guard lock(mu_);
    job = std::exchange(first_, nullptr);
    last_ = nullptr;
  }
  while (job) {
    Job* next = job->next;  // the job may delete itself
    job->run(job);
    job = next;
  }
}

// ---- The thread ----

void Hub::Run() {
  epoll_event events[64];
  int64_t end = 0;
  for (;;) {
    const int patience = awake_ ? 0 : end || NeedsTime() ? int(kTick / 1'000'000) : -1;
    const int n = epoll_wait(epoll_, events, std::size(events), patience);
    now_ = host_->run->now(host_);
    for (int i = 0; i < n; ++i) {
      auto* watched = static_cast<Watched*>(events[i].data.ptr);
      if (!watched) {
        uint64_t count;
        (void)!read(waker_, &count, sizeof count);  // nothing to read means that it was read before
        continue;
      }
      try {
        watched->Ready(events[i].events);
      } catch (const tw::Error& e) {
        watched->GiveUp(e.text);
      } catch (const std::exception& e) {
        watched->GiveUp(e.what());
      }
    }
    RunJobs();
    try {
      if (now_ >= tick_) Tick();
    } catch (const std::bad_alloc&) {  // the next tick does the rest
    }
    for (Peer* p = std::exchange(awake_, nullptr); p;) {
      Peer* next = p->TakeOffLine();
      try {
        p->Pump();
      } catch (const std::exception& e) {
        p->GiveUp(e.what());
      }
      p = next;
    }
    if (reap_) Reap();
    bool ends;
    {
      std::lock_guard lock(mu_);
      ends = ending_;
    }
    if (ends && end == 0) end = now_ + kFlushing;
    if (end && (now_ >= end || Flushed())) return;
  }
}

// Returns true if the hub must look at the clock though nothing arrives.
bool Hub::NeedsTime() const {
  if (!listens_ || !strangers_.empty()) return true;
  return std::any_of(groups_.begin(), groups_.end(), [](const auto& g) { return g.second->NeedsTime(); }) ||
         std::any_of(peers_.begin(), peers_.end(), [](const auto& p) { return p.second->NeedsTime(); });
}

bool Hub::Flushed() const {
  return std::none_of(peers_.begin(), peers_.end(), [](const auto& p) { return p.second->HasWords(); });
}

void Hub::Tick() {
  tick_ = now_ + kTick;
  if (!listens_) listens_ = Watch(listener_, EPOLLIN, accepts_.get());
  for (const auto& s : strangers_) {
    if (s && now_ - s->since() > kGreeting) s->Close();
  }
  for (const auto& [door, g] : groups_) g->Tick();
  for (;;) {
    const auto late = std::find_if(peers_.begin(), peers_.end(), [](const auto& p) { return p.second->IsLost(); });
    if (late == peers_.end()) break;
    Lose(late->second.get(), late->second->trouble());
  }
  for (const auto& [process, p] : peers_) p->Tick();
}

// Deletes what no event of this round can name any more.
void Hub::Reap() {
  reap_ = false;
  lost_.clear();
  std::erase_if(strangers_, [](const auto& s) { return !s || s->closed(); });
  std::erase_if(peers_, [this](const auto& entry) {
    const Peer* p = entry.second.get();
    return p->idle() && std::none_of(groups_.begin(), groups_.end(), [p](const auto& g) { return g.second->Uses(p); });
  });
}

// ---- Connections ----

void Hub::Accept() {
  for (int i = 0; i < kAccepts; ++i) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return;
      Unwatch(listener_);  // no descriptor is left: waits for the next tick, because the event would come again at once
      listens_ = false;
      return;
    }
    try {
      strangers_.reserve(strangers_.size() + 1);  // so that push_back, which would close fd as well, throws nothing
      strangers_.push_back(std::make_unique<Incoming>(this, fd));
    } catch (...) {
      close(fd);
      throw;
    }
    if (strangers_.size() <= kMostStrangers) continue;
    // The oldest one makes room, so that idle connections keep nobody out.
    const auto oldest = std::find_if(strangers_.begin(), strangers_.end(), [](const auto& s) { return s && !s->closed(); });
    (*oldest)->Close();
    ReapSoon();
  }
}

bool Hub::Adopt(Incoming* stranger, uint64_t process) {
  Peer* peer = PeerOf(process);
  if (peer->has_incoming()) return false;
  for (auto& s : strangers_) {
    if (s.get() != stranger) continue;
    peer->Take(std::move(s));
    ReapSoon();
    return true;
  }
  return false;
}

Peer* Hub::PeerOf(uint64_t process) {
  const auto found = peers_.find(process);
  if (found != peers_.end()) return found->second.get();
  auto peer = std::make_unique<Peer>(this, process);  // first, so that a lack of memory leaves no entry without a Peer
  return peers_.emplace(process, std::move(peer)).first->second.get();
}

Peer* Hub::Reach(const Record& record) {
  Peer* peer = PeerOf(record.process);
  peer->Reach(record);
  return peer;
}

void Hub::Opened(Peer* peer) {
  for (const auto& [door, g] : groups_) g->Opened(peer);
}

void Hub::Lose(Peer* peer, const std::string& why) noexcept {
  const auto found = peers_.find(peer->process());
  if (found == peers_.end() || found->second.get() != peer) return;  // it was lost before
  peer->Close();
  for (const auto& [door, g] : groups_) g->Lost(peer, why);
  try {
    lost_.push_back(std::move(found->second));
  } catch (const std::bad_alloc&) {
    // Keeps it among the others, where the next Reap finds it idle.
    reap_ = true;
    return;
  }
  peers_.erase(found);
  reap_ = true;
}

void Hub::Wake(Peer* peer) noexcept { peer->PutOnLine(&awake_); }

// ---- Groups ----

void Hub::Add(Group* group) { groups_[group->door()] = group; }

void Hub::Remove(Group* group) {
  groups_.erase(group->door());
  ReapSoon();
}

Group* Hub::Find(uint64_t door) const {
  const auto found = groups_.find(door);
  return found == groups_.end() ? nullptr : found->second;
}

// ---- epoll ----

bool Hub::Watch(int fd, uint32_t events, Watched* watched) {
  epoll_event e = {};
  e.events = events;
  e.data.ptr = watched;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e) == 0;
}

bool Hub::Rewatch(int fd, uint32_t events, Watched* watched) {
  epoll_event e = {};
  e.events = events;
  e.data.ptr = watched;
  return epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &e) == 0;
}

void Hub::Unwatch(int fd) { epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

}  // namespace thalweg::ring
