// Peer: another process with members of our groups (or this one itself, if it has several members):
// the connection that we have opened to it, with the frames to send, and the one that it has
// opened. A process that ends closes both. What it sent before is still read, so the process counts
// as lost when its own connection has ended, or, if ours has failed, after a second without bytes.
// Threads: that of the hub.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "hub.h"
#include "incoming.h"
#include "wire.h"

namespace thalweg::ring {

class Peer final : public Watched {
 public:
  Peer(Hub* hub, uint64_t process) : hub_(hub), process_(process) {}
  ~Peer() { Close(); }
  Peer(const Peer&) = delete;

  uint64_t process() const { return process_; }
  bool open() const { return state_ == State::kOpen; }
  // Why the last attempt to connect has failed, or the connection; empty: it has not.
  const std::string& trouble() const { return trouble_; }
  // Connects to the process, unless that has been done or has failed a moment ago.
  void Reach(const Record& record);
  bool has_incoming() const { return incoming_ && !incoming_->closed(); }
  void Take(std::unique_ptr<Incoming> incoming);
  // Bytes have come from the process. A broken peer that still sends is not lost yet.
  void Heard() {
    if (state_ == State::kBroken) since_ = hub_->now();
  }
  void Close() noexcept;

  // Queues a frame without data. A frame that finds no memory breaks the connection.
  void Send(const Frame& frame, std::string_view text) noexcept;
  // The group may have bytes for that member.
  void HasBytes(Group* group, uint32_t rank);
  // Sends nothing more from the memory of the group.
  void Forget(const Group* group) noexcept;
  // Returns true if frames are queued that can still be sent.
  bool HasWords() const;

  void Ready(uint32_t events) override;
  void GiveUp(const std::string& why) noexcept override { Break(why); }
  void Pump();
  void Tick();
  bool NeedsTime() const { return state_ != State::kIdle && state_ != State::kOpen; }
  // The connection that we opened has failed, and the process has sent nothing for a second.
  bool IsLost() const;
  bool idle() const { return state_ == State::kIdle && !has_incoming() && !on_line_; }

  // The hub's line of peers that have something to send.
  void PutOnLine(Peer** first) noexcept;
  Peer* TakeOffLine();

 private:
  enum class State { kIdle, kConnecting, kGreeting, kOpen, kBroken };
  struct Text {
    Frame frame;
    std::string text;
  };
  // Bytes of a group for one member.
  struct Source {
    Group* group;
    uint32_t rank;
  };
  // The frame that is being sent.
  struct Current {
    Frame frame;
    std::string text;            // the bytes that follow, if there is no `data`
    const char* data = nullptr;  // memory of the group
    Source source = {nullptr, 0};
    uint64_t written = 0;
  };
  void Connect();
  void Greet();
  void ReadWelcome();
  void FailToConnect(const std::string& why);
  void Break(const std::string& why) noexcept;
  void CloseOutgoing() noexcept;
  bool Next();
  bool Write();
  void Want(bool room);

  Hub* const hub_;
  const uint64_t process_;
  Record record_;
  State state_ = State::kIdle;
  int fd_ = -1;
  int64_t since_ = 0;  // when the state began; if it is kBroken: or when the last bytes came
  std::string trouble_;
  Welcome welcome_;
  size_t welcomed_ = 0;  // bytes of welcome_ that are here
  std::unique_ptr<Incoming> incoming_;

  std::deque<Text> texts_;
  std::deque<Source> sources_;  // in turn
  bool sends_ = false;          // current_ is there
  Current current_;
  bool wants_room_ = false;  // waits until the connection takes more
  bool on_line_ = false;
  Peer* next_ = nullptr;  // on the hub's line
};

// Asks the process of the record whether it still has the group.
enum class Answer { kThere, kGone, kNobody };
// Blocks for at most that many milliseconds. Threads: any.
Answer AskFor(const Record& record, int milliseconds);

}  // namespace thalweg::ring
