// SandboxHost: the clients of a task whose graphs run in processes of their own. It stands where a Worker would: requests go to the process
// of their client, answers come back, neither is looked into. Who has proven to be a client has one process for all its sessions; of others
// nobody can tell which belong together, so each session has its own. The process ends with its last session.
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
  // Makes the first process, which waits for a client: so it is found out now what this machine allows. Blocks. Errors: those of
  // SandboxProcess::Start.
  Status Start();
  // kOpen to kForget, and kReceive and kPush, which are refused.
  void Serve(const RequestHead& head, std::shared_ptr<Incoming> request);
  // Ends all processes; what runs there ends with UNAVAILABLE. Returns when they are gone.
  void Close();
  uint64_t steps() const;
  const std::string& in_force() const { return in_force_; }  // for people; REQUIRES: Start was good
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
  const Ward* last_ward_ = nullptr;  // whose step came last; to compare
  int64_t others_at_ = 0;            // when a step last came of another one than the step before it
  std::unique_ptr<SandboxProcess> spare_;
  std::map<std::string, std::shared_ptr<Ward>> wards_;  // by client
};

}  // namespace thalweg::distributed
