// Notices clients that close their connection while a request of theirs is served, and cancels the request. A client that closes only
// its sending side counts as gone too, because TCP does not tell the two apart.
//
// One thread waits for the end of all connections (epoll). The system reports the end of a connection once, also behind bytes that
// nobody has read; no system call is needed for a request.
// Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "cancellation.h"

namespace thalweg::cli::serve {

class ClientWatch {
 public:
  ClientWatch();  // throws std::system_error
  ~ClientWatch();
  ClientWatch(const ClientWatch&) = delete;
  ClientWatch& operator=(const ClientWatch&) = delete;

  // A connection's client, from construction to destruction. REQUIRES: the socket stays open meanwhile.
  class Client {
   public:
    Client(ClientWatch* watch, int socket);  // throws std::system_error
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

   private:
    friend class ClientWatch;
    ClientWatch* const watch_;
    const int socket_;
    uint64_t id_ = 0;                  // set once
    bool left_ = false;                // guarded by the watch's mutex
    Cancellation* request_ = nullptr;  // that is served now; NULL: none. Guarded by the watch's mutex
  };

  // A request that is served for a client, from construction to destruction. It is cancelled at once if the client has left already.
  // REQUIRES: a client has one at a time.
  class Serving {
   public:
    Serving(Client* client, Cancellation* request);
    ~Serving();
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

   private:
    Client* const client_;
  };

  // Cancels every request that is served now or later: the server ends.
  void CancelAll();

 private:
  void Wait();
  void Left(uint64_t id);

  int epoll_ = -1, stop_ = -1;  // set once
  std::mutex mutex_;            // guards the members that follow, but for the thread
  std::map<uint64_t, Client*> clients_;
  uint64_t next_id_ = 1;  // 0 stands for stop_
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace thalweg::cli::serve
