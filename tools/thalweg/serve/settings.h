// The limits of a server, from the command line.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::cli::serve {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;  // Deadline::max(): none

struct Settings {
  std::string host;
  int port;                                // 0: any free one
  uint64_t max_request_bytes;              // of a request's body, after it was unpacked
  uint64_t request_memory;                 // bytes that all requests in flight may hold, see request_memory.h
  uint64_t max_requests;                   // that run at once; a further one gets 429
  uint64_t max_connections;                // that are served at once; further ones wait
  std::chrono::milliseconds timeout;       // from the request's header to its answer; 0: none
  std::chrono::milliseconds io_timeout;    // the slack of a slow client, see stream.h
  std::chrono::milliseconds drain;         // that running requests get after SIGTERM
  uint64_t max_batch;                      // rows of a joined run; 1: requests are not joined
  std::chrono::microseconds batch_delay;   // that a request waits for others
  std::vector<std::string> allow_origins;  // whose web pages may use the server; "*": all
  bool log;                                // a line for each request, not only for failures of the server
};

}  // namespace thalweg::cli::serve
