// What a Worker is made of: sessions of clients, their signatures, and steps that run. For worker.cc and worker_steps.cc.
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
  Meter held;  // for the signature itself; first: it goes last
  std::unique_ptr<Callable> callable;
  std::shared_ptr<const Routes> routes;
  // A run does so little that it may begin, and go on, on the threads of the transport. By its plan, and by what the last runs took there.
  bool IsLight() const { return light.load(std::memory_order_relaxed) && !lent->over(); }
  void Ran();
  // Steps share this alone: a signature must not outlive its session, and a step's meeting may.
  const std::shared_ptr<LentTime> lent;
  std::atomic<bool> light{false};
  std::atomic<uint32_t> runs{0};
};

// What a client has here. Its members but for `steps` and `aborted` are set by Open and Register, one at a time.
struct Worker::ClientSession {
  SessionName name;  // its owner is who opened it; nobody else has it
  std::shared_ptr<PeerAccount> account;
  Meter held;                      // for the session itself; before what it pays for: that goes first
  Meter graph_held;                // for the graph; guarded by register_mu
  std::shared_ptr<LentTime> lent;  // of all sessions of its owner, if that has proven that it is a client; else NULL
  std::shared_ptr<Graph> graph;
  std::unique_ptr<Session> session;  // after the graph, before the signatures' end
  std::mutex register_mu;
  std::mutex mu;  // the rest
  std::map<uint64_t, std::shared_ptr<Signature>> signatures;
  std::map<uint64_t, std::shared_ptr<StepRun>> steps;
  Meter steps_held;     // for the two sets of steps
  EndedSteps aborted;   // by others, whether they were begun or not
  uint64_t oldest = 0;  // that is not over everywhere
  StepSet begun;        // steps from there on: none is begun again
  std::shared_ptr<Incoming> watch;
  bool closed = false;
  void ForgetSteps();
};

// Something that the worker's end waits for.
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
  const OpenJob job;  // first: the rest goes while the worker's parts are there
  std::shared_ptr<ClientSession> session;
  std::shared_ptr<Signature> signature;
  std::shared_ptr<StepMeeting> meeting;
  std::shared_ptr<Incoming> request;
  uint64_t step = 0;
  int64_t begun = 0, deadline = 0;
  CancelToken cancel;
  std::unique_ptr<StepStats> stats;  // NULL: nobody watches
  std::vector<Tensor> feeds, fetches;

  void Abort(const Status& why, bool consequence) {
    meeting->Abort(why, consequence);
    cancel.Cancel();
  }
};

// The session is not known here, or not to who asks.
Status NoSession(const SessionName& name);

}  // namespace thalweg::distributed
