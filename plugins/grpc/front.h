// Front: accepts connections for gRPC, whose own listener (1.51) stops for good once the process
// has run out of descriptors. Network connections are counted before gRPC sees them (arrivals.h).
// The Unix sockets beside them admit only processes of the same user (own_user.h). One descriptor
// is held in reserve, so that connections can be refused when there are no others. If no connection
// has come for a while, the front connects to itself, and replaces a socket that no longer accepts.
// Threads: any; one of its own.
#pragma once
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "address.h"
#include "arrivals.h"
#include "log.h"

namespace thalweg::grpc_transport {

class Front {
 public:
  enum class Lets { kOwnUser, kAnybody };  // which network peers are let in: none (only Unix sockets), or any
  // take: closes the descriptor, now or later. Throws if there is no descriptor or no thread.
  Front(std::shared_ptr<Log> log, Lets lets, std::function<void(int fd)> take);
  ~Front();
  // Listens at all addresses that `at` stands for, and, with own_user, at Unix sockets for
  // processes of the same user. Returns empty and sets *out_port, or returns the reason. REQUIRES:
  // called once, before Start.
  std::string Listen(const HostPort& at, bool own_user, int* out_port);
  void Start();
  // Accepts nothing after it returns.
  void Stop();
  // Records a stream on the connection from that address (in gRPC's notation, without its scheme).
  // Returns false if it was one too many; the connection then ends.
  bool Stream(const std::string& from);
  void LetIn(const std::string& from);

 private:
  using Time = std::chrono::steady_clock::time_point;
  // A listening socket.
  struct Door {
    SocketAddress at;
    int fd = -1;
    bool heard = false;  // a connection came since the last check
    int probe = -1;      // the front's connection to itself
    SocketAddress probe_at;
    Time probed, next;                  // time of the probe; time of the next one
    std::chrono::milliseconds pause{};  // between probes
  };
  struct Fault {
    std::string what;
    bool taken = false;  // another process uses the port
  };
  bool ListenOnce(const std::vector<SocketAddress>& all, bool own_user, int* out_port, Fault* fault);
  Door* Open(const SocketAddress& at, Fault* fault);
  void CloseDoors();
  void Run();
  void Turn();
  void Accept(Door* door);
  void Welcome(Door* door, int fd, const SocketAddress& from);
  bool NoDescriptor(Door* door);
  void LookAfter(Door* door, Time now);
  void Probe(Door* door, Time now);
  void EndProbe(Door* door);
  void Reopen(Door* door, const std::string& why, Time now);
  int NewSocket(int family);

  const std::shared_ptr<Log> log_;
  const Lets lets_;
  const std::function<void(int fd)> take_;
  int wake_ = -1, reserve_ = -1;
  std::list<Door> doors_;
  Time looked_;      // at all sockets
  Time full_since_;  // since when there is no descriptor left; the default means that there is one
  std::mutex mu_;
  Arrivals arrivals_;  // under mu_
  bool stop_ = false;  // under mu_
  std::thread thread_;
};

// Raises the process's descriptor limit to its hard limit, but not beyond what this program can
// use. Returns the limit.
uint64_t RaiseDescriptors();

}  // namespace thalweg::grpc_transport
