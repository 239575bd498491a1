// SandboxHost: runs the graphs of a task's clients in processes of their own, in place of a Worker.
// It forwards requests to the process of their client, and answers back, without parsing either. A
// proven client has one process for all its sessions. Sessions of other peers cannot be attributed,
// so each has its own process. A process ends with its last session.
// Threads: any. Serve does not block.
#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/messenger.h"
#include "distributed/sandbox/process.h"
#include "framework/runtime/runtime.h"

namespace thalweg::distributed {

class SandboxHost {
 public:
  SandboxHost(std::shared_ptr<Runtime> runtime, SandboxSettings settings, uint64_t largest, uint32_t most_sessions, Clock* clock);
  ~SandboxHost();
  // Starts the first process, which waits for a client: this checks now what the machine allows.
  // Blocks. Errors: those of SandboxProcess::Start.
  Status Start();
  // Serves the methods from kOpen to kForget, and refuses kReceive and kPush.
  void Serve(const RequestHead& head, std::shared_ptr<Incoming> request);
  // Ends all processes; their steps end with UNAVAILABLE. Returns when the processes are gone.
  void Close();
  uint64_t steps() const;
  const std::string& in_force() const { return in_force_; }  // human-readable; REQUIRES: Start succeeded
  uint64_t sessions() const;

 private:
  struct Ward;
  struct Job;
  struct Body;
  void Later(std::function<void()> f);
  void Later(std::shared_ptr<Job> job, std::function<void()> f);
  StatusOr<std::unique_ptr<SandboxProcess>> TakeProcess();
  void MakeSpare();
  void Open(const std::string& key, uint64_t session, std::shared_ptr<Incoming> request);
  void Begin(const std::shared_ptr<Ward>& ward);
  std::shared_ptr<Body> Forward(const std::shared_ptr<Ward>& ward, std::shared_ptr<Incoming> request);
  void Await(const std::shared_ptr<Ward>& ward, const Body& body);
  void Answered(const std::shared_ptr<Ward>& ward, const std::shared_ptr<Incoming>& request, const Reply& reply,
                const std::shared_ptr<Body>& body);
  void Overrun(const std::shared_ptr<Ward>& ward);
  void SessionEnded(const std::shared_ptr<Ward>& ward, uint64_t session);
  void CheckWatched(const std::shared_ptr<Ward>& ward, uint64_t session);
  void Lost(const std::shared_ptr<Ward>& ward, std::shared_ptr<Incoming> request, const Status& how);
  void Retire(const std::shared_ptr<Ward>& ward, Status why);
  void End(const std::shared_ptr<Ward>& ward);

  const std::shared_ptr<Runtime> runtime_;
  const SandboxSettings settings_;
  const uint64_t largest_;
  const uint32_t most_sessions_;
  Clock* const clock_;
  std::string in_force_;  // set by Start
  mutable std::mutex mu_;
  std::condition_variable idle_;
  bool closing_ = false, making_spare_ = false;
  uint64_t jobs_ = 0, steps_ = 0;
  const Ward* last_ward_ = nullptr;  // the ward of the last step; only compared
  int64_t others_at_ = 0;            // time of the last step whose ward differed from that of the step before
  std::unique_ptr<SandboxProcess> spare_;
  std::map<std::string, std::shared_ptr<Ward>> wards_;  // by client
};

}  // namespace thalweg::distributed
