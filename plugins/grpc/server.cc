#include "server.h"

#include <stdexcept>
#include <string>

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

namespace thalweg::grpc_transport {

// gRPC's C++ side adds a port before the server starts; this class uses that call to obtain the
// core server.
class Server::Credentials final : public grpc::ServerCredentials {
 public:
  Credentials(Server* server, grpc_completion_queue* queue, grpc_server_credentials* how, const char* method)
      : server_(server), queue_(queue), how_(how), method_(method) {}
  ~Credentials() override { grpc_server_credentials_release(how_); }
  Credentials(const Credentials&) = delete;
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_register_completion_queue(server, queue_, nullptr);
    server_->method_ = grpc_server_register_method(server, method_, nullptr, GRPC_SRM_PAYLOAD_NONE, 0);
    server_->server_ = server;
    return grpc_server_add_http2_port(server, address.c_str(), how_);  // there is no port, so 0 also means success
  }
  Server* const server_;
  grpc_completion_queue* const queue_;
  grpc_server_credentials* const how_;
  const char* const method_;
};

Server::Server(const std::vector<grpc_arg>& args, grpc_completion_queue* queue, grpc_server_credentials* how, const char* method) {
  if (!how) throw std::runtime_error("gRPC makes no credentials of a server");
  grpc::ServerBuilder builder;
  for (const grpc_arg& a : args) builder.AddChannelArgument(a.key, a.value.integer);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
                                                                   std::make_shared<Credentials>(this, queue, how, method));
  no_queue_ = builder.AddCompletionQueue();
  builder.RegisterAsyncGenericService(&no_service_);
  whole_ = builder.BuildAndStart();
  if (!whole_ || !server_) throw std::runtime_error("gRPC makes no server");
}

Server::~Server() {
  whole_.reset();
  no_queue_->Shutdown();
  void* tag;
  for (bool ok; no_queue_->Next(&tag, &ok);) continue;
}

void Server::Take(int fd) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = fd;
  acceptor_->HandleNewConnection(&connection);
}

}  // namespace thalweg::grpc_transport
