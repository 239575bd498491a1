// Server: a gRPC server for connections that are accepted elsewhere: it receives each as a
// descriptor, and gRPC does the handshake and all that follows. gRPC takes over descriptors with
// TLS only through its C++ interface (AddExternalConnectionAcceptor); everything else here uses the
// core interface. Threads: any.
#pragma once
#include <memory>
#include <vector>

#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

namespace thalweg::grpc_transport {

class Server {
 public:
  // queue: receives its events. how: owned by this call. method: the only one. Starts the server.
  // Throws on failure.
  Server(const std::vector<grpc_arg>& args, grpc_completion_queue* queue, grpc_server_credentials* how, const char* method);
  ~Server();
  grpc_server* get() const { return server_; }
  void* method() const { return method_; }
  // fd: owned by this call; connected and non-blocking.
  void Take(int fd);

 private:
  class Credentials;
  grpc_server* server_ = nullptr;
  void* method_ = nullptr;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  // gRPC's C++ interface requires a queue and a service of its own. Nothing arrives there.
  std::unique_ptr<grpc::ServerCompletionQueue> no_queue_;
  grpc::AsyncGenericService no_service_;
  std::unique_ptr<grpc::Server> whole_;
};

}  // namespace thalweg::grpc_transport
