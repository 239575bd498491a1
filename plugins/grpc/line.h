// Line: a gRPC stream that carries frames both ways. Outgoing frames are collected while a message
// is on its way, and go with the next one; bodies are sent as slices that point to them.
// Threads: guarded by the connection's lock; gRPC functions that may call back are not called under
// it.
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
  // channel: owned; NULL on the called side. connects: the channel is still connecting. call:
  // owned.
  Line(Connection* connection, size_t index, grpc_channel* channel, bool connects, grpc_call* call);
  ~Line() override;
  Line(const Line&) = delete;
  // For the caller's side. greeting: metadata that the other side needs before it admits the
  // stream.
  void Begin(const std::vector<std::pair<const char*, std::string>>& greeting);
  void Accept();
  bool begun() const { return begun_; }        // the other side has admitted it
  bool idle() const { return pending_ == 0; }  // no event is pending
  uint64_t load() const { return waiting() + sending_; }
  // Ends pending operations soon.
  void Cancel() {
    if (call_) grpc_call_cancel(call_, nullptr);
  }
  // Returns the call once it is idle; NULL before, and after the first time. gRPC keeps slices for
  // as long as a reference to the call exists.
  grpc_call* TakeCall() { return idle() ? std::exchange(call_, nullptr) : nullptr; }
  // Sends, unless a message is on its way, or this thread is reading a message of this line: then
  // the frames go after that.
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
  int pending_ = 1;  // pending events, plus one for the start
  bool begun_ = false, is_over_ = false;
  uint64_t sending_ = 0;    // bytes of the message on its way; 0 for none
  std::thread::id reader_;  // the thread that reads a message; default if none
  // The next message is not requested yet: `later_`, since `since_`; `listed_`: the poller knows of
  // it.
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
