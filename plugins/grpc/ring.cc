#include "ring.h"

#include <cstring>

namespace thalweg::grpc_transport {
namespace {

// Each record is preceded by its length in bytes, or by kLap: continue at the start. Both take one
// word.
constexpr uint64_t kWord = 8;
constexpr uint64_t kLap = ~uint64_t{0};
constexpr uint64_t kNear = 4 << 10;  // an empty ring starts over once it has come this far
static_assert(kRingBytes >= 4 * (kWord + kRecord));

uint64_t Place(uint64_t at) { return at % kRingBytes; }
uint64_t NextLap(uint64_t at) { return at - Place(at) + kRingBytes; }
uint64_t Padded(uint64_t n) { return (n + kWord - 1) / kWord * kWord; }

}  // namespace

// Returns the bytes that the reader has freed.
uint64_t RingWriter::Room() {
  uint64_t read = state_->read.load(std::memory_order_seq_cst);
  if (read == skipped_at_) read = skipped_to_;  // it had read everything, and does not know yet of the skipped part
  const uint64_t used = at_ - read;
  if (used > kRingBytes) broken_ = true;
  return broken_ ? 0 : kRingBytes - used;
}

// Skips to the next lap. Behind unread records, a word among the records says so, and the skipped
// bytes are not free before these are read. In an empty ring everything is free: skipped_at says
// so, beside the records; there can be one such skip at a time. The reader learns of either kind
// with the next record.
void RingWriter::Skip(bool is_empty) {
  if (is_empty) {
    skipped_at_ = at_;
    skipped_to_ = NextLap(at_);
    state_->skipped_at.store(at_, std::memory_order_relaxed);
  } else {
    std::memcpy(data_ + Place(at_), &kLap, kWord);
  }
  at_ = NextLap(at_);
}

char* RingWriter::Begin() {
  uint64_t room = Room();
  const bool is_empty = room == kRingBytes && at_ != skipped_to_;
  const uint64_t left = kRingBytes - Place(at_);
  if (is_empty && Place(at_) >= kNear) {
    Skip(true);
  } else if (left < kWord + kRecord) {
    if (room < left) return nullptr;
    Skip(false);
    room -= left;
  }
  return room < kWord + kRecord ? nullptr : data_ + Place(at_) + kWord;
}

void RingWriter::End(uint64_t n) {
  std::memcpy(data_ + Place(at_), &n, kWord);
  at_ += kWord + Padded(n);
  state_->written.store(at_, std::memory_order_release);
}

bool RingWriter::Wait() {
  state_->waits.store(1, std::memory_order_seq_cst);
  return Room() < 2 * (kWord + kRecord);  // also if the end of a lap is in the way
}

bool RingReader::Broken() {
  broken_ = true;
  return false;
}

bool RingReader::Front(const char** out_record, uint64_t* out_bytes) {
  const uint64_t written = state_->written.load(std::memory_order_acquire);
  if (broken_ || written == at_) return false;
  if (Place(at_) != 0 && state_->skipped_at.load(std::memory_order_relaxed) == at_) at_ = NextLap(at_);
  if (written - at_ > kRingBytes || written % kWord != 0 || written == at_) return Broken();
  uint64_t bytes;
  std::memcpy(&bytes, data_ + Place(at_), kWord);
  if (bytes == kLap) {
    at_ = NextLap(at_);
    if (written - at_ > kRingBytes || written == at_) return Broken();  // a lap mark is always followed by a record
    std::memcpy(&bytes, data_, kWord);
  }
  if (bytes == 0 || bytes > kRecord) return Broken();
  next_ = at_ + kWord + Padded(bytes);
  if (next_ - at_ > written - at_ || Place(at_) + (next_ - at_) > kRingBytes) return Broken();
  *out_record = data_ + Place(at_) + kWord;
  *out_bytes = bytes;
  return true;
}

void RingReader::Pop() {
  at_ = next_;
  state_->read.store(at_, std::memory_order_release);
}

bool RingReader::WriterWaits() {
  state_->read.store(at_, std::memory_order_seq_cst);  // before the check: the writer sets `waits`, then reads this
  return state_->waits.load(std::memory_order_seq_cst) != 0 && state_->waits.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace thalweg::grpc_transport
