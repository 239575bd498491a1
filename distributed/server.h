// Server: a task of a cluster in this process. It listens at the task's address, answers clients
// and serves the values that its steps hold for other tasks. A server has an incarnation, a number
// that no other server has had. A request for another incarnation fails, so a restarted task is not
// taken for its predecessor.
// Threads: any.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "distributed/clock.h"
#include "distributed/cluster.h"
#include "distributed/inbox.h"
#include "distributed/mailbox.h"
#include "distributed/members.h"
#include "distributed/messenger.h"
#include "distributed/own_name.h"
#include "distributed/pusher.h"
#include "distributed/sandbox/host.h"
#include "distributed/worker.h"
#include "framework/base/option.h"
#include "framework/runtime/runtime.h"

namespace thalweg::distributed {

// ServerOptionRows defines names, defaults and meanings.
struct ServerOptions : WorkerOptions {
  std::string credentials;
  bool insecure = false;
  uint64_t max_message_bytes = uint64_t{4} << 30;
  std::string sandbox = "off";  // "on", "strict"
  uint64_t sandbox_memory = 0;  // bytes; 0: a quarter of what this process may have
  uint32_t sandbox_threads = 64;
  uint32_t sandbox_step_ms = 60'000;  // 0 means no limit
  uint32_t sandbox_processes = 64;
};

std::span<const OptionRow<ServerOptions>> ServerOptionRows();
// INVALID_ARGUMENT naming the option, the value and the accepted values.
Status SetServerOption(ServerOptions* options, std::string_view key, std::string_view value);

class Server {
 public:
  // Starts to listen. Errors: NOT_FOUND for a task that is not in the cluster, or a scheme that no
  // plugin serves; PERMISSION_DENIED for an open transport; UNAVAILABLE if the address is taken, or
  // the membership service does not answer.
  static StatusOr<std::unique_ptr<Server>> Start(std::shared_ptr<Runtime> runtime, const ClusterSpec& cluster, const TaskId& task,
                                                 const ServerOptions& options);
  ~Server();
  // Ends running steps with UNAVAILABLE and stops listening. A second call only waits until the
  // server has stopped.
  void Stop();
  // Returns when the server has stopped.
  void Join();
  std::string address() const { return StrCat(scheme_, ":", messenger_->address()); }
  uint64_t incarnation() const { return incarnation_; }

 private:
  Server(std::shared_ptr<Runtime> runtime, ClusterSpec cluster, TaskId task);
  class Here;
  void Serve(std::shared_ptr<Incoming> request);
  Status FindOwnAddress();
  Status StartSandbox(const ServerOptions& options);
  Status CheckOwnName(std::shared_ptr<const TransportRole> transport, const EndpointOptions& options);
  Hello MakeHello() const;
  void AnswerHello(bool asks_features, Incoming* request) const;
  void AnswerStatus(uint64_t session, Incoming* request) const;

  const std::shared_ptr<Runtime> runtime_;
  ClusterSpec cluster_;  // final from the first request on
  const TaskId task_;
  const uint64_t incarnation_;
  int64_t began_ = 0;
  std::string scheme_;
  std::unique_ptr<Clock> clock_;
  std::shared_ptr<PeerAccounts> accounts_;
  std::unique_ptr<Messenger> messenger_;
  OwnName own_name_;
  Mailbox mailbox_;
  Inbox inbox_;
  std::unique_ptr<Pusher> pusher_;
  std::unique_ptr<Membership> membership_;  // NULL: no service is told that this task is alive
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<SandboxHost> sandbox_;  // serves clients in place of the worker; NULL: the worker does
  std::shared_ptr<Here> here_;            // for clients in this program
  std::mutex mu_;
  std::condition_variable changed_;
  bool ready_ = false, stopping_ = false, stopped_ = false;
};

// Returns a number that nobody can guess and nobody else has.
uint64_t NewIncarnation();

// Finds the transport of a scheme. Errors: NOT_FOUND; PERMISSION_DENIED for a transport that admits
// any peer, unless it is requested by name.
StatusOr<std::shared_ptr<const TransportRole>> FindTransport(Runtime* runtime, const Address& address, bool insecure);

}  // namespace thalweg::distributed
