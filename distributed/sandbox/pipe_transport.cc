#include "distributed/sandbox/pipe_transport.h"

#include "distributed/sandbox/pipe.h"

namespace thalweg::distributed {
namespace {

Pipe* At(void* handle) { return static_cast<Pipe*>(handle); }

tw_status* Listen(const tw_host*, void*, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(auto pipe, Pipe::Open(*c));
    RETURN_IF_ERROR(FromC(bound->put(bound, c->address, c->address_len)));
    *out_endpoint = pipe.release();
    return Status();
  });
}

}  // namespace

std::shared_ptr<const TransportRole> PipeTransport() {
  static const auto role = [] {
    auto r = std::make_shared<TransportRole>();
    r->name = kPipeScheme;
    tw_transport_def& d = r->def;
    d.size = sizeof d;
    d.scheme = kPipeScheme.data();
    d.scheme_len = kPipeScheme.size();
    d.security = TW_TRANSPORT_SAME_HOST;
    d.listen = Listen;
    d.connect = [](const tw_host*, void* endpoint, const char* address, uint64_t len, void** out_peer) {
      return Guard([&]() -> Status {
        RETURN_IF_ERROR(At(endpoint)->Connect({address, size_t(len)}));
        *out_peer = endpoint;
        return Status();
      });
    };
    d.call = [](const tw_host*, void* peer, uint64_t id, const tw_message* m) { return Guard([&] { return At(peer)->Call(id, *m); }); };
    d.cancel = [](const tw_host*, void* peer, uint64_t id) { At(peer)->Cancel(id); };
    d.answer = [](const tw_host*, void* self, const tw_message* m) { Pipe::Answer(self, *m); };
    d.close_peer = [](const tw_host*, void* peer) { At(peer)->ClosePeer(); };
    d.close = [](const tw_host*, void* endpoint) { delete At(endpoint); };
    d.register_memory = [](const tw_host*, void*, const char*, uint64_t, void*, uint64_t, void**) {
      return ToC(Unimplemented("transport 'pipe' registers no memory"));
    };
    d.unregister_memory = [](const tw_host*, void*, void*) {};
    d.poll = [](const tw_host*, void* endpoint, uint64_t ns, uint32_t (*over)(void*), void* arg) {
      return uint32_t{At(endpoint)->Poll(ns, over, arg)};
    };
    d.wake = [](const tw_host*, void* endpoint) { At(endpoint)->Wake(); };
    return r;
  }();
  return role;
}

}  // namespace thalweg::distributed
