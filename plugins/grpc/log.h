// What this transport has to say to whoever runs the program: a line now and then, however often it happens. gRPC's own words go here, too,
// as far as they are of handshakes that failed; no secret is in them. Threads: any.
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
  // A warning. Within five seconds of the last one it is only counted.
  void Warn(const std::string& text);
  // The host may go: nothing is said any more.
  void Close();

 private:
  std::mutex host_mu_;
  const tw_host* h_;  // under host_mu_; NULL: closed
  std::mutex mu_;     // the rest
  std::chrono::steady_clock::time_point last_;
  bool any_ = false;
  uint64_t left_out_ = 0;
};

// Servers of this process are told of handshakes that fail: gRPC says no more than that one did.
void TellOfHandshakes(const std::shared_ptr<Log>& log);
// Keeps gRPC's words from the program's output, unless GRPC_VERBOSITY asks for them. Again: no effect.
void QuietGrpc();

}  // namespace thalweg::grpc_transport
