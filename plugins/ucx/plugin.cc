// The transport `ucx`: an endpoint has a UCX worker for each connection.
#include "thalweg/cpp/plugin.hpp"

#include <string>

#include "connection.h"
#include "endpoint.h"

using thalweg::ucx_transport::Connection;
using thalweg::ucx_transport::Endpoint;

namespace {

// No exception crosses the C interface: those thrown here mean that memory has run out, or that a
// setting has a wrong value. In a forked child the threads are missing, and a missing thread may hold a
// lock: so operations that can fail are refused, and others do nothing.
template <typename F>
tw_status* Guarded(const tw_host* h, F f) {
  try {
    return f();
  } catch (...) {
    return tw::caught(h);
  }
}

tw_status* Listen(const tw_host* h, void*, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint) {
  return Guarded(h, [&] { return Endpoint::Listen(h, c, bound, out_endpoint); });
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
    return c->endpoint().CallPeer(c, id, request);
  });
}

void Cancel(const tw_host*, void* peer, uint64_t id) {
  auto* c = static_cast<Connection*>(peer);
  if (c->endpoint().here()) c->endpoint().Cancel(c, id);
}

void Answer(const tw_host*, void* self, const tw_message* m) {
  auto* c = static_cast<thalweg::ucx_transport::Call*>(self);
  Endpoint& e = c->connection->endpoint();
  if (e.here()) e.Answer(c, m);
}

void ClosePeer(const tw_host*, void* peer) {
  auto* c = static_cast<Connection*>(peer);
  if (c->endpoint().here()) c->endpoint().ClosePeer(c);
}

void Close(const tw_host*, void* endpoint) {
  auto* e = static_cast<Endpoint*>(endpoint);
  if (!e->here()) return;  // its threads do not exist in this process
  e->Close();
  delete e;
}

uint32_t Poll(const tw_host*, void* endpoint, uint64_t ns, uint32_t (*over)(void* arg), void* arg) {
  auto* e = static_cast<Endpoint*>(endpoint);
  return e->here() ? e->Lend(ns, over, arg) : 0;
}

void Wake(const tw_host*, void* endpoint) {
  auto* e = static_cast<Endpoint*>(endpoint);
  if (e->here()) e->Wake();
}

tw_status* Init(const tw_host*, tw_registrar* r, void**) {
  tw_transport_def d = {TW_SIZED(tw_transport_def), TW_S("ucx")};
  d.security = TW_TRANSPORT_SAME_HOST;
  d.listen = Listen;
  d.connect = Connect;
  d.call = Call;
  d.cancel = Cancel;
  d.answer = Answer;
  d.close_peer = ClosePeer;
  d.close = Close;
  d.poll = Poll;
  d.wake = Wake;
  return tw_add_transport(r, &d);
}

}  // namespace

TW_PLUGIN("org.thalweg.ucx", "0.1.0", Init)
