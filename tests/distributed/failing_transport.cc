// A transport whose process dies at one point of one call. It forwards everything to another
// plugin's transport, under the scheme `failing`, and inspects the methods in the heads.
// Environment:
//   THALWEG_FAILING_TRANSPORT  the other plugin's file
//   THALWEG_FAILPOINT          "METHOD EDGE N": kill -9 when the N-th call of the method (its number in distributed/messages.h)
//                              reaches the edge; not set: no failure
// Edges of a caller: call (before the request is sent), called (it was sent), answered (the answer
// begins to arrive), over (the host has it). Edges of a server: receive (a request begins to
// arrive), serve (it is complete), served (the host works on it), answer (before the answer is
// sent), sent (it was sent). Threads: any.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "thalweg/plugin/plugin.h"

namespace {

struct Point {
  int method = 0;
  char edge[16] = "";
  int times = 0;
  std::atomic<int> seen{0};
  Point() {
    const char* text = std::getenv("THALWEG_FAILPOINT");
    if (text && std::sscanf(text, "%d %15s %d", &method, edge, &times) != 3) method = 0;
  }
  void Reach(int at, const char* where) {
    if (at == method && std::strcmp(edge, where) == 0 && ++seen == times) kill(getpid(), SIGKILL);
  }
};

Point& ThePoint() {
  static Point point;
  return point;
}

// Returns the method of a request, which follows the protocol's version.
int MethodOf(const void* head, uint64_t bytes) { return bytes > 1 ? static_cast<const uint8_t*>(head)[1] : 0; }

// The plugin to which all calls are forwarded.
struct Other {
  void* library = nullptr;
  const tw_plugin* plugin = nullptr;
  void* instance = nullptr;
};
tw_transport_def real = {};  // that plugin's transport

struct Endpoint {
  void* real = nullptr;
  tw_endpoint_config host = {};
};

// A message that the host sends.
struct Outgoing {
  int method;
  tw_message host;
};

// Methods of requests that are not answered yet: an answer names only its request.
std::mutex mu;
std::map<void*, int> serving;

tw_status* Failure(const tw_host* h, const std::string& text) {
  return h->status->make(h, TW_INVALID_ARGUMENT, text.data(), text.size(), nullptr);
}

// ---- Servers ----

void Place(void* arg, const tw_incoming* m, tw_placing* to) {
  auto* e = static_cast<Endpoint*>(arg);
  ThePoint().Reach(MethodOf(m->head, m->head_bytes), "receive");
  e->host.place(e->host.arg, m, to);
}

void Serve(void* arg, const tw_incoming* m) {
  auto* e = static_cast<Endpoint*>(arg);
  const int method = MethodOf(m->head, m->head_bytes);
  {
    std::lock_guard lock(mu);
    serving[m->self] = method;
  }
  ThePoint().Reach(method, "serve");
  e->host.serve(e->host.arg, m);
  ThePoint().Reach(method, "served");
}

void Gone(void* arg, uint64_t id) {
  auto* e = static_cast<Endpoint*>(arg);
  e->host.gone(e->host.arg, id);
}

void AnswerRequest(const tw_host* h, void* self, const tw_message* m) {
  int method;
  {
    std::lock_guard lock(mu);
    method = serving.extract(self).mapped();
  }
  ThePoint().Reach(method, "answer");
  tw_message mine = *m;
  mine.arg = new Outgoing{method, *m};
  mine.done = [](void* arg, tw_status* s) {
    auto* a = static_cast<Outgoing*>(arg);
    a->host.done(a->host.arg, s);
    ThePoint().Reach(a->method, "sent");
    delete a;
  };
  real.answer(h, self, &mine);
}

// ---- Callers ----

tw_status* CallPeer(const tw_host* h, void* peer, uint64_t id, const tw_message* m) {
  const int method = MethodOf(m->head, m->head_bytes);
  ThePoint().Reach(method, "call");
  auto* call = new Outgoing{method, *m};
  tw_message mine = *m;
  mine.arg = call;
  mine.place = [](void* arg, const tw_incoming* in, tw_placing* to) {
    auto* c = static_cast<Outgoing*>(arg);
    ThePoint().Reach(c->method, "answered");
    c->host.place(c->host.arg, in, to);
  };
  mine.done = [](void* arg, tw_status* s) {
    auto* c = static_cast<Outgoing*>(arg);
    const bool good = s == nullptr;
    c->host.done(c->host.arg, s);
    if (good) ThePoint().Reach(c->method, "over");
    delete c;
  };
  tw_status* failed = real.call(h, peer, id, &mine);
  if (failed) {
    delete call;
    return failed;
  }
  ThePoint().Reach(method, "called");
  return nullptr;
}

// ---- Endpoints ----

tw_status* Listen(const tw_host* h, void*, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint) {
  auto* e = new Endpoint;
  e->host = *c;
  tw_endpoint_config mine = *c;
  mine.arg = e;
  mine.place = Place;
  mine.serve = Serve;
  mine.gone = Gone;
  tw_status* failed = real.listen(h, real.user, &mine, bound, &e->real);
  if (failed) {
    delete e;
    return failed;
  }
  *out_endpoint = e;
  return nullptr;
}

tw_status* Connect(const tw_host* h, void* endpoint, const char* address, uint64_t len, void** out_peer) {
  return real.connect(h, static_cast<Endpoint*>(endpoint)->real, address, len, out_peer);
}

uint32_t Poll(const tw_host* h, void* endpoint, uint64_t ns, uint32_t (*over)(void* arg), void* arg) {
  return real.poll ? real.poll(h, static_cast<Endpoint*>(endpoint)->real, ns, over, arg) : 0;
}

void Wake(const tw_host* h, void* endpoint) {
  if (real.wake) real.wake(h, static_cast<Endpoint*>(endpoint)->real);
}

void Close(const tw_host* h, void* endpoint) {
  auto* e = static_cast<Endpoint*>(endpoint);
  real.close(h, e->real);
  delete e;
}

tw_status* TakeTransport(tw_registrar*, const tw_role* d) {
  real = *static_cast<const tw_transport_def*>(d->definition);
  return nullptr;
}

tw_status* Init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const char* file = std::getenv("THALWEG_FAILING_TRANSPORT");
  auto* t = new Other;
  t->library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
  const auto query = t->library ? reinterpret_cast<tw_query_fn>(dlsym(t->library, "tw_plugin_query_v0")) : nullptr;
  if (!query) {
    delete t;
    return Failure(h, std::string("THALWEG_FAILING_TRANSPORT names no plugin: ") + (file ? file : "it is not set"));
  }
  const tw_host_info info = {TW_SIZED(tw_host_info), TW_EPOCH, TW_MINOR, TW_S("a wrapper")};
  t->plugin = query(&info);
  tw_registrar theirs = *r;
  theirs.role = TakeTransport;
  if (tw_status* failed = t->plugin->init(h, &theirs, &t->instance)) {
    delete t;
    return failed;
  }
  tw_transport_def d = real;
  d.scheme = "failing";
  d.scheme_len = 7;
  d.listen = Listen;
  d.connect = Connect;
  d.call = CallPeer;
  d.answer = AnswerRequest;
  d.close = Close;
  d.poll = Poll;
  d.wake = Wake;
  d.register_memory = nullptr;  // it would need the other plugin's endpoint
  d.unregister_memory = nullptr;
  *out_instance = t;
  return tw_add_transport(r, &d);
}

void Shutdown(const tw_host* h, void* instance) {
  auto* t = static_cast<Other*>(instance);
  if (t->plugin->shutdown) t->plugin->shutdown(h, t->instance);
  dlclose(t->library);
  delete t;
}

}  // namespace

TW_PLUGIN_WITH("org.thalweg.test.failing", "0.1.0", Init, Shutdown)
