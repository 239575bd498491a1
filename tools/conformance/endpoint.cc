#include "tools/conformance/endpoint.h"

#include <thread>

#include "tools/conformance/guarded.h"
#include "tools/conformance/played_host.h"

namespace thalweg::conformance {
namespace {

// Where a message goes, once its head is there.
tw_status* PlaceParcel(void* arg, const void* head, uint64_t head_bytes, uint64_t bytes, void** out_data, void** out_region) {
  auto* p = static_cast<Parcel*>(arg);
  if (p->refuse) return tw_fail(p->host, TW_FAILED_PRECONDITION, TW_S("the kit has no place for it"));
  p->head.assign(static_cast<const unsigned char*>(head), static_cast<const unsigned char*>(head) + head_bytes);
  p->data.assign(bytes, 0);
  *out_data = p->data.data();
  *out_region = nullptr;
  return nullptr;
}

void TakeAnswer(void* arg, tw_status* s, const void* body, uint64_t bytes) {
  auto* a = static_cast<Answer*>(arg);
  std::lock_guard lock(a->mu);
  ++a->times;
  a->status = FromC(s);
  a->body.assign(static_cast<const unsigned char*>(body), static_cast<const unsigned char*>(body) + bytes);
  a->changed.notify_all();
}

}  // namespace

StatusOr<std::unique_ptr<Endpoint>> Endpoint::Listen(const TransportRole& role, uint64_t window) {
  std::unique_ptr<Endpoint> e(new Endpoint(role));
  Padded<tw_endpoint_config> padded(RecordSize(sizeof(tw_endpoint_config)));
  tw_endpoint_config& config = padded.c;
  config.size = sizeof config;
  config.address = config.credential = "";
  config.window = window;
  config.arg = e.get();
  config.serve = Serve;
  tw_sink bound = {TW_SIZED(tw_sink), &e->address_, [](tw_sink* to, const void* bytes, uint64_t n) -> tw_status* {
                     static_cast<std::string*>(to->user)->append(static_cast<const char*>(bytes), n);
                     return nullptr;
                   }};
  RETURN_IF_ERROR(FromC(role.def.listen(role.host, role.def.user, &config, &bound, &e->endpoint_)));
  return e;
}

Endpoint::~Endpoint() {
  {
    std::lock_guard lock(mu_);
    for (const tw_incoming& call : kept_) call.answer(host(), call.self, tw_fail(host(), TW_CANCELLED, TW_S("the kit ends")), nullptr, 0);
  }
  if (endpoint_) role_.def.close(host(), endpoint_);
}

void Endpoint::Serve(void* arg, const tw_incoming* call) {
  auto* e = static_cast<Endpoint*>(arg);
  const std::string_view method(call->method, call->method_len);
  if (method == "keep") {
    std::lock_guard lock(e->mu_);
    e->kept_.push_back(*call);
  } else if (method == "echo") {
    call->answer(e->host(), call->self, nullptr, call->body, call->bytes);
  } else {
    call->answer(e->host(), call->self, tw_fail(e->host(), TW_NOT_FOUND, TW_S("no such method")), nullptr, 0);
  }
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

void Endpoint::Abort(uint64_t step, const Status& why) {
  tw_status* s = ToC(why);
  role_.def.abort(host(), endpoint_, step, s);
  (void)FromC(s);
}

bool Answer::Wait(std::chrono::milliseconds within) {
  std::unique_lock lock(mu);
  return changed.wait_for(lock, within, [&] { return times > 0; });
}

void Peer::Close() {
  if (peer_) endpoint_->role().def.close_peer(endpoint_->host(), peer_);
  peer_ = nullptr;
}

Status Peer::Send(uint64_t step, const std::string& key, Parcel* p) {
  Padded<tw_message> padded(RecordSize(sizeof(tw_message)));
  tw_message& m = padded.c;
  m.size = sizeof m;
  m.step = step;
  m.key = key.data();
  m.key_len = key.size();
  m.head = p->head.data();
  m.head_bytes = p->head.size();
  m.data = p->data.data();
  m.bytes = p->data.size();
  m.line = p->line.get();
  m.value = 1;
  return FromC(endpoint_->role().def.send(endpoint_->host(), peer_, &m));
}

Status Peer::Receive(uint64_t step, const std::string& key, Parcel* p, int64_t deadline) {
  p->host = endpoint_->host();
  Padded<tw_receipt> padded(RecordSize(sizeof(tw_receipt)));
  tw_receipt& r = padded.c;
  r.size = sizeof r;
  r.step = step;
  r.key = key.data();
  r.key_len = key.size();
  r.arg = p;
  r.place = PlaceParcel;
  r.line = p->line.get();
  r.value = 1;
  r.deadline = deadline;
  return FromC(endpoint_->role().def.receive(endpoint_->host(), peer_, &r));
}

Status Peer::Call(const std::string& method, const Bytes& request, int64_t deadline, Answer* to) {
  return FromC(endpoint_->role().def.call(endpoint_->host(), peer_, method.data(), method.size(), request.data(), request.size(), deadline,
                                          TakeAnswer, to));
}

}  // namespace thalweg::conformance
