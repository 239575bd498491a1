// gRPC's server, of connections that are accepted elsewhere: each is handed over as a descriptor, and its handshake and all that follows
// are gRPC's. The core takes descriptors over with TLS by its C++ interface alone (AddExternalConnectionAcceptor); everything else here
// goes by the core's. Threads: any.
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
  // queue: where what happens to it goes. how: taken. Starts it. method: its only one. Throws where it cannot be had.
  Server(const std::vector<grpc_arg>& args, grpc_completion_queue* queue, grpc_server_credentials* how, const char* method);
  ~Server();
  grpc_server* get() const { return server_; }
  void* method() const { return method_; }
  // fd: taken, connected, and does not block.
  void Take(int fd);

 private:
  class Credentials;
  grpc_server* server_ = nullptr;
  void* method_ = nullptr;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  // gRPC's C++ side insists on a queue and a service of its own kind. Nothing comes there.
  std::unique_ptr<grpc::ServerCompletionQueue> no_queue_;
  grpc::AsyncGenericService no_service_;
  std::unique_ptr<grpc::Server> whole_;
};

}  // namespace thalweg::grpc_transport
