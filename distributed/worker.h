// Worker: what a process of a cluster does for clients. It keeps, for each of their sessions, a graph that grows by the pieces that it is
// sent, and a session of the framework over it; a signature is registered once, and a step of it is one request.
// Threads: any. Requests are served without blocking: what may take long runs on threads of the runtime's.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "distributed/cluster.h"
#include "distributed/messenger.h"
#include "distributed/piece.h"
#include "distributed/step_meeting.h"
#include "distributed/task_status.h"
#include "framework/runtime/runtime.h"
#include "framework/session/options.h"

namespace thalweg::distributed {

struct WorkerOptions : PeerLimits {
  bool trust_clients = false;  // their nodes may do what the program's own may
  std::string allow_files;     // a folder, beneath which they may read and write files; empty: none
  uint32_t max_sessions = 1000;
  uint32_t max_client_sessions = 250;
};

class Worker {
 public:
  // cluster: whose tasks values of steps may come from and go to; it outlives the worker. others_tell: somebody else tells clients which
  // tasks are no longer alive, and the transport which are out of reach; then none is asked.
  Worker(std::shared_ptr<Runtime> runtime, WorkerOptions options, const ClusterSpec* cluster, const Channels& channels,
         std::function<bool()> others_tell);
  ~Worker();
  // kOpen to kForget but kReceive.
  void Serve(const RequestHead& head, std::shared_ptr<Incoming> request);
  // kRun, or kWatchedRun, for a session of the request's peer. A step that does little is run here, maybe to its end.
  void Run(const RunRequest& m, bool watched, std::shared_ptr<Incoming> request);
  // No new sessions and steps; those that run end with UNAVAILABLE. Returns when nothing of them is under way.
  void Close();
  uint64_t steps() const;     // that were begun
  uint64_t sessions() const;  // that are open
  // Steps that run, of one session, or, with 0, of all; what came from whom. role: of the asker, TW_PEER_*; a client sees its own sessions
  // only, others all of them, but what a step waits for is told to who opened its session.
  void Look(uint64_t session, const std::string& asker, uint32_t role, TaskStatus* to) const;

 private:
  struct OpenJob;
  struct Signature;
  struct StepRun;
  struct ClientSession;
  using Answer = StatusOr<std::string>;
  // Runs f, which answers a head, on a thread that may block, and answers the request.
  void Later(PeerAccount* account, std::shared_ptr<Incoming> request, std::function<Answer()> f);
  void Job(BlockingLine::Guest* line, std::function<void()> f);
  std::shared_ptr<ClientSession> Find(const SessionName& name) const;
  Status CheckRoom(const std::string& owner, uint32_t role) const;
  Answer Open(const OpenRequest& m, const Incoming& request);
  Answer Reset(const ResetRequest& m);
  Answer Register(const SessionName& name, std::string_view piece);
  Status AddSignature(const PieceMessage& piece, ClientSession* session, std::shared_ptr<Signature>* out);
  // PERMISSION_DENIED for an address that is no task's of the cluster.
  Status CheckTask(std::string_view key, const std::string& address) const;
  void Watch(const SessionName& name, std::shared_ptr<Incoming> request);
  void Go(const std::shared_ptr<StepRun>& run);
  static Status PutFetches(const StepRun& run, Meter* paid, WireWriter* body);
  void End(const std::shared_ptr<StepRun>& run, Status s);
  Status Abort(const SessionName& name, const AbortRequest& m);
  void CloseSession(std::shared_ptr<ClientSession> session, const Status& why);
  void CloseUnwatched(const SessionName& name);
  // Signs of life of those whose values steps here wait for.
  std::vector<std::shared_ptr<StepRun>> AllRuns() const;
  void Beat();
  void AnswerOfBeat(const ProcessName& who, const Status& s);

  const std::shared_ptr<Runtime> runtime_;
  const WorkerOptions options_;
  const ClusterSpec* const cluster_;
  const Channels channels_;
  const std::function<bool()> others_tell_;
  Traffic traffic_;
  mutable std::mutex mu_;
  std::condition_variable idle_;
  bool closing_ = false, beating_ = false;
  std::set<ProcessName> asked_;  // peers that a sign of life is asked of
  uint64_t jobs_ = 0, steps_ = 0, handles_ = 0;
  std::map<SessionName, std::shared_ptr<ClientSession>> sessions_;
  std::multiset<SessionName> ending_;                    // sessions that are closed, of which steps still run
  std::map<std::string, std::weak_ptr<LentTime>> lent_;  // by owner, in each second
};

}  // namespace thalweg::distributed
