// Group: one member of a group. It joins, then executes operations one after the other on a thread of
// its own. Every operation is a sequence of meetings: a member copies a piece of its input to its
// window, waits until all members have done so, and reads theirs.
// Threads: Start and Abort from any; the rest from the group's thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "segment.h"

namespace thalweg::shm {

using common::Operation;

// Settings of the plugin.
struct Settings {
  std::string folder = "/dev/shm";
  uint64_t window = 256 << 10;  // bytes that a member copies at once
};

class Group {
 public:
  // Waits for the other members. Throws tw::Error.
  Group(const tw_host* host, const tw_group_config& config, const Settings& settings);
  ~Group();
  Group(const Group&) = delete;

  // Enqueues an operation. Throws tw::Error for one that cannot be executed.
  void Start(Operation operation, const tw_collective_call& call);
  // Fails the operations that are enqueued or running, here and at the other members.
  void Abort(const tw_status* why);

 private:
  using Work = common::CollectiveCall;
  int64_t Now() const { return host_->run->now(host_); }
  void Put(const tw_group_config& c, const std::string& key, const std::string& value) const;
  bool Get(const tw_group_config& c, const std::string& key, int64_t deadline, std::string* value) const;
  void Find(const tw_group_config& c, const std::string& folder, int64_t deadline);
  std::string ComingKey(uint32_t rank) const;
  void AwaitMembers(const tw_group_config& c, int64_t deadline);

  void Loop();
  void Finish(const Work& w, const Failed& how);
  void Execute(const Work& w);
  void Reduce(const Work& w);
  void Broadcast(const Work& w);
  void Gather(const Work& w);
  void Exchange(const Work& w);
  // Says that this member's piece is in its window, and waits for those of the others.
  void Meet();
  void Await(uint32_t rank);
  void CompareTasks();
  void CheckFailure() const;
  // Ends the group's work for all members, and throws.
  [[noreturn]] void Break(uint32_t code, const std::string& text);
  std::string Who(uint32_t rank) const;
  char* window(uint32_t rank) const { return segment_->in(which_, rank); }

  const tw_host* const host_;
  const std::string name_;
  const uint32_t rank_, members_;
  const int64_t patience_;  // nanoseconds for an operation; 0: no limit
  std::unique_ptr<Segment> segment_;
  uint32_t phase_ = 0, which_ = 0;
  uint64_t number_ = 0;    // of the operation
  bool compared_ = false;  // the tasks of this operation
  int64_t deadline_ = 0;

  std::mutex mu_;  // guards the fields below, except for is_aborted_ and thread_
  std::condition_variable changed_;
  std::deque<Work> work_;
  Failed aborted_;
  std::atomic<bool> is_aborted_{false};
  bool ending_ = false, running_ = false;
  std::thread thread_;
};

}  // namespace thalweg::shm
