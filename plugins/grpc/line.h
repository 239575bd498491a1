// Line: a stream of gRPC that carries frames both ways. What has to go out is gathered while a message is on its way, and goes with the
// next; bodies go as slices that point to them.
// Threads: the connection's lock guards it; nothing of gRPC is called under it that may call back.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "outbox.h"
#include "poller.h"

namespace thalweg::grpc_transport {

class Line final : public Outbox, private Poller::Chore {
 public:
  // channel: taken; NULL at the side that was called. connects: it has yet to reach the peer. call: taken.
  Line(Connection* connection, size_t index, grpc_channel* channel, bool connects, grpc_call* call);
  ~Line() override;
  Line(const Line&) = delete;
  // The caller's side: what the other side needs to know before it lets the stream in.
  void Begin(const std::vector<std::pair<const char*, std::string>>& greeting);
  void Accept();
  bool begun() const { return begun_; }        // the other side has let it in
  bool idle() const { return pending_ == 0; }  // nothing more happens to it
  uint64_t load() const { return waiting() + sending_; }
  // What is under way ends soon.
  void Cancel() {
    if (call_) grpc_call_cancel(call_, nullptr);
  }
  // The call, once it is idle; NULL before, and again. gRPC keeps slices for as long as there is one that knows it.
  grpc_call* TakeCall() { return idle() ? std::exchange(call_, nullptr) : nullptr; }
  // Unless a message is on its way, or this thread reads one of this line: then it goes when that is read.
  void Write() override;

 private:
  struct Step final : Event {
    Line* line = nullptr;
    void (Line::*then)(bool ok) = nullptr;
    void Happen(bool ok) override { line->Turn(then, ok); }
  };
  void Over();
  void Turn(void (Line::*then)(bool ok), bool ok);
  void Start(const grpc_op* ops, size_t n, Step* step);
  void Receive();
  void SendAndReceive();
  bool ReceiveLater();
  void ReceiveNow();
  bool Expire(bool now) override;
  bool Gather();
  void Send();
  void Sent(bool ok);
  void Received(bool ok);
  void Began(bool ok);
  void Ended(bool ok);
  void AwaitConnected();
  void Connected(bool ok);

  const size_t index_;
  grpc_channel* const channel_;
  const bool connects_;
  grpc_call* call_;
  Step sent_, received_, began_, ended_, connected_;
  int pending_ = 1;  // events that are to come, and what begins it
  bool begun_ = false, is_over_ = false;
  uint64_t sending_ = 0;    // bytes of the message that is on its way; 0: none
  std::thread::id reader_;  // who reads a message; none: nobody
  // The next message is not asked for yet: `later_` since then, `listed_` with the poller.
  bool later_ = false, listed_ = false;
  std::chrono::steady_clock::time_point since_;
  std::vector<std::shared_ptr<Exchange>> flying_;  // answers whose last byte is on its way
  grpc_byte_buffer* outgoing_ = nullptr;
  grpc_byte_buffer* incoming_ = nullptr;
  grpc_metadata_array initial_ = {}, trailing_ = {};
  grpc_status_code status_ = GRPC_STATUS_OK;
  grpc_slice details_ = grpc_empty_slice();
  int closed_ = 0;
};

std::string Text(grpc_slice slice);

}  // namespace thalweg::grpc_transport
