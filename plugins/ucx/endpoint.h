// Endpoint: a UCX context, the socket at its address, and its connections. One thread drives it: the
// endpoint's own, or one that the host lends. The driving thread alone uses UCX and calls the host back; it
// releases the lock meanwhile. An entry takes the lock, records its request and wakes the driver.
//
// A driver does not spin: when there is no work, it arms the workers of all connections (see
// ucp_worker_arm) and sleeps in epoll, until a worker, a socket or an entry wakes it.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../common/origin.h"
#include "connection.h"

namespace thalweg::ucx_transport {

class Endpoint {
 public:
  enum Source : uint32_t { kListener, kBell, kSocket, kWork };

  static tw_status* Listen(const tw_host* h, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;

  // ---- entries ----
  tw_status* Connect(const std::string& address, void** out_peer);
  tw_status* CallPeer(Connection* c, uint64_t id, const tw_message* m);
  void Cancel(Connection* c, uint64_t id);
  void Answer(Call* c, const tw_message* m);
  void ClosePeer(Connection* c);
  void Close();
  uint32_t Lend(uint64_t ns, uint32_t (*over)(void* arg), void* arg);
  void Wake();
  // Returns false in a forked child, which has neither the threads nor the connections.
  bool here() const { return origin_.here(); }
  tw_status* Forked() const;

  // ---- for connections ----
  std::mutex& mu() { return mu_; }
  const Context& context() const { return *context_; }
  const tw_endpoint_config& config() const { return config_; }
  const std::string& token() const { return token_; }
  bool closing() const { return closing_; }
  void KeepAwake();  // there was an event; see the setting spin_us
  uint64_t NextId() { return ++count_; }
  void Queue(Call* c);
  void Watch(int fd, Connection* c, Source source, bool writes);
  void Rewatch(int fd, Connection* c, Source source, bool writes);
  void Unwatch(int fd);
  tw_status* Failure(uint32_t code, const std::string& text) const;

 private:
  using Clock = std::chrono::steady_clock;

  Endpoint(const tw_host* h, const tw_endpoint_config* c);
  tw_status* Start(tw_sink* bound);
  tw_status* Admission();
  void Drive();
  // Does the work that there is, or else sleeps until `until` at most. Returns false if the endpoint has ended.
  // Even if there is always work, it looks at the sockets: peers want to be let in, or have ended.
  bool Turn(Lock& l, Clock::time_point until);
  bool RunQueue(Lock& l);
  bool TendAll(Lock& l);
  void Sleep(Lock& l, Clock::time_point until);
  void Accept();
  void Ring();

  const common::Origin origin_;
  const tw_host* const host_;
  tw_endpoint_config config_;
  const std::string address_, credential_;
  const bool open_, calls_only_;
  bool network_ = false;
  std::chrono::microseconds spin_{0};
  std::string token_;
  std::unique_ptr<Context> context_;
  int epoll_ = -1, bell_ = -1, listener_ = -1;

  std::mutex mu_;  // guards the fields from here to count_, and the connections
  std::condition_variable changed_;
  bool closing_ = false, sleeping_ = false;
  bool rung_ = false;                   // an entry has something to do for the driver
  bool driven_ = false, lent_ = false;  // driven_: a thread is in Turn
  Clock::time_point rests_until_{}, spins_until_{}, glances_at_{};
  std::vector<std::unique_ptr<Connection>> all_;
  Call *first_ = nullptr, *last_ = nullptr;  // calls with something to do
  uint64_t count_ = 0;
  std::thread thread_;
};

}  // namespace thalweg::ucx_transport
