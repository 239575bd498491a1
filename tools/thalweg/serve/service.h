// Every request: which protocol answers it, how many may run at once, and what is counted and logged of it.
// Threads: any number of requests.
#pragma once
#include <atomic>
#include <string>

#include "call.h"
#include "metrics.h"
#include "repository.h"
#include "settings.h"

namespace thalweg::cli::serve {

class Service {
 public:
  // budget: that of the calls, for the metrics. All pointers outlive the service.
  Service(const Settings& settings, const Repository* repository, const RequestBudget* budget, Metrics* metrics);
  Answer Serve(Call& call);  // throws nothing

 private:
  Answer Dispatch(struct ModelCall* call);
  Answer Guarded(struct ModelCall* call, std::string* error);
  Answer MetricsText() const;
  std::string RequestId(const Call& call);
  std::string AllowedOrigin(const Call& call) const;

  const Settings settings_;
  const Repository* const repository_;
  const RequestBudget* const budget_;
  Metrics* const metrics_;
  const std::string id_prefix_;  // of this server's own request ids
  std::atomic<uint64_t> ids_{0};
};

}  // namespace thalweg::cli::serve
