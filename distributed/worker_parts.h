// The parts of a Worker: sessions of clients, their signatures, and running steps. For worker.cc
// and worker_steps.cc.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "distributed/step_meeting.h"
#include "distributed/step_set.h"
#include "distributed/worker.h"
#include "framework/session/session.h"

namespace thalweg::distributed {

struct Worker::Signature {
  explicit Signature(std::shared_ptr<LentTime> of_owner) : lent(std::make_shared<LentTime>(std::move(of_owner))) {}
  Meter held;  // for the signature itself; declared first, so destroyed last
  std::unique_ptr<Callable> callable;
  std::shared_ptr<const Routes> routes;
  // Returns true if a run may begin and continue on the transport's threads: its plan is light, and
  // its last runs took little time there.
  bool IsLight() const { return light.load(std::memory_order_relaxed) && !lent->over(); }
  void Ran();
  // Steps share only this: a signature must not outlive its session, but a step's meeting may.
  const std::shared_ptr<LentTime> lent;
  std::atomic<bool> light{false};
  std::atomic<uint32_t> runs{0};
};

// The state of a client. Open and Register, one at a time, set all members but `steps` and
// `aborted`.
struct Worker::ClientSession {
  SessionName name;  // its owner is the client that opened it; nobody else has access
  std::shared_ptr<PeerAccount> account;
  Meter held;                            // for the session itself; declared before what it pays for, so destroyed after
  Meter graph_held;                      // for the graph; guarded by register_mu
  std::shared_ptr<LentTime> lent;        // of all sessions of a proven client; else NULL
  std::unique_ptr<Leases::Hold> leases;  // NULL without any; set once, and ended when no step of the session runs
  std::shared_ptr<Graph> graph;
  std::unique_ptr<Session> session;  // declared after the graph; closed before `signatures` is cleared
  std::mutex register_mu;
  std::mutex mu;  // guards the rest
  std::map<uint64_t, std::shared_ptr<Signature>> signatures;
  std::map<uint64_t, std::shared_ptr<StepRun>> steps;
  Meter steps_held;     // for the two sets of steps
  EndedSteps aborted;   // by other processes, whether they had begun here or not
  uint64_t oldest = 0;  // the oldest step that has not ended everywhere
  StepSet begun;        // begun steps from `oldest` on: none is begun again
  std::shared_ptr<Incoming> watch;
  bool closed = false;
  void ForgetSteps();
};

// A job that the worker's end waits for.
struct Worker::OpenJob {
  explicit OpenJob(Worker* w) : worker(w) {
    std::lock_guard lock(worker->mu_);
    ++worker->jobs_;
  }
  ~OpenJob() {
    std::lock_guard lock(worker->mu_);
    if (--worker->jobs_ == 0) worker->idle_.notify_all();
  }
  Worker* const worker;
};

struct Worker::StepRun {
  explicit StepRun(Worker* worker) : job(worker) {}
  const OpenJob job;  // declared first: the rest is destroyed while the worker's parts exist
  std::shared_ptr<ClientSession> session;
  std::shared_ptr<Signature> signature;
  std::shared_ptr<StepMeeting> meeting;
  std::shared_ptr<Incoming> request;
  uint64_t step = 0;
  int64_t begun = 0, deadline = 0;
  CancelToken cancel;
  std::unique_ptr<StepStats> stats;  // NULL if no statistics are wanted
  std::vector<Tensor> feeds, fetches;

  void Abort(const Status& why, bool consequence) {
    meeting->Abort(why, consequence);
    cancel.Cancel();
  }
};

// The session is not known here, or does not belong to the asker.
Status NoSession(const SessionName& name);

}  // namespace thalweg::distributed
