// Log: warnings of this transport for the operator of the program, at most one in a while. gRPC's
// own messages about failed handshakes go here, too. It never logs secrets. Threads: any.
#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "thalweg/plugin/plugin.h"

namespace thalweg::grpc_transport {

class Log {
 public:
  explicit Log(const tw_host* h) : h_(h) {}
  // Logs a warning. Within five seconds of the last one, it only counts it.
  void Warn(const std::string& text);
  // The host may be destroyed: logs nothing any more.
  void Close();

 private:
  std::mutex host_mu_;
  const tw_host* h_;  // guarded by host_mu_; NULL: closed
  std::mutex mu_;     // guards the rest
  std::chrono::steady_clock::time_point last_;
  bool any_ = false;
  uint64_t left_out_ = 0;
};

// Reports failed handshakes to `log`, for servers of this process: gRPC gives no other notice of
// them.
void TellOfHandshakes(const std::shared_ptr<Log>& log);
// Keeps gRPC's messages out of the program's output, unless GRPC_VERBOSITY asks for them. A second
// call has no effect.
void QuietGrpc();

}  // namespace thalweg::grpc_transport
