#include "ring_line.h"

#include <cstring>
#include <new>
#include <utility>

#include "connection.h"
#include "handover.h"

namespace thalweg::grpc_transport {
namespace {

constexpr uint64_t kRingsAt = 4096;  // after both states
constexpr uint64_t kBytes = kRingsAt + 2 * kRingBytes;
constexpr int kRecords = 64;  // read at once, before other peers have their turn
static_assert(2 * sizeof(RingState) <= kRingsAt);

RingState* StateOf(const SharedMemory& m, bool of_maker) { return reinterpret_cast<RingState*>(m.data()) + (of_maker ? 0 : 1); }
char* RecordsOf(const SharedMemory& m, bool of_maker) { return m.data() + kRingsAt + (of_maker ? 0 : kRingBytes); }

class Record final : public Package {
 public:
  explicit Record(char* to) : Package(kRecord), to_(to) {}
  void Copy(const void* bytes, uint64_t n) override {
    std::memcpy(to_ + this->bytes(), bytes, n);
    Used(n);
  }
  void Body(const std::shared_ptr<Exchange>&, const char* bytes, uint64_t n) override { Copy(bytes, n); }
  uint64_t bytes() const { return kRecord - room(); }

 private:
  char* const to_;
};

}  // namespace

RingLine::RingLine(Connection* connection, std::shared_ptr<RingPoller> poller, std::unique_ptr<SharedMemory> memory, bool maker)
    : Outbox(connection),
      poller_(std::move(poller)),
      memory_(std::move(memory)),
      out_(StateOf(*memory_, maker), RecordsOf(*memory_, maker)),
      in_(StateOf(*memory_, !maker), RecordsOf(*memory_, !maker)) {}

RingLine::~RingLine() { Leave(); }

void RingLine::Leave() {
  if (number_ != kRingers) poller_->Remove(std::exchange(number_, kRingers));
}

std::unique_ptr<RingLine> RingLine::Make(Connection* connection, std::shared_ptr<RingPoller> poller, RingNames* out_names) {
  auto memory = SharedMemory::Make(kBytes);
  if (!memory) return nullptr;
  out_names->rings = memory->name();
  std::unique_ptr<RingLine> line(new RingLine(connection, std::move(poller), std::move(memory), true));
  return line->Register(out_names) ? std::move(line) : nullptr;
}

std::unique_ptr<RingLine> RingLine::Open(Connection* connection, std::shared_ptr<RingPoller> poller, const RingNames& theirs,
                                         RingNames* out_names) {
  auto memory = SharedMemory::Open(theirs.rings, kBytes, true);
  if (!memory) return nullptr;
  std::unique_ptr<RingLine> line(new RingLine(connection, std::move(poller), std::move(memory), false));
  return line->Meet(&theirs) && line->Register(out_names) ? std::move(line) : nullptr;
}

bool RingLine::Register(RingNames* out_names) {
  number_ = poller_->Add(connection_->weak_from_this(), this);
  out_names->bell = poller_->name();
  out_names->number = number_;
  return number_ != kRingers;
}

bool RingLine::Meet(const RingNames* theirs) {
  memory_->Hide();
  auto bell = theirs && theirs->number < kRingers ? Doorbell::Open(theirs->bell) : nullptr;
  if (!bell) {
    Leave();
    return false;
  }
  std::lock_guard lock(connection_->mu());
  there_ = std::move(bell);
  number_there_ = theirs->number;
  return true;
}

// ---- Sending ----

void RingLine::Write() { Flush(true); }

void RingLine::Flush(bool from_entry) {
  try {
    Send(from_entry);
  } catch (const std::exception&) {
    GiveUp();
  }
}

// Handles a lack of memory. A part of a message may be lost, so nothing may follow it: the
// connection ends; if even that needs memory that is missing, it ends at the next attempt to send
// or read.
void RingLine::GiveUp() {
  {
    std::lock_guard lock(connection_->mu());
    failed_ = true;
    reader_ = {};
  }
  try {
    connection_->ShutLater("there is no memory for what happened to it");
  } catch (const std::exception&) {
  }
}

// from_entry: called by the host, so nothing may be called back.
void RingLine::Send(bool from_entry) {
  std::vector<std::shared_ptr<Exchange>> answers;
  bool rings = false, broken = false;
  {
    std::lock_guard lock(connection_->mu());
    if (reader_ == std::this_thread::get_id() || !in_use_ || connection_->shut()) return;
    if (failed_) throw std::bad_alloc();
    while (!empty()) {
      char* to = out_.Begin();
      if (!to && (out_.broken() || out_.Wait())) break;
      if (!to) continue;
      Record record(to);
      Pack(&record, &answers);
      if (record.bytes() == 0) break;  // nobody waits for any of it
      Give(Common(memory_->name().secret[0]));
      out_.End(record.bytes());
      rings = true;
    }
    broken = out_.broken();
    for (auto& x : answers) x->written = true;
  }
  if (rings) there_->Ring(number_there_);
  if (broken) connection_->ShutLater("the memory that is shared with it holds nonsense");
  for (auto& x : answers) from_entry ? connection_->SettleSoon(x) : connection_->Settle(x);
}

// ---- Receiving ----

bool RingLine::Hear() {
  bool more = false;
  try {
    std::lock_guard one_at_a_time(connection_->reading());
    more = Read();
  } catch (const std::exception&) {
    GiveUp();
    return false;
  }
  Flush(false);
  return more;
}

// Frames that the records cause are sent together, after reading. Returns true if there may be
// more.
bool RingLine::Read() {
  {
    std::lock_guard lock(connection_->mu());
    if (connection_->shut()) return false;
    if (failed_) throw std::bad_alloc();
    reader_ = std::this_thread::get_id();
  }
  const char* record;
  uint64_t bytes;
  int n = 0;
  bool sense = true;
  for (; sense && n < kRecords && in_.Front(&record, &bytes); ++n) {
    Get(Common(memory_->name().secret[0]));
    Reader reader(record, bytes);
    sense = connection_->Read(&reader);
    in_.Pop();
  }
  const bool waits = n > 0 && in_.WriterWaits();
  Doorbell* there;
  {
    std::lock_guard lock(connection_->mu());
    reader_ = {};
    there = there_.get();
  }
  if (waits && there) there->Ring(number_there_);
  if (in_.broken()) connection_->Shut(End::kLost, "the memory that is shared with it holds nonsense");
  if (!sense) connection_->Shut(End::kLost, "it talks nonsense");
  if (n > 0) connection_->Counted(true);
  return n == kRecords;
}

}  // namespace thalweg::grpc_transport
