// Arrivals: tracks network connections from accept on. It limits their number, in total and per
// host, and the time that an unproven one may stay. gRPC owns the descriptors, so the kernel is
// asked whether a descriptor is still the same socket.
// Threads: none of its own; the user locks.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "address.h"

namespace thalweg::grpc_transport {

class Arrivals {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    size_t all = 0;             // connections
    size_t of_one = 0;          // of those, from one address
    size_t waiting = 0;         // connections that no peer was admitted through yet
    size_t waiting_of_one = 0;  // of those, from one address
  };
  // Returns limits for a process that may have so many descriptors.
  static Limits LimitsFor(uint64_t descriptors);
  // Streams that a connection may open in its lifetime; ours opens one.
  static constexpr int kStreams = 16;

  explicit Arrivals(const Limits& limits) : limits_(limits) {}
  // Adds a connection. Returns empty if it is accepted, else the reason. To make room, it may cut
  // another unproven connection, of an address with more of them.
  std::string Add(int fd, const SocketAddress& from, Time now);
  // Records a stream on the connection from that address ("127.0.0.1:4000"). Returns false if it
  // was one too many; the connection is then cut.
  bool Stream(const std::string& from);
  // Records that the peer on that connection was admitted.
  void LetIn(const std::string& from);
  // Ends the connections that have waited since before `then`, and forgets those that are closed.
  // Returns the number it has ended.
  size_t EndOlder(Time then);
  size_t size() const { return all_.size(); }
  size_t waiting() const { return waiting_; }
  const Limits& limits() const { return limits_; }

 private:
  struct Arrival {
    int fd;
    uint64_t cookie;  // of the socket
    std::string host;
    Time came;
    uint64_t number;
    bool waits = true;
    int streams = 0;
  };
  struct Host {
    size_t all = 0;
    std::map<uint64_t, std::string> waiting;  // by number: remote address
  };
  using Iterator = std::unordered_map<std::string, Arrival>::iterator;
  void ForgetOver();
  Iterator Forget(Iterator it);
  void Cut(const Arrival& a) const;
  void StopWaiting(Arrival* a);

  const Limits limits_;
  std::unordered_map<std::string, Arrival> all_;  // by remote address
  std::unordered_map<std::string, Host> hosts_;
  size_t waiting_ = 0;
  uint64_t numbers_ = 0;
  Time looked_;
};

}  // namespace thalweg::grpc_transport
