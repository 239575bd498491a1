// CollectiveCall: a call of a collective engine (thalweg/plugin/collective.h), checked, in the form
// in which an engine executes it. Task: the facts of a call that must be equal at all members.
// Threads: any.
#ifndef THALWEG_PLUGINS_COMMON_COLLECTIVE_CALL_H_
#define THALWEG_PLUGINS_COMMON_COLLECTIVE_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::common {

enum class Operation : uint32_t { kAllReduce = 1, kBroadcast, kAllGather, kReduceScatter, kAllToAll, kPermute };

constexpr uint32_t kNobody = UINT32_MAX;  // the source of zeros in a permutation

// Members send it to each other as it is in memory.
struct Task {
  uint32_t operation = 0, reduce = 0, root = 0, dtype = 0;  // of permute, `root` is a checksum of the sources
  uint64_t count = 0;                                       // elements of the input; of broadcast: of the output
  bool operator==(const Task&) const = default;
};

// Returns "all_reduce of 3 float, reduction 1".
std::string TaskText(const Task& task);

// A failure of an operation or of joining.
struct Failed {
  uint32_t code = 0;  // TW_*; 0: none
  std::string text;
};

// Learns what becomes of a call that no timeline reports. Called on a thread of the engine; must not
// block.
class Watcher {
 public:
  virtual void AllBegun() noexcept {}  // of a guard only: all members have begun the operation, with equal tasks
  virtual void Ended(const Failed& how) noexcept = 0;

 protected:
  ~Watcher() = default;
};

struct CollectiveCall {
  Task task;
  const char* in = nullptr;  // NULL at a member that receives a broadcast
  char* out = nullptr;
  uint64_t bytes = 0, element = 1;  // of the input (broadcast: of the output); of an element
  std::vector<uint32_t> sources;    // of permute, by rank: a rank or kNobody
  tw_timeline* line = nullptr;
  uint64_t value = 0;

  // For calls that are a part of another one (ring/level_group.h):
  Watcher* watcher = nullptr;  // in place of `line`
  int64_t deadline = 0;        // on the host's clock; 0: after the group's deadline
  uint64_t number = 0;         // of the operation in messages; 0: as the group counts
  bool guards = false;         // see ring/operation.h
};

// Ends a call of an engine.
[[noreturn]] inline void Fail(uint32_t code, const std::string& text) { throw tw::Error{code, text}; }

// Throws tw::Error for a group that an engine of host memory cannot make.
void CheckConfig(const tw_group_config& config);

// Throws tw::Error for a call that cannot be executed: a type without this operation, sizes that do
// not fit together, a root or a source that is no member.
CollectiveCall CheckedCall(Operation operation, const tw_collective_call& call, uint32_t rank, uint32_t members);

// Keeps the call's timeline until Finish.
void Keep(const tw_host* host, const CollectiveCall& call);
// Reports the end of the call.
void Finish(const tw_host* host, const CollectiveCall& call, const Failed& how) noexcept;

// Returns a copy. A text that finds no memory is empty.
Failed CopyOf(const Failed& how) noexcept;
// Returns code and text of a status. A text that finds no memory is empty.
Failed FailedOf(const tw_host* host, const tw_status* status) noexcept;
// Returns the exception in flight. Call it in a catch block.
Failed Caught(const tw_host* host) noexcept;

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_COLLECTIVE_CALL_H_
