// Worker: serves clients in a process of a cluster. For each of their sessions it keeps a graph,
// which grows by the pieces that clients send, and a framework session over it. A signature is
// registered once; then a step of it is one request.
// Threads: any. Requests are served without blocking; long work runs on threads of the runtime.
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
#include "distributed/leases.h"
#include "distributed/messenger.h"
#include "distributed/piece.h"
#include "distributed/step_meeting.h"
#include "distributed/task_status.h"
#include "framework/runtime/runtime.h"
#include "framework/session/options.h"

namespace thalweg::distributed {

struct WorkerOptions : PeerLimits {
  bool trust_clients = false;  // clients' nodes may do whatever the program's own nodes may
  std::string allow_files;     // a folder beneath which clients may read and write files; empty for none
  uint32_t max_sessions = 1000;
  uint32_t max_client_sessions = 250;
};

class Worker {
 public:
  // cluster: its tasks may send and receive values of steps; it outlives the worker. others_tell:
  // returns true if a service tells clients which tasks are dead and the transport which are out of
  // reach; the worker then sends no heartbeats.
  Worker(std::shared_ptr<Runtime> runtime, WorkerOptions options, const ClusterSpec* cluster, const Channels& channels,
         std::function<bool()> others_tell);
  ~Worker();
  // Handles the methods from kOpen to kForget except kReceive.
  void Serve(const RequestHead& head, std::shared_ptr<Incoming> request);
  // Handles kRun or kWatchedRun for a session of the request's peer. A light step runs inside this
  // call, possibly to its end.
  void Run(const RunRequest& m, bool watched, std::shared_ptr<Incoming> request);
  // Refuses new sessions and steps and ends running ones with UNAVAILABLE. Returns when nothing is
  // under way.
  void Close();
  uint64_t steps() const;     // begun so far
  uint64_t sessions() const;  // open now
  // Reports the running steps of one session, or of all if `session` is 0, and the traffic. role:
  // of the asker, TW_PEER_*. A client sees only its own sessions, other peers see all; but only the
  // owner of a session sees what a step waits for.
  void Look(uint64_t session, const std::string& asker, uint32_t role, TaskStatus* to) const;

 private:
  struct OpenJob;
  struct Signature;
  struct StepRun;
  struct ClientSession;
  using Answer = StatusOr<std::string>;
  // Runs f, which returns a head, on a thread that may block, and answers the request.
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
  // Heartbeats of the peers whose values steps here wait for.
  std::vector<std::shared_ptr<StepRun>> AllRuns() const;
  void Beat();
  void AnswerOfBeat(const ProcessName& who, const Status& s);

  const std::shared_ptr<Runtime> runtime_;
  const WorkerOptions options_;
  const ClusterSpec* const cluster_;
  const Channels channels_;
  const std::function<bool()> others_tell_;
  const std::shared_ptr<Leases> leases_;
  Traffic traffic_;
  mutable std::mutex mu_;
  std::condition_variable idle_;
  bool closing_ = false, beating_ = false;
  std::set<ProcessName> asked_;  // peers with a heartbeat request under way
  uint64_t jobs_ = 0, steps_ = 0, handles_ = 0;
  std::map<SessionName, std::shared_ptr<ClientSession>> sessions_;
  std::multiset<SessionName> ending_;                    // closed sessions of which steps still run
  std::map<std::string, std::weak_ptr<LentTime>> lent_;  // by owner; renewed every second while steps run
};

}  // namespace thalweg::distributed
