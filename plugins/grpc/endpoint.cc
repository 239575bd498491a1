#include "endpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>

#include "address.h"
#include "handover.h"
#include "own_user.h"

namespace thalweg::grpc_transport {
namespace {

constexpr size_t kConnections = 4096;                    // incoming ones, and as many outgoing ones
constexpr size_t kConnectionsOfOne = 1024;               // incoming ones with one name
constexpr int kLargestMessage = 4 << 20;                 // bytes; bodies come in smaller pieces
constexpr int kDefaultSpin = 0;                          // microseconds
constexpr auto kLook = std::chrono::milliseconds(1000);  // between two checks for revoked peers and peers that read nothing
constexpr auto kFirstBackoff = std::chrono::milliseconds(20), kLastBackoff = std::chrono::milliseconds(1000);

grpc_arg Number(const char* key, int value) {
  grpc_arg a = {};
  a.type = GRPC_ARG_INTEGER;
  a.key = const_cast<char*>(key);
  a.value.integer = value;
  return a;
}

// A peer that does not answer even a ping is lost after ten seconds.
std::vector<grpc_arg> CommonArgs() {
  return {Number(GRPC_ARG_KEEPALIVE_TIME_MS, 5000),
          Number(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000),
          Number(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
          Number(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
          Number(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, kLargestMessage),
          Number(GRPC_ARG_MAX_METADATA_SIZE, 8192),
          Number(GRPC_ARG_ENABLE_CENSUS, 0),
          Number(GRPC_ARG_ENABLE_CHANNELZ, 0)};
}

std::vector<grpc_arg> ServerArgs() {
  auto all = CommonArgs();
  for (auto [key, value] : {std::pair(GRPC_ARG_MAX_CONCURRENT_STREAMS, 4),
                            {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5000},
                            {GRPC_ARG_ALLOW_REUSEPORT, 0},
                            {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},
                            {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000}}) {
    all.push_back(Number(key, value));
  }
  return all;
}

std::vector<grpc_arg> ChannelArgs() {
  auto all = CommonArgs();
  for (auto [key, value] : {std::pair(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
                            {GRPC_ARG_ENABLE_RETRIES, 0},
                            {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
                            {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
                            {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000}}) {
    all.push_back(Number(key, value));
  }
  return all;
}

std::string RandomId() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 32; ++i) id += "0123456789abcdef"[device() % 16];
  return id;
}

std::string Value(const grpc_metadata_array& metadata, const char* key) {
  for (size_t i = 0; i < metadata.count; ++i) {
    if (grpc_slice_str_cmp(metadata.metadata[i].key, key) == 0) return Text(metadata.metadata[i].value);
  }
  return "";
}

std::string PeerOf(grpc_call* call) {
  char* text = grpc_call_get_peer(call);
  std::string peer = text ? text : "";
  gpr_free(text);
  return peer;
}

// Returns "ipv4:127.0.0.1:4000" or "ipv6:%5B::1%5D:4000" without the scheme and with brackets.
std::string AddressOf(std::string peer) {
  for (const auto& [code, sign] : {std::pair("%5B", "["), {"%5D", "]"}, {"%25", "%"}}) {
    if (const size_t at = peer.find(code); at != peer.npos) peer.replace(at, 3, sign);
  }
  const size_t scheme = peer.find(':');
  return scheme == peer.npos ? "" : peer.substr(scheme + 1);
}

// Returns true for a Unix socket, or an address that other machines cannot reach.
bool IsHere(const std::string& peer) { return peer.starts_with("unix") || IsLoopback(ParseHostPort(AddressOf(peer)).host); }

int Setting(const tw_host* h, const char* key, int otherwise) {
  std::string text;
  tw_sink sink = {TW_SIZED(tw_sink), &text, [](tw_sink* s, const void* bytes, uint64_t n) -> tw_status* {
                    static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), n);
                    return nullptr;
                  }};
  if (tw_status* s = h->setting(h, key, std::strlen(key), &sink)) {
    h->status->release(s);
    return otherwise;
  }
  return std::clamp(std::atoi(text.c_str()), 0, 10000);
}

}  // namespace

// Waits for the next incoming stream.
struct Endpoint::Accept final : Event {
  explicit Accept(Endpoint* e) : endpoint(e) { grpc_metadata_array_init(&metadata); }
  ~Accept() { grpc_metadata_array_destroy(&metadata); }
  static void Next(Endpoint* e) {
    auto* a = new Accept(e);
    Give(a);
    const grpc_call_error error = grpc_server_request_registered_call(e->server_->get(), e->server_->method(), &a->call, &a->deadline,
                                                                      &a->metadata, nullptr, e->queue(), e->queue(), a);
    if (error != GRPC_CALL_OK) delete a;
  }
  void Happen(bool ok) override {
    std::unique_ptr<Accept> self(this);
    if (!ok) return;  // the server ends
    Next(endpoint);
    endpoint->Admit(call, metadata);
  }
  Endpoint* const endpoint;
  grpc_call* call = nullptr;
  gpr_timespec deadline = {};
  grpc_metadata_array metadata = {};
};

// ---- Beginning ----

std::shared_ptr<Poller> Instance::TakePoller(int spin_us) {
  std::lock_guard lock(mu_);
  auto poller = poller_.lock();
  if (!poller) poller_ = poller = std::make_shared<Poller>(spin_us);
  return poller;
}

std::shared_ptr<RingPoller> Instance::TakeRings(int spin_us) {
  std::lock_guard lock(mu_);
  auto rings = rings_.lock();
  if (!rings) rings_ = rings = RingPoller::Make(spin_us);
  return rings;
}

Endpoint::Endpoint(const tw_host* h, Instance* instance, const tw_endpoint_config* c)
    : h_(h),
      config_(*c),
      instance_(instance),
      open_(c->flags & TW_ENDPOINT_OPEN),
      calls_only_(c->flags & TW_ENDPOINT_CALLS),
      shares_memory_(Setting(h, "shared_memory", 1) != 0),
      spin_us_(Setting(h, "spin_us", kDefaultSpin)),
      slow_reader_s_(std::max(Setting(h, "slow_reader_s", 60), 1)),
      log_(std::make_shared<Log>(h)),
      chores_(std::make_shared<Chores>()) {
  const NoSignals quiet;  // for threads of gRPC
  QuietGrpc();
  grpc_init();
  poller_ = instance->TakePoller(spin_us_);
  may_ring_ = Setting(h, "ring", 1) != 0;
}

std::shared_ptr<RingPoller> Endpoint::rings() {
  std::lock_guard lock(mu_);
  if (may_ring_ && !rings_) rings_ = instance_->TakeRings(spin_us_);
  may_ring_ = rings_ != nullptr;
  return rings_;
}

bool Endpoint::Lend(uint64_t ns, uint32_t (*over)(void* arg), void* arg) {
  std::shared_ptr<RingPoller> rings;
  {
    std::lock_guard lock(mu_);
    rings = rings_;
  }
  const uint64_t by_ring = by_ring_.exchange(0, std::memory_order_relaxed), by_line = by_line_.exchange(0, std::memory_order_relaxed);
  if (by_ring + by_line > 0) lends_to_rings_ = by_ring >= by_line;
  if (rings && rings->any() && lends_to_rings_) return rings->Lend(ns, over, arg);
  return poller_->Lend(ns, over, arg);
}

void Endpoint::Wake() {
  std::shared_ptr<RingPoller> rings;
  {
    std::lock_guard lock(mu_);
    rings = rings_;
  }
  if (rings) rings->Wake();
  poller_->Wake();
}

tw_status* Endpoint::Fail(uint32_t code, const std::string& who, const std::string& what) const {
  const std::string text = "grpc transport: '" + who + "' " + what;
  return h_->status->make(h_, code, text.data(), text.size(), nullptr);
}

tw_status* Endpoint::Forked(const tw_host* h) {
  const std::string text =
      "grpc transport: this process was forked from one that has connections, and they do not survive that; start the child as a program "
      "of its own (exec, or `spawn` in Python)";
  return h->status->make(h, TW_FAILED_PRECONDITION, text.data(), text.size(), nullptr);
}

tw_status* Endpoint::Listen(const tw_host* h, Instance* instance, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint) {
  // gRPC's wake-up descriptors are shared with forked children: their use in a child would affect
  // the parent.
  static const common::Origin of_grpc;
  if (!of_grpc.here()) return Forked(h);
  std::unique_ptr<Endpoint> e(new Endpoint(h, instance, c));
  std::string at;
  tw_status* s = e->Open({c->address, size_t(c->address_len)}, {c->credential, size_t(c->credential_len)}, &at);
  if (!s) s = bound->put(bound, at.data(), at.size());
  if (s) {
    e->Close();
    return s;
  }
  *out_endpoint = e.release();
  return nullptr;
}

tw_status* Endpoint::Open(const std::string& address, const std::string& credential, std::string* bound) {
  if (!credential.empty()) {
    credentials_ = std::make_shared<Credentials>(credential);
    const std::string wrong = credentials_->Refresh();
    if (!wrong.empty()) return Fail(TW_INVALID_ARGUMENT, credential, "are no credentials: " + wrong + "; see thalweg cluster init");
  }
  chores_->Every(kLook, [this] { Look(); });
  if (calls_only_ && address.empty()) return nullptr;
  return OpenServer(address.empty() ? "127.0.0.1:0" : address, bound);
}

tw_status* Endpoint::OpenServer(const std::string& address, std::string* bound) {
  const HostPort at = ParseHostPort(address);
  if (at.port < 0) return Fail(TW_INVALID_ARGUMENT, address, "is no address; one is 'host:port'");
  if (!credentials_ && !open_ && !IsLoopback(at.host)) {
    return Fail(TW_PERMISSION_DENIED, address,
                "can be reached from other machines; give `credentials`, a folder of thalweg cluster init, or ask for `insecure`");
  }
  const bool own_user = !credentials_ && (IsLoopback(at.host) || at.host == "0.0.0.0" || at.host == "::");
  front_ = std::make_unique<Front>(log_, credentials_ || open_ ? Front::Lets::kAnybody : Front::Lets::kOwnUser,
                                   [this](int fd) { server_->Take(fd); });
  int port = 0;
  if (const std::string why = front_->Listen(at, own_user, &port); !why.empty()) {
    front_.reset();
    return Fail(TW_UNAVAILABLE, address, "cannot be listened at: " + why);
  }
  *bound = address.substr(0, address.rfind(':') + 1) + std::to_string(port);
  if (credentials_) TellOfHandshakes(log_);
  server_ = std::make_unique<Server>(
      ServerArgs(), queue(), credentials_ ? NewServerCredentials(credentials_.get()) : grpc_insecure_server_credentials_create(), kMethod);
  server_ended_ = false;
  Accept::Next(this);
  front_->Start();
  return nullptr;
}

// ---- Incoming peers ----

void Endpoint::Admit(grpc_call* call, const grpc_metadata_array& metadata) {
  const std::string from = AddressOf(PeerOf(call));
  Identity who;
  std::string wrong = front_->Stream(from) ? Know(call, metadata, &who) : "its connection opens stream after stream";
  if (wrong.empty() && !Join(call, metadata, who)) wrong = "there are too many connections";
  if (!wrong.empty()) return Deny(call, wrong);
  front_->LetIn(from);
}

// Returns empty if the peer may come in, else the reason.
std::string Endpoint::Know(grpc_call* call, const grpc_metadata_array& metadata, Identity* who) {
  const std::string protocol = Value(metadata, "thalweg-protocol"), id = Value(metadata, "thalweg-connection");
  if (credentials_) {
    *who = IdentityOf(call);
    if (!who->wrong.empty()) return who->wrong;
    (void)credentials_->Refresh();  // if the files are invalid, the last good ones stay in use
    if (credentials_->Revoked(who->serial)) return "the certificate of " + who->name + " is revoked";
    if (!SameSecret(Value(metadata, "thalweg-token"), token())) return "its token is not the cluster's";
  } else {
    who->name = open_ ? "somebody" : "a process of this user";  // the front admits nobody else
  }
  if (protocol != kProtocol) return "it speaks protocol '" + protocol.substr(0, 10) + "' and this task " + kProtocol;
  return id.size() == 32 ? "" : "its connection has no name";
}

bool Endpoint::Join(grpc_call* call, const grpc_metadata_array& metadata, const Identity& who) {
  const std::string id = Value(metadata, "thalweg-connection");
  std::shared_ptr<Connection> c;
  bool is_new = false;
  {
    std::lock_guard lock(mu_);
    if (closing_) return false;
    if (auto caller = callers_.find(id); caller != callers_.end()) {
      c = connections_.at(caller->second);
    } else {
      if (!RoomFor(who.name)) return false;
      const bool local = shares_memory_ && IsHere(PeerOf(call));
      c = std::make_shared<Connection>(this, false, local, who.name, who.role, id);
      ++alive_;
      callers_.emplace(id, c.get());
      connections_.emplace(c.get(), c);
      is_new = true;
    }
  }
  if (c->name() != who.name || !c->AddLine(call)) return false;
  c->ProvenBy(who.serial);
  if (is_new && c->local() && Value(metadata, kAsksForRings) == "1") chores_->Add([c] { c->OfferRings(); });
  return true;
}

// REQUIRES: mu. With certificates, one name must leave room for others; without, all peers have the
// same name.
bool Endpoint::RoomFor(const std::string& name) const {
  if (callers_.size() >= kConnections) return false;
  const auto same = [&](const auto& caller) { return caller.second->name() == name; };
  return !credentials_ || size_t(std::count_if(callers_.begin(), callers_.end(), same)) < kConnectionsOfOne;
}

struct Endpoint::Denial final : Event {
  void Happen(bool) override {
    grpc_call_unref(call);
    delete this;
  }
  grpc_call* call = nullptr;
  int cancelled = 0;
};

void Endpoint::Deny(grpc_call* call, const std::string& why) {
  log_->Warn("'" + PeerOf(call) + "' was turned away: " + why);
  auto* d = new Denial;
  d->call = call;
  grpc_slice details = grpc_slice_from_copied_buffer(why.data(), why.size());
  grpc_op ops[3] = {};
  ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  ops[1].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
  ops[1].data.send_status_from_server.status = GRPC_STATUS_PERMISSION_DENIED;
  ops[1].data.send_status_from_server.status_details = &details;
  ops[2].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
  ops[2].data.recv_close_on_server.cancelled = &d->cancelled;
  Give(d);
  if (grpc_call_start_batch(call, ops, 3, d, nullptr) != GRPC_CALL_OK) d->Happen(false);
  grpc_slice_unref(details);
}

void Endpoint::Look() {
  std::vector<std::shared_ptr<Connection>> all;
  {
    std::lock_guard lock(mu_);
    for (auto& [c, shared] : connections_) all.push_back(shared);
  }
  for (auto& c : all) c->Look(slow_reader_s_);
  if (credentials_) EndRevoked(all);
}

// Connections are admitted once; a list that has changed since applies to them too.
void Endpoint::EndRevoked(const std::vector<std::shared_ptr<Connection>>& all) {
  if (const std::string wrong = credentials_->RefreshRevoked(); !wrong.empty()) log_->Warn(wrong + "; what was read before stays in use");
  if (!credentials_->any_revoked()) return;
  for (auto& c : all) {
    for (const std::string& serial : c->serials()) {
      if (!credentials_->Revoked(serial)) continue;
      log_->Warn("the connection with '" + c->name() + "' is ended: its certificate is revoked");
      c->Shut(End::kLost, "its certificate is revoked");
      break;
    }
  }
}

// ---- Outgoing connections ----

grpc_channel* Endpoint::NewChannel(const std::string& address, std::string* why) {
  auto args = ChannelArgs();
  const grpc_channel_args all = {args.size(), args.data()};
  if (credentials_) {
    (void)credentials_->Refresh();  // if the files are invalid, the last good ones stay in use
    grpc_channel_credentials* how = NewChannelCredentials(credentials_);
    if (!how) *why = "its certificates make no sense";
    grpc_channel* channel = how ? grpc_channel_create(address.c_str(), how, &all) : nullptr;
    grpc_channel_credentials_release(how);
    return channel;
  }
  grpc_channel_credentials* how = grpc_insecure_credentials_create();
  grpc_channel* channel = grpc_channel_create(address.c_str(), how, &all);
  grpc_channel_credentials_release(how);
  return channel;
}

grpc_channel* Endpoint::NewOwnChannel(const std::string& address, int fd, std::string* why) {
  if (fd < 0 && MeetOwnUser(ParseHostPort(address), &fd, why) != Met::kYes) {
    if (why->empty()) *why = "it is not there any more";
    return nullptr;
  }
  auto args = ChannelArgs();
  const grpc_channel_args all = {args.size(), args.data()};
  grpc_channel_credentials* how = grpc_insecure_credentials_create();
  grpc_channel* channel = grpc_channel_create_from_fd(address.c_str(), fd, how, &all);
  grpc_channel_credentials_release(how);
  return channel;
}

// *out_fd: -1 if the peer is reached by the network.
tw_status* Endpoint::Meet(const std::string& address, int* out_fd) {
  const HostPort at = ParseHostPort(address);
  std::string why;
  const Met met = MeetOwnUser(at, out_fd, &why);
  if (met == Met::kYes || open_) return nullptr;
  if (met == Met::kOther) return Fail(TW_PERMISSION_DENIED, address, "is another user's process");
  if (met == Met::kFailed) return Fail(TW_UNAVAILABLE, address, "cannot be reached: " + why);
  if (!SomebodyListens(at)) return Fail(TW_UNAVAILABLE, address, "is not there: nobody listens");
  why =
      "connected, but there is no socket beside it for processes of this user: who listens may have `credentials`, or be a tunnel, which "
      "needs "
      "them";
  Failed(address, TW_UNAVAILABLE, why);
  return Fail(TW_UNAVAILABLE, address, why);
}

tw_status* Endpoint::Connect(const std::string& address, void** out_peer) {
  const HostPort at = ParseHostPort(address);
  if (at.port <= 0) return Fail(TW_INVALID_ARGUMENT, address, "is no address; one is 'host:port'");
  if (!credentials_ && !open_ && !IsLoopback(at.host)) {
    return Fail(TW_PERMISSION_DENIED, address,
                "is on another machine; give `credentials`, a folder of thalweg cluster init, or ask for `insecure`");
  }
  {
    std::lock_guard lock(mu_);
    if (auto b = backoff_.find(address); b != backoff_.end() && std::chrono::steady_clock::now() < b->second.until) {
      const char* what = b->second.code == TW_PERMISSION_DENIED ? "refused this process" : "could not be reached";
      return Fail(b->second.code, address, std::string(what) + " a moment ago (" + b->second.why + "), and is not tried again yet");
    }
  }
  struct Held {
    int fd = -1;
    ~Held() {
      if (fd >= 0) close(fd);
    }
  } met;
  if (!credentials_ && IsLoopback(at.host)) TW_TRY(Meet(address, &met.fd));
  std::shared_ptr<Connection> c;
  {
    std::lock_guard lock(mu_);
    if (connections_.size() - callers_.size() >= kConnections)
      return Fail(TW_RESOURCE_EXHAUSTED, address, "would be one connection too many");
    c = std::make_shared<Connection>(this, true, shares_memory_ && IsLoopback(at.host), address, TW_PEER_TASK, RandomId());
    ++alive_;
    connections_.emplace(c.get(), c);
  }
  c->OpenLine(std::exchange(met.fd, -1));
  *out_peer = c.get();
  return nullptr;
}

void Endpoint::Reached(const std::string& address) {
  std::lock_guard lock(mu_);
  backoff_.erase(address);
}

void Endpoint::Failed(const std::string& address, uint32_t code, const std::string& why) {
  std::lock_guard lock(mu_);
  if (backoff_.size() > kConnections) backoff_.clear();
  Backoff& b = backoff_[address];
  b.code = code;
  b.why = why;
  b.until = std::chrono::steady_clock::now() + std::min(kLastBackoff, kFirstBackoff * (1 << std::min(b.failures++, 10)));
}

// ---- End ----

void Endpoint::Remove(Connection* c, const std::string& id) {
  std::shared_ptr<Connection> gone;  // destroyed outside the lock
  std::lock_guard lock(mu_);
  auto it = connections_.find(c);
  if (it == connections_.end()) return;
  gone = std::move(it->second);
  connections_.erase(it);
  if (!c->mine()) callers_.erase(id);
  changed_.notify_all();
}

void Endpoint::Gone() {
  std::lock_guard lock(mu_);
  --alive_;
  changed_.notify_all();
}

struct Endpoint::ServerEnd final : Event {
  explicit ServerEnd(Endpoint* e) : endpoint(e) {}
  void Happen(bool) override {
    std::lock_guard lock(endpoint->mu_);
    endpoint->server_ended_ = true;
    endpoint->changed_.notify_all();
  }
  Endpoint* const endpoint;
};

void Endpoint::Close() {
  ServerEnd end(this);
  std::vector<std::shared_ptr<Connection>> all;
  {
    std::lock_guard lock(mu_);
    closing_ = true;
    for (auto& [c, shared] : connections_) all.push_back(shared);
  }
  for (auto& c : all) c->Release();
  all.clear();
  if (front_) front_->Stop();
  if (server_) {
    Give(&end);
    grpc_server_shutdown_and_notify(server_->get(), queue(), &end);
    grpc_server_cancel_all_calls(server_->get());
  }
  std::unique_lock lock(mu_);
  changed_.wait(lock, [this] { return alive_ == 0 && server_ended_; });
}

Endpoint::~Endpoint() {
  log_->Close();
  front_.reset();
  server_.reset();
  chores_->Stop();
  poller_.reset();
  rings_.reset();
  grpc_shutdown_blocking();
}

}  // namespace thalweg::grpc_transport
