// The limits of a server, from the command line.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace thalweg::cli::serve {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;  // Deadline::max(): none

struct Settings {
  std::string host;
  int port;                               // 0: any free one
  uint64_t max_request_bytes;             // of a request's body, after it was unpacked
  uint64_t max_requests;                  // that run at once; a further one gets 429
  uint64_t max_connections;               // that are served at once; further ones wait
  std::chrono::milliseconds timeout;      // from the request's header to its answer; 0: none
  std::chrono::milliseconds io_timeout;   // the slack of a slow client, see stream.h
  std::chrono::milliseconds drain;        // that running requests get after SIGTERM
  uint64_t max_batch;                     // rows of a joined run; 1: requests are not joined
  std::chrono::microseconds batch_delay;  // that a request waits for others
  bool log;                               // a line a request
};

}  // namespace thalweg::cli::serve
