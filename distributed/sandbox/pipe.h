// Pipe: an endpoint of the transport `pipe` with its one connection (pipe_transport.h).
//
// A message is a packet with its head and the first part of its body; the rest follows in pieces,
// and pieces of several messages alternate. Packets go through two rings in shared memory. The
// socket carries bells, packets of one byte, to an end that sleeps; when the socket closes, the
// connection has ended. API calls write at once if a ring has room. One thread at a time, the
// holder, reads, ends messages and calls back: the endpoint's own thread, or one that is lent
// (`poll`). API calls leave other work to the holder. Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "distributed/sandbox/packet_ring.h"
#include "framework/base/status.h"
#include "thalweg/plugin/transport.h"

namespace thalweg::distributed {

class Pipe {
 public:
  // Copies the socket and maps the memory that the address names; an endpoint for calls only
  // connects later. INVALID_ARGUMENT if the address names neither.
  static StatusOr<std::unique_ptr<Pipe>> Open(const tw_endpoint_config& config);
  ~Pipe();
  // Called once, for an endpoint for calls only. UNAVAILABLE if the other side was lost.
  Status Connect(std::string_view address);
  Status Call(uint64_t id, const tw_message& m);
  void Cancel(uint64_t id);
  static void Answer(void* self, const tw_message& m);
  void ClosePeer();
  bool Poll(uint64_t ns, uint32_t (*over)(void*), void* arg);
  void Wake();

 private:
  enum Kind : uint32_t { kRequest, kAnswer, kPiece, kCancel };
  struct Header {
    uint32_t kind;
    uint32_t head;   // bytes of the head that follow
    uint64_t id;     // chosen by the caller
    uint64_t bytes;  // of the whole body
  };
  // An outgoing message.
  struct Outgoing {
    Header header = {};
    std::string head;
    tw_message m = {};
    uint64_t sent = 0;
    bool began = false, queued = false;
    bool complete() const { return began && sent == m.bytes; }
  };
  // An own call with its incoming answer, or a call of the other side with the outgoing answer.
  struct Exchange : Outgoing {
    Pipe* pipe = nullptr;
    tw_incoming in = {};
    std::string head_in;
    char* to = nullptr;  // destination of the next part of the incoming body; NULL if the body is dropped
    uint64_t rest = 0;   // bytes of that body still to come
    bool placed = false, served = false, answered = false, cancelled = false, told_gone = false;
  };
  struct Ending {
    std::unique_ptr<Exchange> exchange;
    tw_status* why;
  };

  explicit Pipe(const tw_endpoint_config& config);
  Status TakeSocket(std::string_view address);
  tw_status* Ended(bool lost) const;
  void Work();
  void Read();
  bool ReadOne();
  enum Found { kNothing, kPackets, kSocket };
  void ReadWhat(Found found);
  bool TakeBells();
  bool Spin(int64_t until);
  bool TakeAnswer(const Header& h, std::string_view rest);
  bool TakeRequest(const Header& h, std::string_view rest);
  bool Begin(Exchange* x, const Header& h, std::string_view rest);
  bool Advance(Exchange* x, std::string_view part);
  void Tend();
  // REQUIRES for all functions below: mu_.
  void TendOne(Exchange* x, std::vector<Ending>* ends, std::vector<uint64_t>* gone);
  Exchange* Find(uint64_t id) const;
  void Send(Outgoing* o);
  bool Write(Outgoing* o);
  void WriteAll();
  void Written(Outgoing* o);
  void Unqueue(Outgoing* o);
  void Lose();
  void Look(uint64_t id) { look_.push_back(id); }
  void WakeHolder();
  void Bell();
  Found Wait(std::unique_lock<std::mutex>* lock, int wake, int64_t ns, bool socket);
  bool over() const { return closing_ || peer_closed_; }

  const tw_endpoint_config config_;
  const bool mine_;  // this end makes the calls
  std::string name_;
  int fd_ = -1, own_wake_ = -1, lent_wake_ = -1;
  std::unique_ptr<RingPair> memory_;
  std::optional<RingReader> in_;    // used by the holder
  std::optional<RingWriter> ring_;  // for outgoing packets
  std::unique_ptr<char[]> buffer_;  // used by the holder
  std::mutex mu_;
  bool lost_ = false, closing_ = false, peer_closed_ = false;
  bool lent_ = false;       // a thread is lent
  bool working_ = false;    // the own thread runs and does not wait
  bool resting_ = false;    // the own thread waits for the end of a loan
  bool at_socket_ = false;  // the own thread sleeps at the socket, where bells come
  bool asked_ = false;      // there is work for the own thread
  std::atomic<std::thread::id> holder_{};
  int64_t last_lent_ = 0;
  uint64_t count_ = 0;  // of requests of the other side
  std::unordered_map<uint64_t, std::unique_ptr<Exchange>> exchanges_;
  std::deque<Outgoing*> out_;                                       // messages that are not fully written
  std::unordered_map<Outgoing*, std::unique_ptr<Outgoing>> notes_;  // the cancellations among them
  std::vector<uint64_t> look_;                                      // exchanges that may have ended
  bool look_at_all_ = false;
  uint64_t undone_ = 0;  // bytes of answers that are written but not done
  std::thread thread_;
};

}  // namespace thalweg::distributed
