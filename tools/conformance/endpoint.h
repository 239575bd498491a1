// Endpoint and its peers: a transport of the plugin, driven by hand.
// Threads: Served is used by the transport's; the rest by one at a time.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/registry/role.h"
#include "tools/conformance/device_block.h"
#include "tools/conformance/queue.h"

namespace thalweg::conformance {

class Peer;

// Listens and serves the methods echo (answers what it got), refuse (answers NOT_FOUND) and keep (answers when the endpoint ends).
class Endpoint {
 public:
  static StatusOr<std::unique_ptr<Endpoint>> Listen(const TransportRole& role, uint64_t window = 0);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  // Tries again while nobody is there, for a second.
  StatusOr<std::unique_ptr<Peer>> Connect(const std::string& address);
  Status ConnectOnce(const std::string& address, void** out_peer);
  void Abort(uint64_t step, const Status& why);
  const std::string& address() const { return address_; }
  const TransportRole& role() const { return role_; }
  const tw_host* host() const { return role_.host; }
  int64_t now() const { return host()->run->now(host()); }

 private:
  explicit Endpoint(const TransportRole& role) : role_(role) {}
  static void Serve(void* arg, const tw_incoming* call);
  const TransportRole& role_;
  void* endpoint_ = nullptr;
  std::string address_;
  std::mutex mu_;
  std::vector<tw_incoming> kept_;
};

// A message that comes, or goes.
struct Parcel {
  Bytes head, data;
  Line line = NewLine();
  bool refuse = false;  // place answers an error
  const tw_host* host = nullptr;
  // Whether it is over within the time; how it went.
  bool Over(std::chrono::milliseconds within = kSoon) const { return Reaches(line.get(), 1, within); }
  Status how() const { return line->failure(); }
};

struct Answer {
  std::mutex mu;
  std::condition_variable changed;
  int times = 0;
  Status status;
  Bytes body;
  bool Wait(std::chrono::milliseconds within = kSoon);
};

class Peer {
 public:
  Peer(Endpoint* endpoint, void* peer) : endpoint_(endpoint), peer_(peer) {}
  ~Peer() { Close(); }
  void Close();
  // The parcel must live until it is over.
  Status Send(uint64_t step, const std::string& key, Parcel* p);
  Status Receive(uint64_t step, const std::string& key, Parcel* p, int64_t deadline = 0);
  // The answer must live until it has come.
  Status Call(const std::string& method, const Bytes& request, int64_t deadline, Answer* to);

 private:
  Endpoint* endpoint_;
  void* peer_;
};

}  // namespace thalweg::conformance
