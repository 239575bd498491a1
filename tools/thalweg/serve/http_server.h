// HTTP/1.1 by cpp-httplib, for one handler of all requests. This file and stream.h are the only ones that know the library.
//
// The library parses requests and writes answers. The connections, their threads and their limits are ours (connections.h,
// stream.h), because the library serves a fixed number of connections and waits without an end for slow ones.
// Threads: the handler runs on the connections' threads, many at once.
#pragma once
#include <httplib.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "connections.h"
#include "settings.h"

namespace thalweg::cli::serve {

struct Call {
  int refused = 0;           // the status of a request that must not be handled, because it is malformed or beyond a limit; 0: none
  std::string why;           // what is wrong with it
  std::string method, path;  // the path without query, with %XX decoded
  std::string client;        // its address
  std::function<std::string(const char* name)> header;  // "" if the request has none of this name
  std::function<std::string()> body;                    // reads it, once. Throws HttpError
};

struct Answer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

using AnswerCall = std::function<Answer(Call& call)>;  // throws nothing

class HttpServer final : private httplib::Server {
 public:
  HttpServer(const Settings& settings, AnswerCall answer);
  ~HttpServer() override;

  // Binds the address and begins to serve. Returns the port. Throws std::runtime_error naming the address.
  int Start();
  // Accepts no more connections, lets running requests end until the deadline, then calls `give_up`, which makes them end, and breaks
  // their connections.
  void Stop(Deadline deadline, const std::function<void()>& give_up);

 private:
  struct Exchange;
  static Exchange*& Current();

  bool process_and_close_socket(socket_t socket) override;
  void Serve(socket_t socket);
  void Check(httplib::Request* request, Exchange* exchange) const;
  void Fill(const httplib::Request& request, const httplib::ContentReader* reader, httplib::Response* response);

  const Settings settings_;
  const AnswerCall answer_;
  Connections connections_;
  std::thread listener_;
};

}  // namespace thalweg::cli::serve
