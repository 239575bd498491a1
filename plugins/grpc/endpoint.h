// Endpoint: the address of a runtime, and its peers. One thread handles all events, and another one
// does the work that must not be done in an event's handler. An incoming peer has to prove its
// identity before a byte of a message is read.
// Threads: any.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../common/origin.h"
#include "connection.h"
#include "credentials.h"
#include "front.h"
#include "log.h"
#include "poller.h"
#include "ring_poller.h"
#include "server.h"

namespace thalweg::grpc_transport {

// The threads at the completion queue and at the doorbell, which all endpoints of a runtime share.
// Two of each in a process would pass events to each other.
class Instance {
 public:
  std::shared_ptr<Poller> TakePoller(int spin_us);
  // NULL: see RingPoller.
  std::shared_ptr<RingPoller> TakeRings(int spin_us);

 private:
  std::mutex mu_;
  std::weak_ptr<Poller> poller_;
  std::weak_ptr<RingPoller> rings_;
};

class Endpoint {
 public:
  static tw_status* Listen(const tw_host* h, Instance* instance, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint);
  ~Endpoint();
  tw_status* Connect(const std::string& address, void** out_peer);
  // Ends everything that the endpoint holds; waits for the answers that the host owes.
  void Close();

  const tw_endpoint_config& config() const { return config_; }
  const std::shared_ptr<Chores>& chores() const { return chores_; }
  grpc_completion_queue* queue() const { return poller_->queue(); }
  Poller& poller() { return *poller_; }
  // NULL if messages do not use rings.
  std::shared_ptr<RingPoller> rings();
  void Counted(bool by_ring) { (by_ring ? by_ring_ : by_line_).fetch_add(1, std::memory_order_relaxed); }
  // See tw_transport_def.poll and wake. The thread waits at the source of most messages since the
  // last loan.
  bool Lend(uint64_t ns, uint32_t (*over)(void* arg), void* arg);
  void Wake();
  bool here() const { return origin_.here(); }
  // Returns NULL if this is the original process, else the error for a forked child.
  tw_status* Forked() const { return here() ? nullptr : Forked(h_); }
  uint64_t NextId() { return ++ids_; }
  // Makes the error "grpc transport: 'who' what".
  tw_status* Fail(uint32_t code, const std::string& who, const std::string& what) const;
  std::string token() const { return credentials_ ? credentials_->secrets().token : ""; }
  // Returns NULL on failure, with the reason in *why.
  grpc_channel* NewChannel(const std::string& address, std::string* why);
  // Makes a channel to a process of the same user on this machine. fd: owned by this call,
  // connected to it; -1: this call connects.
  grpc_channel* NewOwnChannel(const std::string& address, int fd, std::string* why);
  void Reached(const std::string& address);
  // Begins the address's backoff; until it ends, Connect fails with this code and reason.
  void Failed(const std::string& address, uint32_t code, const std::string& why);
  bool proves() const { return credentials_ != nullptr; }
  void Remove(Connection* c, const std::string& id);
  // A connection has ended, and none of its code runs any more.
  void Gone();

 private:
  struct Accept;
  struct ServerEnd;
  struct Denial;
  struct Backoff {
    int failures = 0;
    std::chrono::steady_clock::time_point until;
    uint32_t code = TW_UNAVAILABLE;  // of the last failure
    std::string why;
  };
  Endpoint(const tw_host* h, Instance* instance, const tw_endpoint_config* c);
  static tw_status* Forked(const tw_host* h);
  tw_status* Open(const std::string& address, const std::string& credential, std::string* bound);
  tw_status* OpenServer(const std::string& address, std::string* bound);
  tw_status* Meet(const std::string& address, int* out_fd);
  void Admit(grpc_call* call, const grpc_metadata_array& metadata);
  std::string Know(grpc_call* call, const grpc_metadata_array& metadata, Identity* who);
  bool Join(grpc_call* call, const grpc_metadata_array& metadata, const Identity& who);
  bool RoomFor(const std::string& name) const;
  void Deny(grpc_call* call, const std::string& why);
  void Look();
  void EndRevoked(const std::vector<std::shared_ptr<Connection>>& all);

  const tw_host* const h_;
  const tw_endpoint_config config_;
  Instance* const instance_;
  const common::Origin origin_;
  const bool open_, calls_only_, shares_memory_;
  const int spin_us_, slow_reader_s_;
  std::shared_ptr<Credentials> credentials_;  // NULL if there are none
  std::shared_ptr<Log> log_;
  std::shared_ptr<Chores> chores_;
  std::shared_ptr<Poller> poller_;
  std::unique_ptr<Server> server_;  // NULL for an endpoint that only calls
  std::unique_ptr<Front> front_;    // set like server_; stops before it
  std::atomic<uint64_t> ids_{0};
  std::atomic<uint64_t> by_line_{0}, by_ring_{0};  // number of messages since the last loan
  std::atomic<bool> lends_to_rings_{true};
  std::mutex mu_;
  std::condition_variable changed_;
  bool may_ring_ = true;  // as far as is known
  std::shared_ptr<RingPoller> rings_;
  bool closing_ = false, server_ended_ = true;
  int alive_ = 0;  // connections, also ended ones that still have running code
  std::map<Connection*, std::shared_ptr<Connection>> connections_;
  std::map<std::string, Connection*> callers_;  // by the id of their lines
  std::map<std::string, Backoff> backoff_;
};

}  // namespace thalweg::grpc_transport
