// ClusterSession: a session whose steps run on the tasks of a cluster. It splits a signature once
// and tells each task its part; then a step is one request per task. It lives in the client's
// process: any process can be a client, and several clients may use one cluster. Threads: any
// number of steps at once; Close waits for them. In a forked child it does nothing, since its
// threads and connections belong to the parent.
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

// A signature that all its tasks have registered.
struct Prepared {
  struct Task {
    int32_t task = 0;
    Destination to;
    std::shared_ptr<LocalTask> here;  // set if the task is in this program: its steps run without a message; else NULL
    std::string owner;                // owner of the session, as that task names it
    uint64_t handle = 0;
    std::vector<int32_t> feeds;
    size_t n_fetches = 0;
    uint64_t opened = 0;  // how often the session had been opened there
  };
  std::vector<Task> tasks;
  std::vector<std::pair<int32_t, int32_t>> fetches;  // as in Parts
};

class ClusterSession {
 public:
  // texts: all options, "key=value", for the tasks. Connects to the task at options.target, which
  // must answer within target_timeout_ms. Errors: those of FindTransport; UNAVAILABLE,
  // DEADLINE_EXCEEDED naming the address.
  static StatusOr<std::shared_ptr<ClusterSession>> Create(std::shared_ptr<Graph> graph, const SessionOptions& options,
                                                          std::vector<std::string> texts);
  Graph& graph() const { return *graph_; }
  // Same as Session::Run. A failure names the task and its address. Further errors: UNAVAILABLE (a
  // task is lost), ABORTED (a task was restarted), FAILED_PRECONDITION in a forked child.
  Status Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  // Same as Session::Start; may block until all tasks have registered the signature.
  void Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done);
  // Runs work on a thread that may block. FAILED_PRECONDITION if the session is closed.
  Status StartAsync(std::function<void()> work);
  void EndAsync();
  // Ends running steps with CANCELLED. A second call has no effect.
  Status Close();
  // Empties a container at every task; an empty name means the session's container. Returns the
  // number of resources in it.
  StatusOr<uint64_t> Reset(std::string_view container);
  SessionReport Report() const;

 private:
  friend class ClusterStep;
  // The client's view of a task.
  struct TaskState {
    Destination to;  // its incarnation is 0 until the task has answered
    std::string version;
    uint32_t features = 0;            // of Hello
    std::string owner;                // owner of the session, as the task names it; empty if it does not
    std::shared_ptr<LocalTask> here;  // set if it is in this program
    bool open = false;
    bool forgot = false;     // it was lost since the partition last learned of it
    bool beating = false;    // a heartbeat request is under way
    uint64_t watch = 0;      // the name of the watch call
    uint64_t opened = 0;     // how often the session was opened there
    uint64_t announced = 0;  // the live incarnation according to the membership service; 0 if the service does not list the task
  };
  using SpecKey = std::vector<uint64_t>;
  ClusterSession(std::shared_ptr<Graph> graph, const SessionOptions& options);
  ~ClusterSession();
  Status CheckOrigin() const;
  Status Connect(std::vector<std::string> texts);
  static Status Closed();
  // The answer to a call that was waited for.
  struct Answered {
    Outcome outcome;
    std::string fields, body;
  };
  struct Waiting;
  std::shared_ptr<Waiting> Ask(const Destination& to, Method method, const WireWriter& fields, Payload body, int64_t deadline);
  Answered Await(Waiting* waiting);
  StatusOr<Hello> Greet(const Destination& to, int64_t deadline, std::string* out_cluster);
  Status Open(int32_t task, int64_t deadline);
  void WatchLocked(int32_t task);  // REQUIRES: mu_, and the task is open
  StatusOr<std::shared_ptr<const Prepared>> Find(const CallableSpec& spec);
  StatusOr<std::shared_ptr<const Prepared>> Prepare(const CallableSpec& spec);
  // Returns false if a task has meanwhile lost what it was told, so the parts have to be made anew.
  StatusOr<bool> Tell(Parts* parts, int64_t deadline, Prepared* to);
  void AddRoutes(Part* part) const;
  StatusOr<bool> OpenAll(const Parts& parts, int64_t deadline);
  void DropForgotten();
  // Stores the signature, and drops the least recently used ones if there are too many. Returns false,
  // and stores nothing, if a task has forgotten the signature meanwhile.
  bool Keep(const CallableSpec& spec, const std::shared_ptr<const Prepared>& prepared);
  // Tells the tasks that hold signatures of `lapsed_` to forget them, except for signatures that a
  // step still has.
  void ForgetLapsed();
  // REQUIRES: mu_. Returns NULL if the signature is not prepared.
  std::shared_ptr<const Prepared> FindLocked(const CallableSpec& spec);
  // Marks the task as knowing nothing of the session.
  void Lose(int32_t task);
  // REQUIRES: mu_. Returns the call that watches the task, which the caller has to cancel; 0 if
  // there is none.
  uint64_t LoseLocked(int32_t task);
  void TaskFailed(int32_t task, const Status& why);
  Status WatchMembers();
  void MemberChanged(uint64_t watch, const TaskId& id, uint64_t incarnation);
  int64_t BeatEvery() const;
  void Beat();
  void AnswerOfBeat(int32_t task, uint64_t opened, const Reply& reply);
  void LookAt(int32_t task, std::string_view body);
  static SpecKey KeyOf(const CallableSpec& spec);
  // Assigns the step its number.
  void Enter(const std::shared_ptr<ClusterStep>& step);
  void Leave(uint64_t step);
  // Records that a step has ended for its caller before the task answered: its part there may still
  // change state. REQUIRES: called before `done`.
  void PartGoesOn(const Prepared::Task& t, uint64_t step);
  void PartEnded(int32_t task, uint64_t step);
  // Calls f once no such part remains or the task is lost. Returns false, without calling f, if
  // there is no such part now.
  bool WhenEnded(int32_t task, std::function<void()> f);
  void GoOn(int32_t task);
  // Returns true if the session is still open there as it was when the signature was registered.
  bool Knows(const Prepared::Task& t) const;
  bool KnowsLocked(const Prepared::Task& t) const;  // REQUIRES: mu_

  const Origin origin_;
  const std::shared_ptr<Graph> graph_;
  const SessionOptions options_;
  std::shared_ptr<Profilers> profilers_;  // NULL: the session has none
  const uint64_t id_;
  std::string scheme_;
  std::vector<std::string> texts_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Messenger> messenger_;
  const std::shared_ptr<LocalTasks> locals_;
  const std::shared_ptr<Gate> answers_;  // entered by answers of local tasks
  ClusterSpec cluster_;
  std::unique_ptr<Membership> membership_;  // tells which tasks are alive; NULL if there is no such service
  std::mutex prepare_mu_;                   // taken before mu_; guards the preparation of signatures
  std::unique_ptr<TaskPlacement> placement_;
  std::unique_ptr<Partition> partition_;
  mutable std::mutex mu_;
  std::condition_variable idle_;
  bool closed_ = false, beating_ = false;
  uint64_t steps_ = 0, async_ = 0;
  std::vector<TaskState> tasks_;
  uint64_t member_watches_ = 0;  // number of watches so far; only reports of the last one count
  struct Kept {
    std::shared_ptr<const Prepared> prepared;
    uint64_t used = 0;  // time of the last use
  };
  std::map<SpecKey, Kept> prepared_;
  // Signatures that left `prepared_` and that tasks may still hold: they were evicted, or one of
  // their other tasks was lost. A task must not forget a signature while a step has it, because that
  // step would fail with NOT_FOUND instead of the cause.
  std::vector<std::shared_ptr<const Prepared>> lapsed_;
  uint64_t uses_ = 0;
  std::map<uint64_t, std::shared_ptr<ClusterStep>> running_;
  struct Unended {
    std::set<uint64_t> steps;
    std::vector<std::function<void()>> waiting;
  };
  std::map<int32_t, Unended> unended_;  // by task
};

}  // namespace thalweg::distributed
