#include "connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "endpoint.h"

namespace thalweg::grpc_transport {
namespace {

constexpr size_t kBulkLines = 2;  // each a connection to the peer: a single one may have only its window in flight
constexpr size_t kLines = 1 + kBulkLines;
constexpr size_t kCalls = 1 << 14;  // that one peer may have pending
// Bytes of heads of answers that a peer has not taken, beyond which its connection ends: a refusal
// consists only of a head, and no account pays for it. This is what kCalls calls take on average.
constexpr uint64_t kHeads = kCalls << 9;  // 8 MiB

// Bodies of at most this size go with their heads; through a ring also values of 64 KiB with their
// heads.
constexpr uint64_t Small(bool by_ring) { return by_ring ? 80 << 10 : 64 << 10; }

}  // namespace

Connection::Connection(Endpoint* endpoint, bool mine, bool local, std::string name, uint32_t role, std::string id)
    : endpoint_(endpoint), mine_(mine), local_(local), name_(std::move(name)), id_(std::move(id)), role_(role), held_(mine) {
  lines_.reserve(kLines);  // so that lines stay in place while other threads use them
}

Connection::~Connection() {
  lines_.clear();
  ring_.reset();
  endpoint_->Gone();
}

void Connection::Counted(bool by_ring) { endpoint_->Counted(by_ring); }

tw_status* Connection::Fail(End how) const {
  switch (how) {
    case End::kCancelled: return endpoint_->Fail(TW_CANCELLED, name_, "is not waited for any more");
    case End::kDenied: return endpoint_->Fail(TW_PERMISSION_DENIED, name_, why_);
    default: return endpoint_->Fail(TW_UNAVAILABLE, name_, "is lost: " + why_);
  }
}

Poller& Connection::poller() const { return endpoint_->poller(); }

// ---- Lines ----

void Connection::OpenLine(int fd) {
  if (fd >= 0) own_user_ = true;
  std::string why;
  grpc_channel* channel = own_user_ ? endpoint_->NewOwnChannel(name_, fd, &why) : endpoint_->NewChannel(name_, &why);
  if (!channel) return Shut(End::kLost, why);
  grpc_call* call = grpc_channel_create_call(channel, nullptr, GRPC_PROPAGATE_DEFAULTS, endpoint_->queue(),
                                             grpc_slice_from_static_string(kMethod), nullptr, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr);
  if (Line* line = Add(channel, !own_user_, call)) {
    const bool rings = local_ && endpoint_->rings();
    line->Begin({{"thalweg-protocol", kProtocol},
                 {"thalweg-connection", id_},
                 {"thalweg-token", endpoint_->token()},
                 {kAsksForRings, rings ? "1" : "0"}});
  } else {
    grpc_call_unref(call);
    grpc_channel_destroy(channel);
  }
}

bool Connection::AddLine(grpc_call* call) {
  Line* line = Add(nullptr, false, call);
  if (line) line->Accept();
  return line != nullptr;
}

// Returns NULL if the connection has ended, or has as many lines as it may.
Line* Connection::Add(grpc_channel* channel, bool connects, grpc_call* call) {
  std::lock_guard lock(mu_);
  if (shut() || lines_.size() >= kLines) return nullptr;
  return lines_.emplace_back(std::make_unique<Line>(this, lines_.size(), channel, connects, call)).get();
}

void Connection::ProvenBy(const std::string& serial) {
  if (serial.empty()) return;
  std::lock_guard lock(mu_);
  serials_.push_back(serial);
}

void Connection::LineBegan(size_t index, grpc_call* call) {
  if (mine_ && endpoint_->proves()) ProvenBy(IdentityOf(call).serial);
  if (mine_ && index == 0) endpoint_->Reached(name_);
}

void Connection::LineEnded(size_t index, grpc_status_code status, const std::string& details) {
  bool begun;
  {
    std::lock_guard lock(mu_);
    begun = lines_[index]->begun();
    if (index > 0 && !begun) return;  // then large messages use the line of the small ones
  }
  HearTheLast();
  if (!mine_) return Shut(End::kLost, "its stream has ended");
  std::string why = details.empty() ? "its stream has ended" : details;
  const bool denied = status == GRPC_STATUS_UNAUTHENTICATED || status == GRPC_STATUS_PERMISSION_DENIED;
  const bool somebody = !begun && !denied && details.find("Failed to connect to remote host") == details.npos;
  if (somebody && !own_user_ && endpoint_->token().empty()) why += "; a task with `credentials` hangs up on who has none";
  if (somebody && !endpoint_->token().empty()) {  // gRPC does not report which
    why += "; one side may not accept the other's certificate, for its dates, authority or hosts, or have another time: see the task's log";
  }
  // A refusal has begun, too: its answer has metadata. The two events come in either order.
  if (!begun || denied) endpoint_->Failed(name_, denied ? TW_PERMISSION_DENIED : TW_UNAVAILABLE, why);
  Shut(denied ? End::kDenied : End::kLost, why);
}

// REQUIRES: mu.
Outbox* Connection::SmallWay() { return ring_ && ring_->in_use() ? static_cast<Outbox*>(ring_.get()) : lines_[0].get(); }

// REQUIRES: mu.
Outbox* Connection::WayFor(uint64_t bytes, Exchange* x) {
  x->way = SmallWay();
  const bool big = bytes > Small(x->way == ring_.get());
  x->shared = big && out_state_ == Sharing::kGood;
  if (!big || x->shared) return x->way;
  WantBulkLines();
  Line* best = nullptr;  // the large-message line with the least load
  for (size_t i = 1; i < lines_.size(); ++i) {
    if (lines_[i]->begun() && (!best || lines_[i]->load() < best->load())) best = lines_[i].get();
  }
  return x->way = best ? best : lines_[0].get();
}

// REQUIRES: mu. The caller opens these lines, also for answers. Once shared memory is there,
// outgoing bodies may use it.
void Connection::WantBulkLines() {
  if (local_ && out_state_ == Sharing::kNone) {
    out_state_ = Sharing::kOffered;
    endpoint_->chores()->Add([weak = weak_from_this()] {
      if (auto c = weak.lock()) c->OfferSegment();
    });
  }
  if (!mine_ || std::exchange(opening_, true)) return;
  endpoint_->chores()->Add([weak = weak_from_this()] {
    auto c = weak.lock();
    if (!c) return;
    const size_t n = c->local() ? 1 : kBulkLines;  // within a machine one line serves bodies that shared memory has no room for
    for (size_t i = 0; i < n; ++i) c->OpenLine();
  });
}

// ---- Entries ----

tw_status* Connection::Call(uint64_t id, const tw_message* m) {
  auto x = std::make_shared<Exchange>(id, true, weak_from_this(), endpoint_->chores());
  x->out = *m;
  x->out_head.assign(static_cast<const char*>(m->head), m->head_bytes);
  Outbox* way;
  {
    std::lock_guard lock(mu_);
    if (shut()) return Fail(End::kLost);
    if (exchanges_.size() >= kCalls) return endpoint_->Fail(TW_RESOURCE_EXHAUSTED, name_, "takes no more calls now");
    way = WayFor(m->bytes, x.get());
    exchanges_.emplace(id, x);
    way->Queue(std::move(x));
  }
  way->Write();
  return nullptr;
}

void Connection::Cancel(uint64_t id) {
  std::shared_ptr<Exchange> x;
  Outbox* way = nullptr;
  {
    std::lock_guard lock(mu_);
    x = Find(id);
    if (!x || x->end != End::kNone) return;
    x->end = End::kCancelled;
    if (x->begun) {
      way = x->way;
      way->QueueNote(Kind::kCancel, id);
    }
  }
  if (way) way->Write();
  SettleLater(x);
}

void Connection::Answer(const std::shared_ptr<Exchange>& x, const tw_message* m) {
  Outbox* way = nullptr;
  bool ends = false;
  {
    std::lock_guard lock(mu_);
    x->out = *m;
    x->answered = true;
    ends = x->end == End::kNone && m->head_bytes > kHeads - heads_ && !std::exchange(too_many_, true);
    if (x->end == End::kNone && !too_many_) {
      x->out_head.assign(static_cast<const char*>(m->head), m->head_bytes);
      x->counted = true;
      heads_ += m->head_bytes;
      way = WayFor(m->bytes, x.get());
      way->Queue(x);
    }
  }
  if (ends) ShutLater("it has not taken " + std::to_string(kHeads) + " bytes of the heads of its answers");
  if (way) return way->Write();
  SettleLater(x);
}

void Connection::SettleLater(std::shared_ptr<Exchange> x) {
  endpoint_->chores()->Add([c = shared_from_this(), x = std::move(x)] { c->Settle(x); });
}

void Connection::SettleSoon(std::shared_ptr<Exchange> x) {
  constexpr uint64_t kMost = 8 << 10;  // bytes that may be kept for that long
  if (x->out.bytes > kMost) return SettleLater(std::move(x));
  endpoint_->chores()->AddSoon([c = shared_from_this(), x = std::move(x)] { c->Settle(x); });
}

void Connection::ShutLater(const std::string& why) {
  endpoint_->chores()->Add([c = shared_from_this(), why] { c->Shut(End::kLost, why); });
}

void Connection::Release() {
  endpoint_->chores()->Add([c = shared_from_this()] {
    {
      std::lock_guard lock(c->mu_);
      c->held_ = false;
    }
    c->Shut(End::kCancelled, "");
    c->MaybeEnd();
  });
}

// ---- Ends ----

// REQUIRES: mu. Returns true if the exchange only waits for the release of its memory.
bool Connection::Finished(const Exchange& x) const {
  if (x.mine) return x.end != End::kNone;
  return x.answered ? x.written || x.end != End::kNone : x.end != End::kNone && !x.served;
}

void Connection::Settle(const std::shared_ptr<Exchange>& x) {
  std::unique_lock lock(mu_);
  if (x->busy || x->over) return;
  if (!x->mine && x->end != End::kNone && !x->told && !x->answered) {
    x->told = x->busy = true;
    lock.unlock();
    endpoint_->config().gone(endpoint_->config().arg, x->in.id);
    lock.lock();
    x->busy = false;
  }
  if (!Finished(*x)) return;
  x->awaits_release.store(true);
  if (x->held.load() > 0) return;
  const bool good = x->mine ? x->end == End::kGood : x->written;
  tw_status* s = good || !x->out.done ? nullptr : Fail(x->end);
  x->over = true;
  if (x->counted) heads_ -= x->out_head.size();
  exchanges_.erase(x->id);
  lock.unlock();
  if (x->out.done) x->out.done(x->out.arg, s);
  MaybeEnd();
}

void Connection::Look(int seconds) {
  bool stuck = false;
  {
    std::lock_guard lock(mu_);
    for (auto& line : lines_) stuck = line->Stuck(seconds) || stuck;
    if (ring_ && ring_->in_use()) stuck = ring_->Stuck(seconds) || stuck;
    stuck = stuck && !shut();
  }
  if (stuck) Shut(End::kLost, "it has read nothing for " + std::to_string(seconds) + " s of what waits for it");
}

void Connection::Shut(End how, const std::string& why) {
  std::vector<std::shared_ptr<Exchange>> all;
  {
    std::lock_guard lock(mu_);
    if (shut()) return;
    all.reserve(exchanges_.size());  // may throw, so it comes first
    why_ = why;
    shut_ = how;
    for (auto& [id, x] : exchanges_) {
      if (x->end == End::kNone) x->end = how;
      all.push_back(x);
    }
    for (auto& line : lines_) line->Cancel();
  }
  for (auto& x : all) Settle(x);
  MaybeEnd();
}

void Connection::MaybeEnd() {
  std::vector<grpc_call*> over;
  {
    std::lock_guard lock(mu_);
    if (!shut()) return;
    for (auto& line : lines_) {
      if (grpc_call* call = line->TakeCall()) over.push_back(call);
    }
  }
  for (grpc_call* call : over) grpc_call_unref(call);
  {
    std::lock_guard lock(mu_);
    if (held_ || removed_ || !exchanges_.empty()) return;
    for (auto& line : lines_) {
      if (!line->idle()) return;
    }
    removed_ = true;
  }
  endpoint_->Remove(this, id_);
}

// ---- Incoming frames ----

// REQUIRES: mu. Returns NULL if there is none.
std::shared_ptr<Exchange> Connection::Find(uint64_t id) const {
  auto it = exchanges_.find(id);
  return it == exchanges_.end() ? nullptr : it->second;
}

bool Connection::Read(Reader* reader) {
  while (reader->rest() > 0) {
    Frame f;
    if (reader->rest() < sizeof f) return false;
    reader->Take(&f, sizeof f);
    if (f.head > TW_MESSAGE_HEAD || uint64_t{f.head} + f.here > reader->rest() || f.here > f.bytes) return false;
    switch (f.kind) {
      case Kind::kRequest:
      case Kind::kAnswer:
        if (!Begin(f, reader)) return false;
        break;
      case Kind::kPiece: {
        std::shared_ptr<Exchange> x;
        {
          std::lock_guard lock(mu_);
          x = Wanted(f.id);
          if (x && (f.here > x->rest || f.here == 0)) return false;
          if (x) x->busy = true;
        }
        reader->Take(x ? x->to : nullptr, f.here);
        if (x) Filled(x, f.here);
        break;
      }
      case Kind::kCancel: {
        std::shared_ptr<Exchange> x;
        {
          std::lock_guard lock(mu_);
          x = mine_ ? nullptr : Find(f.id);
          if (x && x->end == End::kNone) x->end = End::kCancelled;
        }
        if (x) Settle(x);
        break;
      }
      case Kind::kSegment:
      case Kind::kOpened:
      case Kind::kSlot:
      case Kind::kRead:
        if (!ReadShared(f, reader)) return false;
        break;
      case Kind::kRings:
      case Kind::kBell:
      case Kind::kHere:
        if (!ReadRings(f, reader)) return false;
        break;
      default: return false;
    }
  }
  return true;
}

bool Connection::quiet() const {
  if (!mine_ || exchanges_.size() > 1 || !sharing_.empty() || out_state_ == Sharing::kOffered) return false;
  return exchanges_.empty() || (!exchanges_.begin()->second->to && !exchanges_.begin()->second->shared);
}

// REQUIRES: mu. Returns the exchange that receives the body; NULL if its body is not wanted.
std::shared_ptr<Exchange> Connection::Wanted(uint64_t id) const {
  auto x = Find(id);
  return x && x->to && x->end == End::kNone ? x : nullptr;
}

// Returns the exchange, marked busy, whose message begins with this frame; NULL if nobody waits for
// it.
std::shared_ptr<Exchange> Connection::Expect(const Frame& f, bool* out_sense) {
  std::lock_guard lock(mu_);
  auto x = Find(f.id);
  *out_sense = mine_ == (f.kind == Kind::kAnswer);
  if (mine_) {
    *out_sense = *out_sense && !(x && x->placed);
    if (x && (x->end != End::kNone || !x->begun)) x = nullptr;
  } else {
    *out_sense = *out_sense && !x && exchanges_.size() < 2 * kCalls;
    x = nullptr;
    if (*out_sense && !shut()) {
      x = std::make_shared<Exchange>(f.id, false, weak_from_this(), endpoint_->chores());
      exchanges_.emplace(f.id, x);
    }
  }
  if (!*out_sense || !x) return nullptr;
  x->placed = x->busy = true;
  return x;
}

bool Connection::Begin(const Frame& f, Reader* reader) {
  bool sense;
  auto x = Expect(f, &sense);
  if (!sense) return false;
  if (!x) {
    reader->Take(nullptr, uint64_t{f.head} + f.here);
    return true;
  }
  Busy busy(this, x.get());
  x->in_head.resize(f.head);
  reader->Take(x->in_head.data(), f.head);
  const uint64_t id = mine_ ? f.id : endpoint_->NextId();
  x->in = {TW_SIZED(tw_incoming), id, name_.data(), name_.size(), x->in_head.data(), f.head, nullptr, f.bytes, x.get(), role_, 0};
  void *data = nullptr, *region = nullptr;
  if (mine_) {
    tw_ask_place(x->out.place, x->out.arg, &x->in, &data, &region);
  } else {
    tw_ask_place(endpoint_->config().place, endpoint_->config().arg, &x->in, &data, &region);
  }
  x->in.body = data;
  Outbox* way = nullptr;
  {
    std::lock_guard lock(mu_);
    x->to = static_cast<char*>(data);
    x->rest = data ? f.bytes : 0;
    if (mine_ && !data && f.bytes > f.here) {  // the rest need not be sent
      way = x->way;
      way->QueueNote(Kind::kCancel, x->id);
    }
    if (f.bytes > Small(reader->by_ring())) WantBulkLines();
  }
  if (way) way->Write();
  reader->Take(x->to, f.here);
  busy.Over();
  Filled(x, f.here);
  return true;
}

// Records that so many bytes of the body have arrived; when it is complete, serves the request, or
// ends the call. REQUIRES: this thread made x busy.
void Connection::Filled(const std::shared_ptr<Exchange>& x, uint64_t bytes) {
  bool serve = false;
  {
    std::lock_guard lock(mu_);
    if (x->to) {
      x->to += bytes;
      x->rest -= bytes;
    }
    if (x->rest == 0) {
      x->to = nullptr;
      if (mine_ && x->end == End::kNone) x->end = End::kGood;
      serve = !mine_ && x->end == End::kNone;
      x->served = serve;
    }
    x->busy = serve;
  }
  if (serve) {
    endpoint_->config().serve(endpoint_->config().arg, &x->in);
    std::lock_guard lock(mu_);
    x->busy = false;
  }
  Settle(x);
}

}  // namespace thalweg::grpc_transport
