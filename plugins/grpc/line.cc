#include "line.h"

#include <utility>

#include "connection.h"
#include "handover.h"

namespace thalweg::grpc_transport {
namespace {

constexpr uint64_t kMessage = 1 << 20;  // bytes of frames in a message of the stream
constexpr uint64_t kCopied = 8 << 10;   // up to this size, it is cheaper to copy a part of a body than to point to it

// Makes a slice of a body for gRPC; it keeps the exchange alive.
grpc_slice Borrow(const std::shared_ptr<Exchange>& x, const char* data, uint64_t bytes) {
  x->held.fetch_add(1);
  auto* holding = new std::shared_ptr<Exchange>(x);
  Give(holding);
  return grpc_slice_new_with_user_data(
      const_cast<char*>(data), bytes,
      [](void* arg) {
        Get(arg);
        std::unique_ptr<std::shared_ptr<Exchange>> holder(static_cast<std::shared_ptr<Exchange>*>(arg));
        (*holder)->Released();
      },
      holding);
}

// Collects the slices of a message.
class Slices final : public Package {
 public:
  Slices() : Package(kMessage) {}
  void Copy(const void* bytes, uint64_t n) override {
    Used(n);
    text_.append(static_cast<const char*>(bytes), n);
  }
  void Body(const std::shared_ptr<Exchange>& x, const char* bytes, uint64_t n) override {
    if (n <= kCopied) return Copy(bytes, n);
    Used(n);
    Flush();
    slices_.push_back(Borrow(x, bytes, n));
  }
  uint64_t bytes() const { return kMessage - room(); }
  // Returns NULL if there are none.
  grpc_byte_buffer* Take() {
    Flush();
    if (slices_.empty()) return nullptr;
    grpc_byte_buffer* buffer = grpc_raw_byte_buffer_create(slices_.data(), slices_.size());
    for (grpc_slice& s : slices_) grpc_slice_unref(s);
    return buffer;
  }

 private:
  void Flush() {
    if (!text_.empty()) slices_.push_back(grpc_slice_from_copied_buffer(text_.data(), text_.size()));
    text_.clear();
  }
  std::string text_;
  std::vector<grpc_slice> slices_;
};

}  // namespace

std::string Text(grpc_slice slice) {
  return std::string(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice));
}

Line::Line(Connection* connection, size_t index, grpc_channel* channel, bool connects, grpc_call* call)
    : Outbox(connection), index_(index), channel_(channel), connects_(connects), call_(call) {
  grpc_metadata_array_init(&initial_);
  grpc_metadata_array_init(&trailing_);
  for (auto [step, then] : {std::pair(&sent_, &Line::Sent),
                            {&received_, &Line::Received},
                            {&began_, &Line::Began},
                            {&ended_, &Line::Ended},
                            {&connected_, &Line::Connected}}) {
    step->line = this;
    step->then = then;
  }
}

Line::~Line() {
  if (call_) grpc_call_unref(call_);
  if (channel_) grpc_channel_destroy(channel_);
  grpc_metadata_array_destroy(&initial_);
  grpc_metadata_array_destroy(&trailing_);
  grpc_slice_unref(details_);
}

void Line::Turn(void (Line::*then)(bool ok), bool ok) {
  auto keep = connection_->shared_from_this();
  try {
    (this->*then)(ok);
  } catch (const std::exception&) {  // lost data would be waited for elsewhere
    connection_->Shut(End::kLost, "there is no memory for what happened to it");
  }
  Over();
}

// One pending event less; the line may be destroyed afterwards.
void Line::Over() {
  auto keep = connection_->shared_from_this();
  {
    std::lock_guard lock(connection_->mu());
    --pending_;
  }
  keep->MaybeEnd();
}

// REQUIRES: it is not idle.
void Line::Start(const grpc_op* ops, size_t n, Step* step) {
  {
    std::lock_guard lock(connection_->mu());
    ++pending_;
  }
  Give(step);
  if (grpc_call_start_batch(call_, ops, n, step, nullptr) != GRPC_CALL_OK) step->Happen(false);  // never fails: the calls keep the rules
}

void Line::Begin(const std::vector<std::pair<const char*, std::string>>& greeting) {
  std::vector<grpc_metadata> metadata;
  for (const auto& [key, value] : greeting) {
    grpc_metadata& m = metadata.emplace_back();
    m = {};
    m.key = grpc_slice_from_static_string(key);
    m.value = grpc_slice_from_copied_buffer(value.data(), value.size());
  }
  grpc_op begin[2] = {};
  begin[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  begin[0].data.send_initial_metadata.count = metadata.size();
  begin[0].data.send_initial_metadata.metadata = metadata.data();
  begin[1].op = GRPC_OP_RECV_INITIAL_METADATA;
  begin[1].data.recv_initial_metadata.recv_initial_metadata = &initial_;
  grpc_op end = {};
  end.op = GRPC_OP_RECV_STATUS_ON_CLIENT;
  end.data.recv_status_on_client = {&trailing_, &status_, &details_, nullptr};
  Start(&end, 1, &ended_);
  Start(begin, 2, &began_);
  Receive();
  for (grpc_metadata& m : metadata) grpc_slice_unref(m.value);
  Over();
}

void Line::Accept() {
  grpc_op begin = {}, end = {};
  begin.op = GRPC_OP_SEND_INITIAL_METADATA;
  end.op = GRPC_OP_RECV_CLOSE_ON_SERVER;
  end.data.recv_close_on_server.cancelled = &closed_;
  Start(&end, 1, &ended_);
  Start(&begin, 1, &began_);
  Receive();
  Over();
}

void Line::Receive() {
  grpc_op op = {};
  op.op = GRPC_OP_RECV_MESSAGE;
  op.data.recv_message.recv_message = &incoming_;
  Start(&op, 1, &received_);
}

// ---- Sending ----

// REQUIRES: the lock. Returns false if there is nothing to send now.
bool Line::Gather() {
  if (sending_ > 0 || connection_->shut()) return false;
  Slices message;
  Pack(&message, &flying_);
  outgoing_ = message.Take();
  if (!outgoing_) return false;
  sending_ = message.bytes();
  ++pending_;  // from here on, so that the line is not idle
  return true;
}

// REQUIRES: Gather returned true.
void Line::Send() {
  grpc_op op = {};
  op.op = GRPC_OP_SEND_MESSAGE;
  op.data.send_message.send_message = outgoing_;
  Start(&op, 1, &sent_);
  Over();
}

void Line::Write() {
  {
    std::lock_guard lock(connection_->mu());
    if (reader_ == std::this_thread::get_id() || !Gather()) return;
  }
  Send();
  ReceiveNow();
}

// Runs after a message was read: sends the frames that it caused, then requests the next message. A
// request for a message that precedes a send goes to the other side in a packet of its own, as a
// window update; a send in between carries it along. So a caller that is about to call again
// requests the next message after that call is sent.
void Line::SendAndReceive() {
  bool sends;
  {
    std::lock_guard lock(connection_->mu());
    reader_ = {};
    sends = Gather();
  }
  if (sends) Send();
  if (sends || !ReceiveLater()) Receive();
}

// Returns false if the next message is to be requested now.
bool Line::ReceiveLater() {
  if (!connection_->poller().MayDefer()) return false;
  {
    std::lock_guard lock(connection_->mu());
    if (!connection_->quiet() || connection_->shut()) return false;
    later_ = true;
    since_ = std::chrono::steady_clock::now();
    if (std::exchange(listed_, true)) return true;
  }
  connection_->poller().Defer(connection_->shared_from_this(), this);
  return true;
}

// Requests the next message unless that was done.
void Line::ReceiveNow() {
  {
    std::lock_guard lock(connection_->mu());
    if (!std::exchange(later_, false) || connection_->shut()) return;
    ++pending_;
  }
  Receive();
  Over();
}

bool Line::Expire(bool now) {
  constexpr auto kPatience = std::chrono::milliseconds(1);
  {
    std::lock_guard lock(connection_->mu());
    if (later_ && !now && !connection_->shut() && std::chrono::steady_clock::now() - since_ < kPatience) return false;
    listed_ = false;
  }
  ReceiveNow();
  return true;
}

void Line::Sent(bool ok) {
  std::vector<std::shared_ptr<Exchange>> flying;
  grpc_byte_buffer* message;
  {
    std::lock_guard lock(connection_->mu());
    sending_ = 0;
    flying.swap(flying_);
    message = std::exchange(outgoing_, nullptr);
    for (auto& x : flying) x->written = ok;
  }
  grpc_byte_buffer_destroy(message);
  if (!ok) return;  // the end of the stream is reported separately
  Write();
  for (auto& x : flying) connection_->Settle(x);
}

// ---- Receiving ----

void Line::Received(bool ok) {
  grpc_byte_buffer* message = std::exchange(incoming_, nullptr);
  if (!message) return;  // the end of the stream is reported separately
  if (ok) {
    {
      std::lock_guard lock(connection_->mu());
      reader_ = std::this_thread::get_id();
    }
    bool sense;
    {
      std::lock_guard one_at_a_time(connection_->reading());
      Reader reader(message);
      sense = connection_->Read(&reader);
    }
    if (!sense) connection_->Shut(End::kLost, "it talks nonsense");
    connection_->Counted(false);
    SendAndReceive();  // last: another thread may take the next message
  }
  grpc_byte_buffer_destroy(message);
}

void Line::Began(bool ok) {
  if (!ok) return;
  {
    std::lock_guard lock(connection_->mu());
    if (is_over_) return;  // another thread has handled the end first
    begun_ = true;
  }
  connection_->LineBegan(index_, call_);
}

void Line::Ended(bool) {
  {
    std::lock_guard lock(connection_->mu());
    is_over_ = true;
  }
  AwaitConnected();
  connection_->LineEnded(index_, status_, channel_ ? Text(details_) : "");
}

// gRPC 1.51 leaks the socket of a channel that is destroyed after its handshake and before the
// peer's first frame (the subchannel drops the transport that it receives without closing it): both
// sides then keep it for the life of the process. So a channel that is still connecting is kept
// until it has connected or failed, for a second at most.
void Line::AwaitConnected() {
  if (!connects_ || grpc_channel_check_connectivity_state(channel_, 0) != GRPC_CHANNEL_CONNECTING) return;
  {
    std::lock_guard lock(connection_->mu());
    ++pending_;
  }
  Give(&connected_);
  const gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(1, GPR_TIMESPAN));
  grpc_channel_watch_connectivity_state(channel_, GRPC_CHANNEL_CONNECTING, until, connection_->poller().queue(), &connected_);
}

void Line::Connected(bool) {}  // ending the wait is enough

}  // namespace thalweg::grpc_transport
