// Group: one member of a group. It joins, then executes operations one after the other on a thread of
// its own. Every operation is a sequence of meetings: a member copies a piece of its input to its
// window, waits until all members have done so, and reads theirs.
// Threads: Start, Abort and Break from any; the rest from the group's thread.
#pragma once
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

#include "../common/call_thread.h"
#include "segment.h"

namespace thalweg::shm {

using common::Operation;

// Settings of the plugin.
struct Settings {
  std::string folder = "/dev/shm";
  uint64_t window = 256 << 10;  // bytes that a member copies at once
  const char* window_setting = "window";
};
// Throws tw::Error naming the setting and its value.
Settings SettingsOf(const tw_host* host);

// Returns a text that differs from start to start of a machine, so that members of one host have the
// same one. Throws tw::Error if the system has none.
std::string HostNumber();

class Group {
 public:
  // Waits for the other members. Throws tw::Error, tw::Raised.
  // ranks: the numbers that messages give the members; empty: their ranks.
  Group(const tw_host* host, const tw_group_config& config, const Settings& settings, std::vector<uint32_t> ranks = {});
  ~Group();
  Group(const Group&) = delete;

  // Returns true in the child of a fork, where the group can do nothing and must not be destroyed,
  // because the others would take that for the end of the parent's member.
  bool forked() const { return process_ != getpid(); }
  // Enqueues an operation. Throws tw::Error for one that cannot be executed.
  void Start(Operation operation, const tw_collective_call& call);
  // Fails the operations that are enqueued or running, here and at the other members.
  void Abort(const tw_status* why);

  // Executes an operation on this thread, which takes the place of the group's: for a group that is a
  // part of another one, whose calls have no timelines. Returns its failure.
  Failed Run(const common::CollectiveCall& call) noexcept;
  // Fails the group at all members, unless it has failed before.
  void Break(const Failed& why) { segment_->Break(why.code, why.text); }

 private:
  using Work = common::CollectiveCall;
  int64_t Now() const { return host_->run->now(host_); }
  void Put(const tw_group_config& c, const std::string& key, const std::string& value) const;
  bool Get(const tw_group_config& c, const std::string& key, int64_t deadline, std::string* value) const;
  void Find(const tw_group_config& c, const std::string& folder, int64_t deadline);
  std::string ComingKey(uint32_t rank) const;
  void AwaitMembers(const tw_group_config& c, int64_t deadline);

  std::string MissingText(uint32_t awaited) const;
  void Execute(const Work& w);
  void Reduce(const Work& w);
  void Broadcast(const Work& w);
  void Gather(const Work& w);
  void Exchange(const Work& w);
  void Permute(const Work& w);
  // Says that this member's piece is in its window, and waits for those of the others.
  void Meet();
  void Await(uint32_t rank);
  void CompareTasks();
  void CheckFailure() const;
  // Ends the group's work for all members, and throws.
  [[noreturn]] void Break(uint32_t code, const std::string& text);
  std::string Who(uint32_t rank) const;
  uint32_t Told(uint32_t rank) const { return ranks_.empty() ? rank : ranks_[rank]; }
  char* window(uint32_t rank) const { return segment_->in(which_, rank); }

  const tw_host* const host_;
  const std::string name_;
  const uint32_t rank_, members_;
  const int64_t patience_;  // nanoseconds for an operation; 0: no limit
  const std::vector<uint32_t> ranks_;
  const pid_t process_ = getpid();
  std::unique_ptr<Segment> segment_;
  uint32_t phase_ = 0, which_ = 0;
  uint64_t number_ = 0;    // of the operation
  uint64_t told_ = 0;      // its number in messages
  bool compared_ = false;  // the tasks of this operation
  int64_t deadline_ = 0;

  std::mutex mu_;  // guards aborted_, which is_aborted_ says to be there
  Failed aborted_;
  std::atomic<bool> is_aborted_{false};
  common::CallThread calls_;  // last, because its thread uses the other fields
};

}  // namespace thalweg::shm
