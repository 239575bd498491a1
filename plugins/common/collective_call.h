// CollectiveCall: a call of a collective engine (thalweg/plugin/collective.h), checked, in the form
// in which an engine executes it. Task: the facts of a call that must be equal at all members.
// Threads: any.
#ifndef THALWEG_PLUGINS_COMMON_COLLECTIVE_CALL_H_
#define THALWEG_PLUGINS_COMMON_COLLECTIVE_CALL_H_

#include <cstdint>
#include <string>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::common {

enum class Operation : uint32_t { kAllReduce = 1, kBroadcast, kAllGather, kReduceScatter, kAllToAll };

// Members send it to each other as it is in memory.
struct Task {
  uint32_t operation = 0, reduce = 0, root = 0, dtype = 0;
  uint64_t count = 0;  // elements of the input; of broadcast: of the output
  bool operator==(const Task&) const = default;
};

// Returns "all_reduce of 3 float, reduction 1".
std::string TaskText(const Task& task);

struct CollectiveCall {
  Task task;
  const char* in;
  char* out;
  uint64_t bytes, element;  // of the input (broadcast: of the output); of an element
  tw_timeline* line;
  uint64_t value;
};

// Ends a call of an engine.
[[noreturn]] inline void Fail(uint32_t code, const std::string& text) { throw tw::Error{code, text}; }

// Throws tw::Error for a call that cannot be executed: a type without this operation, sizes that do
// not fit together, a root that is no member.
CollectiveCall CheckedCall(Operation operation, const tw_collective_call& call, uint32_t rank, uint32_t members);

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_COLLECTIVE_CALL_H_
