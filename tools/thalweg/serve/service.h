// Every request: which protocol answers it, how many may run at once, and what is counted and logged of it.
// Threads: any number of requests.
#pragma once
#include <string>

#include "http_server.h"
#include "metrics.h"
#include "repository.h"
#include "settings.h"

namespace thalweg::cli::serve {

class Service {
 public:
  Service(const Settings& settings, const Repository* repository, Metrics* metrics)
      : settings_(settings), repository_(repository), metrics_(metrics) {}
  Answer Serve(Call& call);  // throws nothing

 private:
  Answer Dispatch(struct ModelCall* call);
  Answer MetricsText() const;

  const Settings settings_;
  const Repository* const repository_;
  Metrics* const metrics_;
};

}  // namespace thalweg::cli::serve
