// The parts of a connection that use memory shared with the peer.
#include <algorithm>
#include <cstring>
#include <utility>

#include "connection.h"
#include "endpoint.h"

namespace thalweg::grpc_transport {

// ---- Segments, for large bodies ----

void Connection::OfferSegment() {
  auto segment = Segment::Make();
  Line* line = nullptr;
  {
    std::lock_guard lock(mu_);
    if (segment && !shut()) {
      out_ = std::move(segment);
      line = lines_[0].get();
      line->QueueNote(Kind::kSegment, 0, 0, {reinterpret_cast<const char*>(&out_->name()), sizeof out_->name()});
    }
  }
  if (line) line->Write();
}

// REQUIRES: mu. Returns kSlots if there is none.
uint32_t Connection::FreeSlot() const {
  uint32_t slot = 0;
  while (slot < kSlots && (taken_ & 1u << slot)) ++slot;
  return slot;
}

// REQUIRES: mu. x's first frame is on its way.
bool Connection::ShareNow(Exchange* x) {
  constexpr uint64_t kMoment = 256 << 10;  // bytes that cost less to copy than a wake-up of the copying thread
  const uint32_t slot = FreeSlot();
  if (x->out.bytes > kMoment || slot == kSlots || !sharing_.empty()) return false;
  std::memcpy(out_->slot(slot), x->out.body, x->out.bytes);
  taken_ |= 1u << slot;
  x->sent = x->out.bytes;
  x->way->QueueNote(Kind::kSlot, x->id, uint64_t{slot} << 32 | x->out.bytes);
  return true;
}

// REQUIRES: mu. x's first frame is on its way.
void Connection::Share(std::shared_ptr<Exchange> x) {
  sharing_.push_back(std::move(x));
  WakeCopies();
}

// REQUIRES: mu.
void Connection::WakeCopies() {
  if (sharing_.empty() || std::exchange(copying_, true)) return;
  endpoint_->chores()->Add([weak = weak_from_this()] {
    auto c = weak.lock();
    if (!c) return;
    try {
      c->Copy();
    } catch (const std::exception&) {  // the peer would wait for the rest of the bodies
      c->Shut(End::kLost, "there is no memory for what happened to it");
    }
  });
}

// Runs on the chores' thread: fills free slots, with a part of each body in turn, until none is
// free.
void Connection::Copy() {
  for (;;) {
    std::shared_ptr<Exchange> x;
    const char* from = nullptr;
    uint64_t bytes = 0;
    uint32_t slot = 0;
    {
      std::lock_guard lock(mu_);
      while (!sharing_.empty() && sharing_.front()->end != End::kNone) sharing_.pop_front();
      slot = FreeSlot();
      if (sharing_.empty() || slot == kSlots) {
        copying_ = false;
        return;
      }
      x = std::move(sharing_.front());
      sharing_.pop_front();
      from = static_cast<const char*>(x->out.body) + x->sent;
      bytes = std::min(kSlotBytes, x->out.bytes - x->sent);
      taken_ |= 1u << slot;
      x->held.fetch_add(1);
    }
    std::memcpy(out_->slot(slot), from, bytes);
    {
      std::lock_guard lock(mu_);
      x->sent += bytes;
      x->way->QueueNote(Kind::kSlot, x->id, uint64_t{slot} << 32 | bytes);
      if (x->sent < x->out.bytes) {
        sharing_.push_back(x);
      } else if (!x->mine) {
        x->written = true;
      }
    }
    x->way->Write();
    x->held.fetch_sub(1);
    Settle(x);
  }
}

// Reads a frame about shared memory. Returns false if it is malformed.
bool Connection::ReadShared(const Frame& f, Reader* reader) {
  Line* line = lines_[0].get();
  if (f.kind == Kind::kSegment) {
    MemoryName name;
    if (f.head != sizeof name || std::exchange(in_offered_, true)) return false;
    reader->Take(&name, sizeof name);
    in_ = local_ ? Segment::Open(name) : nullptr;
    std::lock_guard lock(mu_);
    line->QueueNote(Kind::kOpened, 0, in_ != nullptr);
  } else if (f.kind == Kind::kOpened) {
    std::lock_guard lock(mu_);
    if (out_state_ != Sharing::kOffered || !out_) return false;
    out_state_ = f.bytes == 1 ? Sharing::kGood : Sharing::kRefused;
    out_->Hide();
  } else if (f.kind == Kind::kRead) {
    std::lock_guard lock(mu_);
    if (f.bytes >= kSlots || !(taken_ & 1u << f.bytes)) return false;
    taken_ &= ~(1u << f.bytes);
    WakeCopies();
    return true;
  } else {
    return ReadSlot(f);
  }
  line->Write();
  return true;
}

bool Connection::ReadSlot(const Frame& f) {
  const uint64_t slot = f.bytes >> 32, bytes = f.bytes & 0xffffffff;
  if (!in_ || slot >= kSlots || bytes == 0 || bytes > kSlotBytes) return false;
  std::shared_ptr<Exchange> x;
  {
    std::lock_guard lock(mu_);
    x = Wanted(f.id);
    if (x && bytes > x->rest) return false;
    if (x) x->busy = true;
  }
  Busy busy(this, x.get());
  if (x) std::memcpy(x->to, in_->slot(uint32_t(slot)), bytes);
  Outbox* way;
  {
    std::lock_guard lock(mu_);
    way = SmallWay();
    way->QueueNote(Kind::kRead, 0, slot);
  }
  way->Write();
  busy.Over();
  if (x) Filled(x, bytes);
  return true;
}

// ---- Rings, for small messages ----

// Runs on the chores' thread of the called side, which makes the memory.
void Connection::OfferRings() {
  auto poller = endpoint_->rings();
  if (!poller) return;
  RingNames names;
  auto ring = RingLine::Make(this, std::move(poller), &names);
  if (!ring) return;
  Line* line;
  {
    std::lock_guard lock(mu_);
    ring_ = std::move(ring);  // in any case: it may be called already
    if (shut()) return;
    line = lines_[0].get();
    line->QueueNote(Kind::kRings, 0, 0, {reinterpret_cast<const char*>(&names), sizeof names});
  }
  line->Write();
}

// Reads a frame about rings. Returns false if it is malformed.
bool Connection::ReadRings(const Frame& f, Reader* reader) {
  RingNames theirs, ours;
  const bool named = f.head == sizeof theirs;
  if (f.here != 0 || (f.head != 0 && !named)) return false;
  reader->Take(named ? &theirs : nullptr, f.head);
  if (f.kind == Kind::kRings) {
    if (!mine_ || !named || std::exchange(rings_told_, true)) return false;
    auto poller = local_ ? endpoint_->rings() : nullptr;
    auto ring = poller ? RingLine::Open(this, std::move(poller), theirs, &ours) : nullptr;
    const uint64_t bytes = ring ? sizeof ours : 0;
    {
      std::lock_guard lock(mu_);
      ring_ = std::move(ring);
      lines_[0]->QueueNote(Kind::kBell, 0, 0, {reinterpret_cast<const char*>(&ours), bytes});
    }
    lines_[0]->Write();
  } else if (f.kind == Kind::kBell) {
    if (mine_ || !ring() || std::exchange(rings_told_, true)) return false;
    if (!ring()->Meet(named ? &theirs : nullptr)) return true;
    {
      std::lock_guard lock(mu_);
      ring_->Use();
      ring_->QueueNote(Kind::kHere, 0);
    }
    ring_->Write();
  } else {
    if (!mine_ || !ring()) return false;
    std::lock_guard lock(mu_);
    ring_->Use();
  }
  return true;
}

RingLine* Connection::ring() {
  std::lock_guard lock(mu_);
  return ring_.get();
}

// Reads what the peer had written when its stream ended. The limit is for a foreign peer, which may
// keep writing.
void Connection::HearTheLast() {
  constexpr int kMost = 256;
  RingLine* last = ring();
  for (int i = 0; last && i < kMost && last->Hear(); ++i) {
  }
}

}  // namespace thalweg::grpc_transport
