#include "tools/conformance/endpoint.h"

#include <thread>

#include "tools/conformance/guarded.h"
#include "tools/conformance/played_host.h"

namespace thalweg::conformance {
namespace {

thread_local int entries = 0;  // number of transport functions that this thread is inside
struct Inside {
  Inside() { ++entries; }
  ~Inside() { --entries; }
};

Bytes Copy(const void* bytes, uint64_t n) {
  const auto* p = static_cast<const unsigned char*>(bytes);
  return n ? Bytes(p, p + n) : Bytes();
}

// Provides the destination of a reply's body once its head has arrived.
void PlaceAnswer(void* arg, const tw_incoming* m, tw_placing* to) {
  auto* p = static_cast<Parcel*>(arg);
  p->inside |= entries > 0;
  ++p->placed;
  p->answer_head = Copy(m->head, m->head_bytes);
  p->answer_bytes = m->bytes;
  if (!p->wanted) return;
  p->answer_body.assign(m->bytes, 0);
  tw_put_place(to, p->answer_body.data());
}
void TakeAnswer(void* arg, tw_status* s) {
  auto* p = static_cast<Parcel*>(arg);
  p->inside |= entries > 0;
  p->how = FromC(s);
  p->done.Add();
}

}  // namespace

void Counter::Add() {
  std::lock_guard lock(mu_);
  ++count_;
  changed_.notify_all();
}
int Counter::count() const {
  std::lock_guard lock(mu_);
  return count_;
}
bool Counter::Reaches(int n, std::chrono::milliseconds within) {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, within, [&] { return count_ >= n; });
}

StatusOr<std::unique_ptr<Endpoint>> Endpoint::Listen(const TransportRole& role) {
  std::unique_ptr<Endpoint> e(new Endpoint(role));
  Padded<tw_endpoint_config> padded(RecordSize<tw_endpoint_config>());
  tw_endpoint_config& config = padded.c;
  config.address = config.credential = "";
  config.largest = uint64_t{1} << 31;
  config.arg = e.get();
  config.place = Place;
  config.serve = Serve;
  config.gone = Gone;
  tw_sink bound = {TW_SIZED(tw_sink), &e->address_, [](tw_sink* to, const void* bytes, uint64_t n) -> tw_status* {
                     static_cast<std::string*>(to->user)->append(static_cast<const char*>(bytes), n);
                     return nullptr;
                   }};
  RETURN_IF_ERROR(FromC(role.def.listen(role.host, role.def.user, &config, &bound, &e->endpoint_)));
  return e;
}
void Endpoint::Close() {
  if (endpoint_) role_.def.close(host(), endpoint_);
  endpoint_ = nullptr;
}

void Endpoint::Place(void* arg, const tw_incoming* m, tw_placing* to) {
  auto* e = static_cast<Endpoint*>(arg);
  const bool wanted = m->bytes > 0 && *static_cast<const char*>(m->head) != 'n';
  std::lock_guard lock(e->mu_);
  Bytes& body = e->requests_[m->id].body;
  if (!wanted) return;
  body.assign(m->bytes, 0);
  tw_put_place(to, body.data());
}
void Endpoint::Serve(void* arg, const tw_incoming* call) {
  auto* e = static_cast<Endpoint*>(arg);
  if (*static_cast<const char*>(call->head) != 'k') return e->Answer(*call);
  {
    std::lock_guard lock(e->mu_);
    e->requests_[call->id].call = call;
  }
  e->kept.Add();
}
void Endpoint::Gone(void* arg, uint64_t id) {
  auto* e = static_cast<Endpoint*>(arg);
  const tw_incoming* call = nullptr;
  {
    std::lock_guard lock(e->mu_);
    auto it = e->requests_.find(id);
    if (it != e->requests_.end()) call = it->second.call;
    if (it != e->requests_.end() && !call) e->requests_.erase(it);  // it was not served and will not be
  }
  if (call) e->Answer(*call);
  e->gone.Add();
}
void Endpoint::Release() {
  std::vector<const tw_incoming*> calls;
  {
    std::lock_guard lock(mu_);
    for (auto& [id, request] : requests_) {
      if (request.call) calls.push_back(request.call);
    }
  }
  for (const tw_incoming* call : calls) Answer(*call);
}

// An answer, which lives until it is done.
struct Endpoint::Reply {
  Endpoint* endpoint;
  Bytes body;
  static void Done(void* arg, tw_status* s) {
    auto* r = static_cast<Reply*>(arg);
    (void)FromC(s);
    r->endpoint->finished.Add();
    delete r;
  }
};
void Endpoint::Answer(const tw_incoming& call) {
  auto* r = new Reply{this, {}};
  {
    std::lock_guard lock(mu_);
    auto it = requests_.find(call.id);
    if (it == requests_.end()) return delete r;  // another thread answers it
    r->body = std::move(it->second.body);
    requests_.erase(it);
  }
  Padded<tw_message> padded(RecordSize<tw_message>());
  tw_message& m = padded.c;
  const Bytes head = Copy(call.head, call.head_bytes);
  m.head = head.data();
  m.head_bytes = head.size();
  m.body = r->body.data();
  m.bytes = r->body.size();
  m.arg = r;
  m.done = Reply::Done;
  replied.Add();
  Inside inside;
  role_.def.answer(host(), call.self, &m);
}

Status Endpoint::ConnectOnce(const std::string& address, void** out_peer) {
  return FromC(role_.def.connect(host(), endpoint_, address.data(), address.size(), out_peer));
}
StatusOr<std::unique_ptr<Peer>> Endpoint::Connect(const std::string& address) {
  Status s;
  for (int tries = 0; tries < 100; ++tries) {
    void* peer = nullptr;
    s = ConnectOnce(address, &peer);
    if (s.ok()) return std::make_unique<Peer>(this, peer);
    if (s.code() != absl::StatusCode::kUnavailable) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return Prefix(s, StrCat("connecting to '", address, "':"));
}

void Peer::Close() {
  Inside inside;
  if (peer_) endpoint_->role().def.close_peer(endpoint_->host(), peer_);
  peer_ = nullptr;
}
Status Peer::Call(uint64_t id, Parcel* p) {
  Padded<tw_message> padded(RecordSize<tw_message>());
  tw_message& m = padded.c;
  m.head = p->head.data();
  m.head_bytes = p->head.size();
  m.body = p->body.data();
  m.bytes = p->body.size();
  m.arg = p;
  m.place = PlaceAnswer;
  m.done = TakeAnswer;
  Inside inside;
  return FromC(endpoint_->role().def.call(endpoint_->host(), peer_, id, &m));
}
void Peer::Cancel(uint64_t id) {
  Inside inside;
  endpoint_->role().def.cancel(endpoint_->host(), peer_, id);
}

}  // namespace thalweg::conformance
