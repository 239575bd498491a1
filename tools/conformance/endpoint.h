// Endpoint and its peers: drives a transport of the plugin by hand.
// Threads: callbacks run on the transport's threads; all other functions are for one thread at a
// time.
#pragma once
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/registry/role.h"
#include "tools/conformance/device_block.h"
#include "tools/conformance/queue.h"

namespace thalweg::conformance {

// Counts calls of Add and wakes the waiting thread.
class Counter {
 public:
  void Add();
  int count() const;
  // Returns true if the counter reaches n within the time.
  bool Reaches(int n, std::chrono::milliseconds within = kSoon);

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
  int count_ = 0;
};

// A request and the answer to it. It must live until it is done.
struct Parcel {
  Bytes head, body;                // the request
  bool wanted = true;              // provide memory for the answer's body
  Bytes answer_head, answer_body;  // the answer
  uint64_t answer_bytes = 0;
  int placed = 0;
  Counter done;
  Status how;           // status of the last call of `done`
  bool inside = false;  // a callback came from inside an entry
};

class Peer;

// Listens, and serves by the first byte of the head: 'e' echoes head and body, 'n' does the same
// but provides no memory for the body, 'k' keeps the request until Release, or until its caller is
// gone.
class Endpoint {
 public:
  static StatusOr<std::unique_ptr<Endpoint>> Listen(const TransportRole& role);
  ~Endpoint() { Close(); }
  Endpoint(const Endpoint&) = delete;
  void Close();
  // Retries for a second while no endpoint listens.
  StatusOr<std::unique_ptr<Peer>> Connect(const std::string& address);
  Status ConnectOnce(const std::string& address, void** out_peer);
  // Answers the kept requests.
  void Release();
  // Lends this thread to the transport until over(arg) is nonzero, at most `ns` nanoseconds. Wake makes
  // the transport call `over` again.
  void Poll(uint64_t ns, uint32_t (*over)(void* arg), void* arg) { role_.def.poll(host(), endpoint_, ns, over, arg); }
  void Wake() { role_.def.wake(host(), endpoint_); }

  const std::string& address() const { return address_; }
  const TransportRole& role() const { return role_; }
  const tw_host* host() const { return role_.host; }
  Counter kept, gone;         // number of kept requests; of requests whose callers are gone
  Counter replied, finished;  // number of answers given; of answers done

 private:
  struct Request {
    Bytes body;
    const tw_incoming* call = nullptr;  // set for a kept request
  };
  struct Reply;
  explicit Endpoint(const TransportRole& role) : role_(role) {}
  static void Place(void* arg, const tw_incoming* m, tw_placing* to);
  static void Serve(void* arg, const tw_incoming* call);
  static void Gone(void* arg, uint64_t id);
  void Answer(const tw_incoming& call);
  const TransportRole& role_;
  void* endpoint_ = nullptr;
  std::string address_;
  std::mutex mu_;
  std::map<uint64_t, Request> requests_;  // by id, until answered
};

class Peer {
 public:
  Peer(Endpoint* endpoint, void* peer) : endpoint_(endpoint), peer_(peer) {}
  ~Peer() { Close(); }
  void Close();
  void Forget() { peer_ = nullptr; }  // call this after its endpoint was closed
  Status Call(uint64_t id, Parcel* p);
  void Cancel(uint64_t id);

 private:
  Endpoint* endpoint_;
  void* peer_;
};

}  // namespace thalweg::conformance
