// The transport `grpc`: an endpoint is a gRPC server and channels; a connection is one to three
// streams of frames.
#include "connection.h"
#include "endpoint.h"

using thalweg::grpc_transport::Connection;
using thalweg::grpc_transport::Endpoint;
using thalweg::grpc_transport::Exchange;
using thalweg::grpc_transport::Instance;

namespace {

// No exception crosses the C interface: those thrown here mean that memory has run out. In a forked
// child the threads are missing, and a missing thread may hold a lock: so operations that can fail
// are refused, and others do nothing.
template <typename F>
tw_status* Guarded(const tw_host* h, F f) {
  try {
    return f();
  } catch (const std::exception& e) {
    const std::string text = std::string("grpc transport: ") + e.what();
    return h->status->make(h, TW_RESOURCE_EXHAUSTED, text.data(), text.size(), nullptr);
  }
}

tw_status* Listen(const tw_host* h, void* user, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint) {
  return Guarded(h, [&] { return Endpoint::Listen(h, static_cast<Instance*>(user), c, bound, out_endpoint); });
}

tw_status* Connect(const tw_host* h, void* endpoint, const char* address, uint64_t len, void** out_peer) {
  auto* e = static_cast<Endpoint*>(endpoint);
  return Guarded(h, [&] {
    TW_TRY(e->Forked());
    return e->Connect(std::string(address, len), out_peer);
  });
}

tw_status* Call(const tw_host* h, void* peer, uint64_t id, const tw_message* request) {
  auto* c = static_cast<Connection*>(peer);
  return Guarded(h, [&] {
    TW_TRY(c->endpoint().Forked());
    return c->Call(id, request);
  });
}

void Cancel(const tw_host*, void* peer, uint64_t id) {
  auto* c = static_cast<Connection*>(peer);
  if (c->endpoint().here()) c->Cancel(id);
}

void Answer(const tw_host*, void* self, const tw_message* m) {
  auto x = static_cast<Exchange*>(self)->shared_from_this();
  if (auto c = x->connection.lock(); c && c->endpoint().here()) c->Answer(x, m);
}

void ClosePeer(const tw_host*, void* peer) {
  auto* c = static_cast<Connection*>(peer);
  if (c->endpoint().here()) c->Release();
}

void Close(const tw_host*, void* endpoint) {
  auto* e = static_cast<Endpoint*>(endpoint);
  if (!e->here()) return;  // its threads do not exist in this process
  e->Close();
  delete e;
}

uint32_t Poll(const tw_host*, void* endpoint, uint64_t ns, uint32_t (*over)(void* arg), void* arg) {
  auto* e = static_cast<Endpoint*>(endpoint);
  if (!e->here()) return 0;
  try {
    return e->Lend(ns, over, arg);
  } catch (const std::exception&) {  // out of memory: the caller waits without it
    return 0;
  }
}

void Wake(const tw_host*, void* endpoint) {
  auto* e = static_cast<Endpoint*>(endpoint);
  if (e->here()) e->Wake();
}

void Shutdown(const tw_host*, void* instance) { delete static_cast<Instance*>(instance); }

tw_status* Init(const tw_host*, tw_registrar* r, void** out_instance) {
  auto instance = std::make_unique<Instance>();
  tw_transport_def d = {TW_SIZED(tw_transport_def), TW_S("grpc")};
  d.security = TW_TRANSPORT_AUTHENTICATED;
  d.listen = Listen;
  d.connect = Connect;
  d.call = Call;
  d.cancel = Cancel;
  d.answer = Answer;
  d.close_peer = ClosePeer;
  d.close = Close;
  d.poll = Poll;
  d.wake = Wake;
  d.user = instance.get();
  TW_TRY(tw_add_transport(r, &d));
  *out_instance = instance.release();
  return nullptr;
}

}  // namespace

TW_PLUGIN_WITH("org.thalweg.grpc", "0.1.0", Init, Shutdown)
