// ClusterSession: a session whose steps run on the tasks of a cluster. It splits a signature once, tells each task its part, and then a
// step is one request per task. It works in the client's process: any process can be a client, and several may use one cluster. Threads:
// any number of steps at once; Close waits for them. In a child that was forked it does nothing: what it would need is its parent's.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "distributed/clock.h"
#include "distributed/cluster.h"
#include "distributed/gate.h"
#include "distributed/local_tasks.h"
#include "distributed/members.h"
#include "distributed/messenger.h"
#include "distributed/partition.h"
#include "distributed/task_placement.h"
#include "distributed/task_status.h"
#include "framework/base/origin.h"
#include "framework/session/session.h"

namespace thalweg::distributed {

class ClusterStep;

// A signature that all its tasks know.
struct Prepared {
  struct Task {
    int32_t task = 0;
    Destination to;
    std::shared_ptr<LocalTask> here;  // in this program: its steps run without a message; else NULL
    std::string owner;                // of the session, as that task knows it
    uint64_t handle = 0;
    std::vector<int32_t> feeds;
    size_t n_fetches = 0;
    uint64_t opened = 0;  // how often the session was opened there
  };
  std::vector<Task> tasks;
  std::vector<std::pair<int32_t, int32_t>> fetches;  // as in Parts
};

class ClusterSession {
 public:
  // texts: all options, "key=value", for the tasks. Reaches the task at options.target, which must answer within target_timeout_ms.
  // Errors: those of FindTransport; UNAVAILABLE, DEADLINE_EXCEEDED naming the address.
  static StatusOr<std::shared_ptr<ClusterSession>> Create(std::shared_ptr<Graph> graph, const SessionOptions& options,
                                                          std::vector<std::string> texts);
  Graph& graph() const { return *graph_; }
  // As Session::Run. A failure names the task and its address. Errors also: UNAVAILABLE (a task is lost), ABORTED (a task was restarted),
  // FAILED_PRECONDITION in a child that was forked.
  Status Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  // As Session::Start; may block until all tasks know the signature.
  void Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done);
  // Runs work on a thread that may block. FAILED_PRECONDITION if the session is closed.
  Status StartAsync(std::function<void()> work);
  void EndAsync();
  // Steps that run end with CANCELLED. Again: no effect.
  Status Close();
  // Empties a container at every task; empty: the session's. Answers how many things were in it.
  StatusOr<uint64_t> Reset(std::string_view container);
  SessionReport Report() const;

 private:
  friend class ClusterStep;
  // What is known of a task.
  struct TaskState {
    Destination to;  // its incarnation is 0 until it has answered
    std::string version;
    uint32_t features = 0;            // Hello's
    std::string owner;                // of the session, as the task says; empty: it does not
    std::shared_ptr<LocalTask> here;  // if it is in this program
    bool open = false;
    bool forgot = false;     // since the partition was told of it last
    bool beating = false;    // a sign of life is asked for
    uint64_t watch = 0;      // the call
    uint64_t opened = 0;     // how often
    uint64_t announced = 0;  // the incarnation that is alive, says the membership service; 0: it says of none
  };
  using SpecKey = std::vector<uint64_t>;
  ClusterSession(std::shared_ptr<Graph> graph, const SessionOptions& options);
  ~ClusterSession();
  Status CheckOrigin() const;
  Status Connect(std::vector<std::string> texts);
  static Status Closed();
  // What a call that was waited for has brought.
  struct Answered {
    Outcome outcome;
    std::string fields, body;
  };
  struct Waiting;
  std::shared_ptr<Waiting> Ask(const Destination& to, Method method, const WireWriter& fields, Payload body, int64_t deadline);
  Answered Await(Waiting* waiting);
  StatusOr<Hello> Greet(const Destination& to, int64_t deadline, std::string* out_cluster);
  Status Open(int32_t task, int64_t deadline);
  void WatchLocked(int32_t task);  // REQUIRES: mu_, and that the task is open
  StatusOr<std::shared_ptr<const Prepared>> Find(const CallableSpec& spec);
  StatusOr<std::shared_ptr<const Prepared>> Prepare(const CallableSpec& spec);
  // False: a task has forgotten what it was told meanwhile, so that the parts have to be made anew.
  StatusOr<bool> Tell(Parts* parts, int64_t deadline, Prepared* to);
  void AddRoutes(Part* part) const;
  StatusOr<bool> OpenAll(const Parts& parts, int64_t deadline);
  void DropForgotten();
  // Keeps the signature, and lets go of those that were not used for longest where they are too many.
  void Keep(const CallableSpec& spec, std::shared_ptr<const Prepared> prepared);
  // REQUIRES: mu_. NULL: it is not prepared.
  std::shared_ptr<const Prepared> FindLocked(const CallableSpec& spec);
  // The task knows nothing of the session any more.
  void Lose(int32_t task);
  // REQUIRES: mu_. Answers the call that watches the task, which is to be cancelled; 0: none.
  uint64_t LoseLocked(int32_t task);
  void TaskFailed(int32_t task, const Status& why);
  Status WatchMembers();
  void MemberChanged(uint64_t watch, const TaskId& id, uint64_t incarnation);
  int64_t BeatEvery() const;
  void Beat();
  void AnswerOfBeat(int32_t task, uint64_t opened, const Reply& reply);
  void LookAt(int32_t task, std::string_view body);
  static SpecKey KeyOf(const CallableSpec& spec);
  // Gives the step its number.
  void Enter(const std::shared_ptr<ClusterStep>& step);
  void Leave(uint64_t step);
  // A step is over for its caller, and the task has not answered: its part there may still change state. REQUIRES: before `done`.
  void PartGoesOn(const Prepared::Task& t, uint64_t step);
  void PartEnded(int32_t task, uint64_t step);
  // Calls f once there is no such part any more, or the task is lost. False: there is none, and f is not called.
  bool WhenEnded(int32_t task, std::function<void()> f);
  void GoOn(int32_t task);
  // The session is still open there as it was when the signature was registered.
  bool Knows(const Prepared::Task& t) const;
  bool KnowsLocked(const Prepared::Task& t) const;  // REQUIRES: mu_

  const Origin origin_;
  const std::shared_ptr<Graph> graph_;
  const SessionOptions options_;
  const uint64_t id_;
  std::string scheme_;
  std::vector<std::string> texts_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Messenger> messenger_;
  const std::shared_ptr<LocalTasks> locals_;
  const std::shared_ptr<Gate> answers_;  // of local tasks come in by it
  ClusterSpec cluster_;
  std::unique_ptr<Membership> membership_;  // who tells which tasks are alive; NULL: nobody
  std::mutex prepare_mu_;                   // before mu_; what prepares
  std::unique_ptr<TaskPlacement> placement_;
  std::unique_ptr<Partition> partition_;
  mutable std::mutex mu_;
  std::condition_variable idle_;
  bool closed_ = false, beating_ = false;
  uint64_t steps_ = 0, async_ = 0;
  std::vector<TaskState> tasks_;
  uint64_t member_watches_ = 0;  // so many there were; what is told by all but the last is old
  struct Kept {
    std::shared_ptr<const Prepared> prepared;
    uint64_t used = 0;  // when last
  };
  std::map<SpecKey, Kept> prepared_;
  uint64_t uses_ = 0;
  std::map<uint64_t, std::shared_ptr<ClusterStep>> running_;
  struct Unended {
    std::set<uint64_t> steps;
    std::vector<std::function<void()>> waiting;
  };
  std::map<int32_t, Unended> unended_;  // by task
};

}  // namespace thalweg::distributed
