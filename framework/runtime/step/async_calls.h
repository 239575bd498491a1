// AsyncCalls: the tokens of asynchronous kernel calls in progress. A token holds a slot number and
// a generation, so that a second or late completion is detected and dropped. Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "framework/base/status.h"
#include "thalweg/plugin/abi.h"

namespace thalweg {

struct StepBase;

class AsyncCalls {
 public:
  // Tokens are unique in the process, so that a plugin that confuses two runtimes is detected too.
  static AsyncCalls& Get();

  // Returns a token. Complete passes the tag to StepBase::Complete of the step.
  tw_token Begin(StepBase* step, uint64_t tag);
  // Drops the token of a call that failed to start. Returns false if the call was already
  // completed.
  bool Cancel(tw_token t);
  void Complete(tw_token t, Status s);
  uint64_t under_way() const;

 private:
  struct Call {
    uint32_t generation = 1;
    StepBase* step = nullptr;
    uint64_t tag = 0;
  };
  Call* Find(tw_token t);
  mutable std::mutex mu_;
  std::deque<Call> calls_;
  std::vector<uint32_t> free_;
  uint64_t live_ = 0;
};

}  // namespace thalweg
