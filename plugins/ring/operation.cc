#include "operation.h"

#include <algorithm>
#include <cstring>

#include "../common/fold.h"
#include "wire.h"

namespace thalweg::ring {
namespace {

using common::CollectiveCall;

constexpr uint64_t kSmall = 16 << 10;  // bytes whose second step costs more than sending them to all
constexpr uint64_t kBlock = 64 << 10;  // bytes that are folded at once

void CopyIfElsewhere(char* to, const char* from, uint64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

Operation::Operation(const CollectiveCall& call, uint32_t rank, uint32_t members, uint64_t window)
    : call_(call), rank_(rank), members_(members), most_window_(window), flows_(members) {
  const bool small = call_.bytes <= kSmall || members_ == 1;
  if (call_.guards) {
    PlanGuard();
    return;
  }
  switch (common::Operation(call_.task.operation)) {
    case common::Operation::kAllReduce: small ? PlanReduceWhole() : PlanReduce(); break;
    case common::Operation::kReduceScatter: PlanReduceScatter(); break;
    case common::Operation::kBroadcast: PlanBroadcast(); break;
    case common::Operation::kAllGather: PlanGather(); break;
    case common::Operation::kAllToAll: PlanAllToAll(); break;
    case common::Operation::kPermute: PlanPermute(); break;
  }
  for (Flow& f : flows_) f.granted = folds_ ? std::min(f.in1, window_) : kNoLimit;
  Fold();  // a group of one member waits for nobody
}

// ---- Plans ----

Operation::Share Operation::ShareOf(uint32_t rank) const {
  const uint64_t least = call_.task.count / members_, more = call_.task.count % members_;
  const uint64_t first = least * rank + std::min<uint64_t>(rank, more);
  return {first * call_.element, (least + (rank < more)) * call_.element};
}

void Operation::PlanReduce() {
  const Share own = ShareOf(rank_);
  for (uint32_t r = 0; r < members_; ++r) {
    if (r == rank_) continue;
    Flow& f = flows_[r];
    const Share share = ShareOf(r);
    f.from1 = call_.in + share.first;
    f.out1 = share.size;
    f.in1 = f.out2 = own.size;
    f.to2 = call_.out + share.first;
    f.in2 = share.size;
  }
  // The output may be the input. A share of the result comes back only after that share of the
  // input has reached its member, and the own share is folded block by block through other memory.
  from2_ = call_.out + own.first;
  FoldInto(call_.out + own.first, call_.in + own.first, own.size);
}

void Operation::PlanReduceWhole() {
  const char* from = call_.in;
  if (call_.out == call_.in && members_ > 1 && call_.bytes > 0) {
    copy_.reset(new char[call_.bytes]);  // some may be sent after the result is there
    std::memcpy(copy_.get(), call_.in, call_.bytes);
    from = copy_.get();
  }
  for (uint32_t r = 0; r < members_; ++r) {
    if (r == rank_) continue;
    flows_[r].from1 = from;
    flows_[r].out1 = flows_[r].in1 = call_.bytes;
  }
  FoldInto(call_.out, from, call_.bytes);
}

void Operation::PlanReduceScatter() {
  const uint64_t part = call_.bytes / members_;
  for (uint32_t r = 0; r < members_; ++r) {
    if (r == rank_) continue;
    flows_[r].from1 = call_.in + r * part;
    flows_[r].out1 = flows_[r].in1 = part;
  }
  FoldInto(call_.out, call_.in + rank_ * part, part);
}

void Operation::PlanBroadcast() {
  const uint32_t root = call_.task.root;
  const bool whole = call_.bytes <= kSmall || members_ == 2;
  const Share own = ShareOf(rank_);
  if (rank_ == root) {
    CopyIfElsewhere(call_.out, call_.in, call_.bytes);
    from2_ = call_.in + own.first;
    for (uint32_t r = 0; r < members_; ++r) {
      if (r == rank_) continue;
      const Share share = ShareOf(r);
      flows_[r].from1 = call_.in + (whole ? 0 : share.first);
      flows_[r].out1 = whole ? call_.bytes : share.size;
      flows_[r].out2 = whole ? 0 : own.size;
    }
    return;
  }
  flows_[root].to1 = call_.out + (whole ? 0 : own.first);
  flows_[root].in1 = whole ? call_.bytes : own.size;
  if (whole) return;
  relays_ = true;
  from2_ = call_.out + own.first;
  for (uint32_t r = 0; r < members_; ++r) {
    if (r == rank_) continue;
    const Share share = ShareOf(r);
    flows_[r].out2 = r == root ? 0 : own.size;
    flows_[r].to2 = call_.out + share.first;
    flows_[r].in2 = share.size;
  }
}

void Operation::PlanGather() {
  CopyIfElsewhere(call_.out + rank_ * call_.bytes, call_.in, call_.bytes);
  from2_ = call_.in;
  for (uint32_t r = 0; r < members_; ++r) {
    if (r == rank_) continue;
    flows_[r].out2 = flows_[r].in2 = call_.bytes;
    flows_[r].to2 = call_.out + r * call_.bytes;
  }
}

void Operation::PlanAllToAll() {
  const uint64_t part = call_.bytes / members_;
  CopyIfElsewhere(call_.out + rank_ * part, call_.in + rank_ * part, part);
  for (uint32_t r = 0; r < members_; ++r) {
    if (r == rank_) continue;
    flows_[r].from1 = call_.in + r * part;
    flows_[r].to1 = call_.out + r * part;
    flows_[r].out1 = flows_[r].in1 = part;
  }
}

void Operation::PlanPermute() {
  const uint32_t source = call_.sources[rank_];
  if (source == common::kNobody) std::fill_n(call_.out, call_.bytes, char{0});
  for (uint32_t r = 0; r < members_; ++r) {
    if (call_.sources[r] != rank_) continue;
    if (r == rank_) {
      CopyIfElsewhere(call_.out, call_.in, call_.bytes);
    } else {
      flows_[r].from1 = call_.in;
      flows_[r].out1 = call_.bytes;
    }
  }
  if (source == common::kNobody || source == rank_) return;
  flows_[source].to1 = call_.out;
  flows_[source].in1 = call_.bytes;
}

void Operation::PlanGuard() {
  static constexpr char kNote = 1;
  from2_ = &kNote;
  for (uint32_t r = 0; r < members_; ++r) {
    if (r == rank_) continue;
    Flow& f = flows_[r];
    f.granted = kNoLimit;
    f.out2 = f.in2 = sizeof kNote;
    f.to2 = &f.note;
  }
}

// ---- Folding ----

// Makes the windows. A window that does not hold all bytes is a multiple of the blocks in which
// bytes are folded, so that no block goes over its end.
void Operation::FoldInto(char* out, const char* own, uint64_t bytes) {
  folds_ = true;
  fold_to_ = out;
  own_ = own;
  fold_bytes_ = bytes;
  block_ = std::min(kBlock, most_window_ / 2 / 64 * 64);
  window_ = std::min(bytes, most_window_ / block_ * block_);
  if (bytes == 0) return;
  sources_.resize(members_);
  folded_block_.reset(new char[std::min(block_, bytes)]);
  if (members_ == 1) return;
  windows_.reset(new char[window_ * (members_ - 1)]);
  char* at = windows_.get();
  for (uint32_t r = 0; r < members_; ++r) {
    if (r == rank_) continue;
    flows_[r].window = at;
    at += window_;
  }
}

// Folds the blocks of which all members' bytes are here. Returns true if there was one.
bool Operation::Fold() {
  if (!folds_) return false;
  uint64_t here = fold_bytes_;
  for (uint32_t r = 0; r < members_; ++r) {
    if (r != rank_) here = std::min(here, flows_[r].got1);
  }
  const uint64_t before = folded_;
  while (folded_ < here) {
    const uint64_t size = std::min(here - folded_, block_);
    if (size < block_ && folded_ + size < fold_bytes_) break;
    for (uint32_t r = 0; r < members_; ++r) sources_[r] = r == rank_ ? own_ + folded_ : flows_[r].window + folded_ % window_;
    common::Fold(call_.task.dtype, call_.task.reduce, sources_.data(), members_, size / call_.element, folded_block_.get());
    std::memcpy(fold_to_ + folded_, folded_block_.get(), size);
    folded_ += size;
  }
  return folded_ > before;
}

bool Operation::Grant(uint32_t to) {
  Flow& f = flows_[to];
  if (!folds_ || f.granted >= f.in1) return false;
  const uint64_t most = std::min(f.in1, folded_ + window_);
  if (most < f.in1 && most - f.granted < window_ / 4) return false;
  f.granted = most;
  return true;
}

// ---- Sending ----

void Operation::Begun(uint32_t rank, uint64_t credit) {
  flows_[rank].begun = true;
  flows_[rank].credit = credit;
}

void Operation::Credit(uint32_t rank, uint64_t bytes) { flows_[rank].credit = std::max(flows_[rank].credit, bytes); }

// Bytes of stage 2 that may be sent.
uint64_t Operation::Ready2() const {
  if (call_.guards) return released_ ? kNoLimit : 0;
  return relays_ ? flows_[call_.task.root].got1 : folds_ ? folded_ : kNoLimit;
}

Operation::Bytes Operation::Take(uint32_t to, uint64_t most) {
  Flow& f = flows_[to];
  if (!f.begun) return {};
  const uint64_t until1 = std::min(f.out1, f.credit), until2 = std::min(f.out2, Ready2());
  Bytes bytes;
  if (f.sent1 < until1) {
    bytes = {1, f.from1 + f.sent1, std::min(until1 - f.sent1, most)};
    f.sent1 += bytes.size;
  } else if (f.sent2 < until2) {
    bytes = {2, from2_ + f.sent2, std::min(until2 - f.sent2, most)};
    f.sent2 += bytes.size;
  } else {
    return {};
  }
  ++f.unwritten;
  return bytes;
}

bool Operation::HasBytes(uint32_t to) const {
  const Flow& f = flows_[to];
  return f.begun && (f.sent1 < std::min(f.out1, f.credit) || f.sent2 < std::min(f.out2, Ready2()));
}

// ---- Receiving ----

bool Operation::Expects(uint32_t from, uint32_t stage, uint64_t bytes) const {
  const Flow& f = flows_[from];
  if (stage == 1) return bytes <= std::min(f.in1, f.granted) - f.got1;
  return stage == 2 && bytes <= f.in2 - f.got2;
}

Operation::Place Operation::PlaceFor(uint32_t from, uint32_t stage) const {
  const Flow& f = flows_[from];
  if (stage == 2) return {f.to2 + f.got2, f.in2 - f.got2};
  // No more than was granted: behind it, the window still holds bytes that are not folded.
  const uint64_t most = std::min(f.in1, f.granted) - f.got1;
  if (f.to1) return {f.to1 + f.got1, most};
  const uint64_t at = f.got1 % window_;
  return {f.window + at, std::min(window_ - at, most)};
}

bool Operation::Got(uint32_t from, uint32_t stage, uint64_t n) {
  Flow& f = flows_[from];
  if (stage == 2) {
    f.got2 += n;
    if (call_.guards) f.sent2 = f.out2;  // it has been released, so it need not be told
    return false;
  }
  f.got1 += n;
  return folds_ ? Fold() : relays_;
}

// Returns true if the member has not begun, or is to get more.
bool Operation::Owes(uint32_t rank) const {
  const Flow& f = flows_[rank];
  return !f.begun || f.sent1 < f.out1 || f.sent2 < f.out2 || f.unwritten > 0;
}

bool Operation::NeedsMore(uint32_t rank) const {
  const Flow& f = flows_[rank];
  if (call_.guards) return !f.begun || f.got2 < f.in2;
  return Owes(rank) || f.got1 < f.in1 || f.got2 < f.in2;
}

bool Operation::Done() const {
  for (uint32_t r = 0; r < members_; ++r) {
    if (r != rank_ && (call_.guards ? Owes(r) : NeedsMore(r))) return false;
  }
  return call_.guards ? released_ : folded_ == fold_bytes_;
}

bool Operation::AllBegun() const {
  for (uint32_t r = 0; r < members_; ++r) {
    if (r != rank_ && !flows_[r].begun) return false;
  }
  return true;
}

}  // namespace thalweg::ring
