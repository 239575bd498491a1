// Joins requests that wait into one run, along the first dimension.
//
// The first request of a batch leads it: it waits until the batch is full or due, and starts its run on another thread. Then it waits for
// its result as the others do. A batch is due after the delay, or earlier if a request in it has little time: each waits for others for
// half of its time at most, and has the other half for the run. A request that is cancelled or runs out of time leaves its batch, whether
// it leads or not; if the batch does not run yet, its rows are left out, and the next request leads. A run that nobody waits for any more
// is cancelled. If a joined run fails, each request runs apart, so that only the one at fault fails.
// Threads: any number of requests.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cancellation.h"
#include "part.h"
#include "runners.h"
#include "settings.h"
#include "thalweg/model.h"

namespace thalweg::cli::serve {

using Inputs = std::vector<tw::Tensor>;  // one for each input of a signature; empty for one that is left out

class Batcher {
 public:
  // Runs a signature on the inputs; returns its outputs. Throws.
  using Run = std::function<std::vector<tw::Tensor>(const tw_model_signature& signature, const Inputs& inputs, Deadline deadline,
                                                    const CancelToken& cancel)>;

  // runners: for joined runs; it outlives the batcher.
  Batcher(uint64_t most_rows, std::chrono::microseconds delay, Runners* runners, Run run)
      : most_rows_(most_rows), delay_(delay), runners_(runners), run_(std::move(run)) {}

  // Returns the request's outputs. charge: that of the inputs. owner: of this batcher and of the signature; a joined run may end after the
  // request and holds it until then. Throws what the run throws, and HttpError: 504 at the deadline, that of `cancellation` if the request
  // is cancelled, those of Charge::Add.
  std::vector<Part> Request(const tw_model_signature& signature, Inputs inputs, Charge charge, Deadline deadline,
                            Cancellation* cancellation, std::shared_ptr<const void> owner);

 private:
  struct Member;
  struct Batch;

  uint64_t Rows(const tw_model_signature& signature, const Inputs& inputs);
  std::vector<Part> Apart(const tw_model_signature& signature, const Member& member, Cancellation* cancellation) const;
  std::shared_ptr<Batch> Join(const tw_model_signature& signature, const std::shared_ptr<Member>& member);
  void Await(const tw_model_signature& signature, const std::shared_ptr<Batch>& batch, Member* member,
             const std::shared_ptr<const void>& owner);
  void Start(const tw_model_signature& signature, const std::shared_ptr<Batch>& batch,
             const std::shared_ptr<const void>& owner);  // REQUIRES: the lock is held
  void Close(Batch* batch);                              // REQUIRES: the lock is held
  void Leave(Batch* batch, Member* member);              // REQUIRES: the lock is held
  void RunBatch(const tw_model_signature& signature, Batch* batch);
  void RunJoined(const tw_model_signature& signature, Batch* batch);
  static void Split(const std::vector<tw::Tensor>& outputs, const std::shared_ptr<const Charge>& charge, Batch* batch);

  const uint64_t most_rows_;
  const std::chrono::microseconds delay_;
  Runners* const runners_;
  const Run run_;
  std::mutex mutex_;                                    // guards the members that follow, and the batches, see Batch
  std::map<std::string, std::shared_ptr<Batch>> open_;  // batches that more requests may join, by what must agree
  std::set<std::string> never_;                         // signatures whose outputs turned out not to have the rows of the inputs
};

}  // namespace thalweg::cli::serve
