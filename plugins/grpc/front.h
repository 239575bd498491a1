// Front: accepts connections, for gRPC, whose own listener of 1.51 stays deaf once it has met the end of the descriptors. What comes by the
// network is counted before it is heard (arrivals.h); what comes by the Unix sockets beside it is asked whose it is (own_user.h). A
// descriptor is kept in reserve, so that at the end of them those who come are at least told, and where nobody has come for a while the
// front comes to itself: a socket that has gone deaf is made anew. Threads: any; one of its own.
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
  enum class Lets { kOwnUser, kAnybody };  // in who comes by the network: by the Unix sockets alone, or anybody
  // take: closes it, or has it closed. Throws where there is no descriptor or no thread.
  Front(std::shared_ptr<Log> log, Lets lets, std::function<void(int fd)> take);
  ~Front();
  // Listens at all that the address stands for, and for processes of the same user beside it. Empty: done, and *out_port says where; else
  // why not. REQUIRES: once, before Start.
  std::string Listen(const HostPort& at, bool own_user, int* out_port);
  void Start();
  // Nothing is taken after this.
  void Stop();
  // By the connection from there (as gRPC names it, without its scheme) a stream has come. False: one too many; the connection ends.
  bool Stream(const std::string& from);
  void LetIn(const std::string& from);

 private:
  using Time = std::chrono::steady_clock::time_point;
  // A socket that listens.
  struct Door {
    SocketAddress at;
    int fd = -1;
    bool heard = false;  // somebody, since it was looked after
    int probe = -1;      // that the front comes to itself by
    SocketAddress probe_at;
    Time probed, next;                  // when that was; when it is done again
    std::chrono::milliseconds pause{};  // until then
  };
  struct Fault {
    std::string what;
    bool taken = false;  // the port is somebody's
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
  Time looked_;      // after all
  Time full_since_;  // since when there is no descriptor left; its default: there is
  std::mutex mu_;
  Arrivals arrivals_;  // under mu_
  bool stop_ = false;  // under mu_
  std::thread thread_;
};

// Lets the process have as many descriptors as its hard limit says, but for more than any of this needs. Answers how many it has.
uint64_t RaiseDescriptors();

}  // namespace thalweg::grpc_transport
