// gRPC alone, through its C++ interface. Each of `servers` processes answers an empty call with a
// given number of bytes; all are called at the same time, and the replies are copied into place.
// usage: grpc_worker THREADS
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>

extern "C" {
#include "worker.h"
}

namespace {

// Serves one call after another on each connection.
void Serve(long long bytes, int to) {
  const std::vector<char> data(static_cast<size_t>(bytes));
  const grpc::Slice slice(data.data(), data.size(), grpc::Slice::STATIC_SLICE);
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterAsyncGenericService(&service);
  builder.SetMaxSendMessageSize(-1);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (write(to, &port, sizeof port) != sizeof port) _exit(1);
  for (;;) {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream(&context);
    grpc::ByteBuffer question;
    const grpc::ByteBuffer answer(&slice, 1);
    void* tag;
    bool good;
    service.RequestCall(&context, &stream, queue.get(), queue.get(), &context);
    if (!queue->Next(&tag, &good) || !good) return;
    stream.Read(&question, &context);
    if (!queue->Next(&tag, &good)) return;
    stream.WriteAndFinish(answer, grpc::WriteOptions(), grpc::Status::OK, &context);
    if (!queue->Next(&tag, &good)) return;
  }
}

struct Fan {
  int servers = 0;
  long long bytes = 0;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs;
  grpc::CompletionQueue queue;
  std::vector<char> into;
};

// The servers are separate processes, forked before gRPC has threads here.
int StartServer(long long bytes) {
  int ends[2], port = 0;
  if (pipe(ends) != 0) worker_fail("no pipe");
  const pid_t pid = fork();
  if (pid < 0) worker_fail("cannot fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Serve(bytes, ends[1]);
    _exit(0);
  }
  if (read(ends[0], &port, sizeof port) != sizeof port) worker_fail("a server did not come up");
  close(ends[0]);
  close(ends[1]);
  return port;
}

void AskAll(void* user) {
  auto* f = static_cast<Fan*>(user);
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer answer;
    grpc::Status status;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  };
  std::vector<Call> calls(f->stubs.size());
  const grpc::Slice empty("ask");
  const grpc::ByteBuffer question(&empty, 1);
  for (size_t i = 0; i < calls.size(); ++i) {
    Call& c = calls[i];
    c.reader = f->stubs[i]->PrepareUnaryCall(&c.context, "/bench/ask", question, &f->queue);
    c.reader->StartCall();
    c.reader->Finish(&c.answer, &c.status, &c);
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    void* tag;
    bool good;
    f->queue.Next(&tag, &good);
    auto* c = static_cast<Call*>(tag);
    if (!c->status.ok()) worker_fail("a call failed: %s", c->status.error_message().c_str());
    std::vector<grpc::Slice> slices;
    c->answer.Dump(&slices);
    size_t at = 0;
    for (const grpc::Slice& s : slices) {
      std::memcpy(f->into.data() + at, s.begin(), s.size());
      at += s.size();
    }
  }
}

Fan* fan;

// "SERVERS BYTES SAMPLES"; only SAMPLES may change between calls.
void AnswerCall(const char* argument) {
  int servers, samples;
  long long bytes;
  if (std::sscanf(argument, "%d %lld %d", &servers, &bytes, &samples) != 3) worker_fail("SERVERS BYTES SAMPLES");
  if (!fan) {
    std::vector<int> ports;
    for (int i = 0; i < servers; ++i) ports.push_back(StartServer(bytes));
    fan = new Fan;
    fan->servers = servers;
    fan->bytes = bytes;
    fan->into.resize(static_cast<size_t>(bytes));
    grpc::ChannelArguments args;
    args.SetMaxReceiveMessageSize(-1);
    for (int port : ports) {
      const auto channel = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), args);
      fan->stubs.push_back(std::make_unique<grpc::GenericStub>(channel));
    }
  }
  if (fan->servers != servers || fan->bytes != bytes) worker_fail("one worker has one kind of server");
  worker_reply_time(AskAll, fan, samples, 1, 1);
}

}  // namespace

int main() {
  static const worker_command commands[] = {{"call", AnswerCall}, {nullptr, nullptr}};
  worker_serve(commands);
  _exit(0);
}
