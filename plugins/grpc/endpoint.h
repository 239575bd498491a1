// Endpoint: where a runtime is reached, and its peers. One thread takes all that happens, another one does what must not happen where it is
// noticed. Whoever comes in is asked who they are before a byte of a message is read.
// Threads: any.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "connection.h"
#include "credentials.h"
#include "log.h"
#include "poller.h"

namespace thalweg::grpc_transport {

// What the endpoints of a runtime share: the thread at the completion queue. Two of them in a process would hand events to each other.
class Instance {
 public:
  std::shared_ptr<Poller> TakePoller(int spin_us);

 private:
  std::mutex mu_;
  std::weak_ptr<Poller> poller_;
};

class Endpoint {
 public:
  static tw_status* Listen(const tw_host* h, Instance* instance, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint);
  ~Endpoint();
  tw_status* Connect(const std::string& address, void** out_peer);
  // Ends with all that it holds; waits for the answers that the host owes.
  void Close();

  const tw_endpoint_config& config() const { return config_; }
  const std::shared_ptr<Chores>& chores() const { return chores_; }
  grpc_completion_queue* queue() const { return poller_->queue(); }
  Poller& poller() { return *poller_; }
  uint64_t NextId() { return ++ids_; }
  // "grpc transport: 'who' what".
  tw_status* Fail(uint32_t code, const std::string& who, const std::string& what) const;
  std::string token() const { return credentials_ ? credentials_->secrets().token : ""; }
  // NULL: *why says why not.
  grpc_channel* NewChannel(const std::string& address, std::string* why);
  void Reached(const std::string& address);
  void Failed(const std::string& address);
  void Remove(Connection* c, const std::string& id);
  // A connection has ended, and nothing of it runs any more.
  void Gone();

 private:
  struct Accept;
  struct ServerEnd;
  struct Denial;
  struct Backoff {
    int failures = 0;
    std::chrono::steady_clock::time_point until;
  };
  Endpoint(const tw_host* h, Instance* instance, const tw_endpoint_config* c);
  tw_status* Open(const std::string& address, const std::string& credential, std::string* bound);
  tw_status* OpenServer(const std::string& address, std::string* bound);
  void Admit(grpc_call* call, const grpc_metadata_array& metadata);
  std::string Know(grpc_call* call, const grpc_metadata_array& metadata, Identity* who);
  bool Join(grpc_call* call, const std::string& id, const Identity& who);
  bool RoomFor(const std::string& name) const;
  void Deny(grpc_call* call, const std::string& why);

  const tw_host* const h_;
  const tw_endpoint_config config_;
  const bool open_, calls_only_;
  std::unique_ptr<Credentials> credentials_;  // NULL: none
  std::shared_ptr<Log> log_;
  std::shared_ptr<Chores> chores_;
  std::shared_ptr<Poller> poller_;
  grpc_server* server_ = nullptr;
  int port_ = 0;  // where it listens
  void* method_ = nullptr;
  std::atomic<uint64_t> ids_{0};
  std::mutex mu_;
  std::condition_variable changed_;
  bool closing_ = false, server_ended_ = true;
  int alive_ = 0;  // connections, also those that are only waited for by what runs
  std::map<Connection*, std::shared_ptr<Connection>> connections_;
  std::map<std::string, Connection*> callers_;  // by the id of their lines
  std::map<std::string, Backoff> backoff_;
};

}  // namespace thalweg::grpc_transport
