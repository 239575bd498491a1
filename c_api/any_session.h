// One interface to a session of this process or of a cluster, for the shims.
// Threads: as the session's.
#pragma once
#include <functional>
#include <memory>
#include <string_view>

#include "distributed/cluster_session.h"
#include "framework/base/status.h"
#include "framework/session/partial_run.h"
#include "framework/session/session.h"

namespace thalweg {

// Exactly one of `local` and `cluster` is set.
struct AnySession {
  std::shared_ptr<Session> local;
  std::shared_ptr<distributed::ClusterSession> cluster;

  Status StartAsync(std::function<void()> work) const {
    return cluster ? cluster->StartAsync(std::move(work)) : local->StartAsync(std::move(work));
  }
  void EndAsync() const { cluster ? cluster->EndAsync() : local->EndAsync(); }
  Status Close() const { return cluster ? cluster->Close() : local->Close(); }
  StatusOr<uint64_t> Reset(std::string_view container) const { return cluster ? cluster->Reset(container) : local->Reset(container); }
  SessionReport Report() const { return cluster ? cluster->Report() : local->Report(); }
  Status Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) const;
  void Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done) const;
  StatusOr<std::unique_ptr<PartialRun>> StartInParts(const CallableSpec& whole) const;
  // Returns UNIMPLEMENTED, naming `what`, unless the session is local.
  Status NeedLocal(std::string_view what) const;
};

}  // namespace thalweg
