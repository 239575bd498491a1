#include "log.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include <grpc/support/log.h>

namespace thalweg::grpc_transport {
namespace {

// gRPC has one log per process.
struct Listeners {
  std::mutex mu;
  std::vector<std::weak_ptr<Log>> all;
};
Listeners& TheListeners() {
  static auto* listeners = new Listeners;  // gRPC's threads outlive static objects
  return *listeners;
}

void Hear(gpr_log_func_args* said) {
  if (!std::strstr(said->message, "andshak")) return;
  std::vector<std::shared_ptr<Log>> all;
  {
    Listeners& listeners = TheListeners();
    std::lock_guard lock(listeners.mu);
    for (auto& weak : listeners.all) {
      if (auto log = weak.lock()) all.push_back(std::move(log));
    }
  }
  for (auto& log : all) log->Warn(std::string("a peer was turned away: ") + said->message);
}

}  // namespace

void Log::Warn(const std::string& text) {
  std::string line = "grpc transport: " + text;
  {
    std::lock_guard lock(mu_);
    const auto now = std::chrono::steady_clock::now();
    if (any_ && now - last_ < std::chrono::seconds(5)) {
      ++left_out_;
      return;
    }
    if (left_out_) line += " (and " + std::to_string(left_out_) + " more before)";
    any_ = true;
    last_ = now;
    left_out_ = 0;
  }
  std::lock_guard lock(host_mu_);
  if (h_) h_->run->log(h_, 2, line.data(), line.size());
}

void Log::Close() {
  std::lock_guard lock(host_mu_);
  h_ = nullptr;
}

void TellOfHandshakes(const std::shared_ptr<Log>& log) {
  Listeners& listeners = TheListeners();
  std::lock_guard lock(listeners.mu);
  std::erase_if(listeners.all, [](const std::weak_ptr<Log>& weak) { return weak.expired(); });
  listeners.all.push_back(log);
}

void QuietGrpc() {
  static const bool once = [] {
    const char* verbosity = std::getenv("GRPC_VERBOSITY");
    if (verbosity && *verbosity) return true;
    gpr_set_log_function(Hear);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
    return true;
  }();
  (void)once;
}

}  // namespace thalweg::grpc_transport
