// ClusterStep: one step over several tasks, as its client sees it: a request to each task, and what becomes of them. The first failure that
// does not follow from another one is the step's; all tasks are told of it. Threads: any; held by the calls that are under way.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/cluster_session.h"
#include "distributed/stats_wire.h"

namespace thalweg::distributed {

class ClusterStep final : public std::enable_shared_from_this<ClusterStep> {
 public:
  // done: called once, on whatever thread brings the end.
  ClusterStep(ClusterSession* session, std::shared_ptr<const Prepared> prepared, int64_t deadline, const CancelToken* cancel,
              std::function<void(Status)> done);
  // feeds are read before this returns. trace: of a run whose statistics are wanted, which began at that time; else NULL.
  void Begin(const Tensor* feeds, StepTrace* trace = nullptr, int64_t began = 0);
  // After the end, of one whose statistics were wanted: what the tasks that came to theirs did.
  std::vector<StatsPart> TakeStats();
  uint64_t id() const { return id_; }
  // Ends all of it, unless it is over. task: whose failure it is; -1: the client's own. now: without waiting for what the tasks say.
  void Fail(const Outcome& why, bool now);
  // A task is lost, or was restarted.
  void TaskFailed(int32_t task, const Status& why);
  bool Uses(int32_t task) const;
  // What a task that is alive says of the step: where all that are not done have stood still for `bound` nanoseconds, it fails, naming one
  // that waits for no other.
  void Look(int32_t task, const RunStatus& status, int64_t bound);
  // After a good end: fetch k.
  std::vector<std::vector<Tensor>>& results() { return results_; }
  const Prepared& prepared() const { return *prepared_; }

 private:
  friend class ClusterSession;
  // Once nothing is at work there that failed earlier.
  void SendInTurn(size_t part, Payload body);
  void Send(size_t part, Payload body);
  void Ask(size_t part, const RunRequest& m, Payload body);
  void RunHere(size_t part, const RunRequest& m, Payload body);
  void Answered(size_t part, const Reply& reply);
  Status TakeCarried(std::string_view carried);
  StatusOr<std::vector<Tensor>> TakeAnswer(size_t part, const Reply& reply);
  void Tick();
  void Finish();
  std::string StillOut() const;

  ClusterSession* const session_;
  const std::shared_ptr<const Prepared> prepared_;
  const int64_t deadline_;
  const CancelToken* cancel_;
  std::mutex mu_;
  std::function<void(Status)> done_;
  std::vector<bool> sent_, answered_;  // answered: or given up before it was sent
  std::vector<std::string> stuck_;     // per task: what is said of one that stands still; empty: it does not
  std::vector<bool> waits_;            // of those: for another
  std::vector<std::vector<Tensor>> results_;
  struct Watched {
    int64_t asked = 0, answered = 0;
    std::string bytes;
  };
  std::vector<Watched> watched_;  // per task
  size_t open_ = 0;
  int64_t began_ = 0;
  uint64_t id_ = 0, oldest_ = 0, timer_ = 0;
  Outcome failure_;
  bool over_ = false;
};

}  // namespace thalweg::distributed
