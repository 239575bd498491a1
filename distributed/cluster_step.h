// ClusterStep: one step over several tasks, as its client sees it: a request to each task, and its
// outcome. The first failure that is not the consequence of another one is the step's; all tasks
// are told of it. Threads: any; the pending calls keep it alive.
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
  // done: called once, on the thread that ends the step.
  ClusterStep(ClusterSession* session, std::shared_ptr<const Prepared> prepared, int64_t deadline, const CancelToken* cancel,
              std::function<void(Status)> done);
  // `feeds` are read before this returns. trace: for a run whose statistics are wanted, which began
  // at `began`; else NULL.
  void Begin(const Tensor* feeds, StepTrace* trace = nullptr, int64_t began = 0);
  // After the end of such a run, returns the statistics of the tasks that finished their parts.
  std::vector<StatsPart> TakeStats();
  uint64_t id() const { return id_; }
  // Ends the step, unless it has ended. task: the task that failed; -1 for the client itself. now:
  // do not wait for reports of the tasks.
  void Fail(const Outcome& why, bool now);
  // Handles a task that is lost or was restarted.
  void TaskFailed(int32_t task, const Status& why);
  bool Uses(int32_t task) const;
  // Takes the report of a live task on the step. If all unfinished tasks have made no progress for
  // `bound` nanoseconds, the step fails, naming a task that waits for no other.
  void Look(int32_t task, const RunStatus& status, int64_t bound);
  // After success: fetches by part.
  std::vector<Tensor>& results(size_t part) { return parts_[part].results; }
  const Prepared& prepared() const { return *prepared_; }

 private:
  friend class ClusterSession;
  // Sends the part once no failed earlier step is at work on that task.
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
  struct PartState {
    bool sent = false;
    bool answered = false;  // or given up before it was sent
    bool waits = false;     // if it makes no progress: it waits for another part
    std::string stuck;      // the message if it makes no progress; else empty
    std::vector<Tensor> results;
    int64_t asked_at = 0, answered_at = 0;  // of a step with statistics
    std::string stats;
  };
  std::vector<PartState> parts_;  // as prepared_->tasks
  size_t open_ = 0;
  int64_t began_ = 0;
  uint64_t id_ = 0, oldest_ = 0, timer_ = 0;
  Outcome failure_;
  bool over_ = false;
};

}  // namespace thalweg::distributed
