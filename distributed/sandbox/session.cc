#include "distributed/sandbox/session.h"

#include <unistd.h>

#include <utility>

#include <sys/socket.h>

#include "distributed/sandbox/packet_ring.h"
#include "distributed/server.h"
#include "framework/runtime/runtime_of.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kOwnMemory = 256 << 20;  // of its process, beyond the memory of the session's steps

struct Sandboxed {
  std::unique_ptr<Server> server;
  std::shared_ptr<ClusterSession> session;  // destroyed before its server
};

}  // namespace

StatusOr<std::shared_ptr<ClusterSession>> CreateSandboxed(std::shared_ptr<Graph> graph, const SessionOptions& options,
                                                          std::vector<std::string> texts) {
  if (!options.target.empty()) {
    return InvalidArgument("session options 'sandbox' and 'target' exclude each other; start the server at '", options.target,
                           "' with its option sandbox");
  }
  ServerOptions server;
  server.sandbox = options.sandbox;
  server.sandbox_memory = options.memory_limit ? options.memory_limit + kOwnMemory : 0;
  server.sandbox_step_ms = options.step_timeout_ms;
  server.sandbox_processes = 1;
  server.allow_files = options.allow_files;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return ResourceExhausted("session: no socket is left for its sandbox; raise the limit on open files");
  }
  const struct Closed {
    std::vector<int> all;
    ~Closed() {
      for (int fd : all) close(fd);
    }
  } sockets{{ends[0], ends[1]}};
  ASSIGN_OR_RETURN(const int memory, RingPair::Make());
  const Closed rings{{memory}};  // both sides have copies of all three in the end
  auto both = std::make_shared<Sandboxed>();
  const std::string address = StrCat("pipe:fd", ends[0], "-", ends[1], "m", memory);
  auto cluster = ClusterSpec::Parse(StrCat("{\"sandbox\": [\"", address, "\"]}"));
  auto started = cluster.ok() ? Server::Start(RuntimeOf(*graph).shared_from_this(), *cluster, {"sandbox", 0}, server)
                              : StatusOr<std::unique_ptr<Server>>(cluster.status());
  SessionOptions with_target = options;
  with_target.target = address;
  auto made = started.ok() ? ClusterSession::Create(std::move(graph), with_target, std::move(texts))
                           : StatusOr<std::shared_ptr<ClusterSession>>(Prefix(started.status(), "session option 'sandbox':"));
  if (!made.ok()) return made.status();
  both->server = *std::move(started);
  both->session = *std::move(made);
  return std::shared_ptr<ClusterSession>(both, both->session.get());
}

}  // namespace thalweg::distributed
