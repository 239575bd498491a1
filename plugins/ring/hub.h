// Hub: the thread of a process that talks to the processes of other members, for all groups of the
// runtime. It listens, keeps one connection to and one from each other process, and hands frames to
// the groups. It exists as long as a group does.
// Threads: Post, Call and record from any; everything else, of Peer and Incoming too, on the hub's
// thread. Group has parts for both.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "address.h"

namespace thalweg::ring {

class Group;
class Incoming;
class Peer;

// A socket for which the hub waits.
class Watched {
 public:
  virtual void Ready(uint32_t events) = 0;
  // Ready has thrown an exception, for lack of memory.
  virtual void GiveUp(const std::string& why) noexcept = 0;

 protected:
  ~Watched() = default;
};

// Work for the hub's thread. Handing it over needs no memory.
struct Job {
  Job* next = nullptr;
  void (*run)(Job*) = nullptr;  // throws nothing
};

class Hub final {
 public:
  // Listens. Throws tw::Error.
  Hub(const tw_host* host, const Settings& settings);
  // Sends what is queued, for at most a second. REQUIRES: no group is left.
  ~Hub();
  Hub(const Hub&) = delete;

  const tw_host* host() const { return host_; }
  const Settings& settings() const { return settings_; }
  // This process; a group adds its own number.
  const Record& record() const { return record_; }
  // Returns true in the child of a fork. The thread does not exist there, and the sockets are the
  // parent's.
  bool forked() const;
  // Runs the job after those that were handed over before.
  void Post(Job* job);
  // Runs f, which throws nothing, on the hub's thread and waits until it has returned.
  template <class F>
  void Call(F f) {
    struct Waited : Job {
      F* f;
      std::mutex mu;  // guards done
      std::condition_variable changed;
      bool done = false;
    } job;
    job.f = &f;
    job.run = [](Job* j) {
      auto* w = static_cast<Waited*>(j);
      (*w->f)();
      std::lock_guard lock(w->mu);
      w->done = true;
      w->changed.notify_all();
    };
    Post(&job);
    std::unique_lock lock(job.mu);
    job.changed.wait(lock, [&] { return job.done; });
  }

  // ---- On the hub's thread ----
  int64_t now() const { return now_; }
  void Add(Group* group);
  void Remove(Group* group);
  Group* Find(uint64_t door) const;
  // Returns the process of the record, and connects to it unless that has been done.
  Peer* Reach(const Record& record);
  Peer* PeerOf(uint64_t process);
  // The connection to the process is open.
  void Opened(Peer* peer);
  // The process is lost. Its groups fail, and the Peer is deleted at the end of the hub's round.
  void Lose(Peer* peer, const std::string& why) noexcept;
  // The peer has something to send.
  void Wake(Peer* peer) noexcept;
  // Something may be deleted at the end of the round.
  void ReapSoon() { reap_ = true; }
  // Takes the connection of a process that has proved who it is. Returns false if there is one.
  bool Adopt(Incoming* stranger, uint64_t process);

  // Memory for bytes that nobody wants.
  static constexpr uint64_t kDropped = 64 << 10;
  char* dropped() { return dropped_; }

  // Returns false and leaves errno set if the system refuses.
  bool Watch(int fd, uint32_t events, Watched* watched);
  bool Rewatch(int fd, uint32_t events, Watched* watched);
  void Unwatch(int fd);

 private:
  class Listener;
  void Run();
  void RunJobs();
  void Accept();
  void Tick();
  void Reap();
  bool NeedsTime() const;
  bool Flushed() const;

  const tw_host* const host_;
  const Settings settings_;
  Record record_;
  int listener_ = -1, epoll_ = -1, waker_ = -1;
  std::unique_ptr<Listener> accepts_;
  bool listens_ = false;  // the listener is watched

  std::mutex mu_;  // guards the fields of this block
  Job* first_ = nullptr;
  Job* last_ = nullptr;
  bool ending_ = false;

  int64_t now_ = 0, tick_ = 0;
  bool reap_ = false;
  std::unordered_map<uint64_t, Group*> groups_;                // by door
  std::unordered_map<uint64_t, std::unique_ptr<Peer>> peers_;  // by process
  std::vector<std::unique_ptr<Peer>> lost_;                    // until the end of the round
  std::vector<std::unique_ptr<Incoming>> strangers_;           // in the order in which they came
  Peer* awake_ = nullptr;                                      // the first of those that have something to send
  char dropped_[kDropped];
  std::thread thread_;
};

}  // namespace thalweg::ring
