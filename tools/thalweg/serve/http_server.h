// HTTP/1.1 for one handler of all requests. http_server.cc and stream.h alone know the library, cpp-httplib.
//
// The library parses requests and writes answers. The connections, their threads and their limits are ours (connections.h,
// client_watch.h, stream.h), because the library serves a fixed number of connections, waits without an end for slow ones, and accepts
// no more connections after some failures.
// Threads: the handler runs on the connections' threads, many at once.
#pragma once
#include <memory>

#include "call.h"
#include "settings.h"

namespace thalweg::cli::serve {

class HttpServer {
 public:
  // budget: for the memory of requests; it outlives the server. Throws std::system_error.
  HttpServer(const Settings& settings, RequestBudget* budget, AnswerCall answer);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds the address and begins to serve. Returns the port. Throws std::runtime_error naming the address.
  int Start();
  // Accepts no more connections and lets running requests end until the deadline. Then it cancels those that are left and breaks their
  // connections.
  void Stop(Deadline deadline);

 private:
  class Library;
  const std::unique_ptr<Library> library_;
};

}  // namespace thalweg::cli::serve
