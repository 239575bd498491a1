// Connections by the network from when they are accepted: how many there may be, of whom, and for how long without a word that proves
// something. Descriptors are gRPC's once it has them, so whether one still is what it was is asked of the kernel.
// Threads: none of its own; a lock is its user's.
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
    size_t waiting = 0;         // that nobody was let in by yet
    size_t waiting_of_one = 0;  // of those, from one address
  };
  // For a process that may have so many descriptors.
  static Limits LimitsFor(uint64_t descriptors);
  // Streams that a connection may open in its life; ours opens one.
  static constexpr int kStreams = 16;

  explicit Arrivals(const Limits& limits) : limits_(limits) {}
  // Empty: it is taken; else why not. Somebody else may be cut for it, who has not proven anything either, and is of an address with more
  // of that kind.
  std::string Add(int fd, const SocketAddress& from, Time now);
  // By the connection from there ("127.0.0.1:4000") a stream has come. False: it was one too many, and the connection is cut.
  bool Stream(const std::string& from);
  // Who came by that connection was let in.
  void LetIn(const std::string& from);
  // Ends those that have waited since before then, and forgets those that are over. Answers how many it has ended.
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
    std::map<uint64_t, std::string> waiting;  // by number: where from
  };
  using Iterator = std::unordered_map<std::string, Arrival>::iterator;
  void ForgetOver();
  Iterator Forget(Iterator it);
  void Cut(const Arrival& a) const;
  void StopWaiting(Arrival* a);

  const Limits limits_;
  std::unordered_map<std::string, Arrival> all_;  // by where from
  std::unordered_map<std::string, Host> hosts_;
  size_t waiting_ = 0;
  uint64_t numbers_ = 0;
  Time looked_;
};

}  // namespace thalweg::grpc_transport
