// Connection: all traffic between this endpoint and a peer, for calls of one of the two. It has one
// line for small messages and, once a large one is sent, two lines for large messages, so that
// small ones do not wait behind them. Within a machine, shared memory replaces all lines.
// Threads: any; callbacks come from the threads of the pollers and chores. The lock guards the
// members, and is never held in a callback or while gRPC works.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "exchange.h"
#include "frame.h"
#include "line.h"
#include "ring_line.h"
#include "segment.h"

namespace thalweg::grpc_transport {

class Endpoint;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // name: the peer's address, or its proven identity. id: common to its lines.
  // local: the peer is on this machine, and can use shared memory.
  Connection(Endpoint* endpoint, bool mine, bool local, std::string name, uint32_t role, std::string id);
  ~Connection();
  std::mutex& mu() { return mu_; }
  std::mutex& reading() { return reading_; }         // held to read one message: two threads may each have one. Taken before mu
  bool shut() const { return shut_ != End::kNone; }  // REQUIRES: mu
  bool mine() const { return mine_; }
  bool local() const { return local_; }
  Poller& poller() const;
  const Endpoint& endpoint() const { return *endpoint_; }
  // REQUIRES: mu. Returns true if the request for the next message may be deferred: this side makes
  // the calls, at most one is pending, and no body is on its way through shared memory or into place.
  bool quiet() const;
  const std::string& name() const { return name_; }

  // Called by the host; they make no callbacks.
  tw_status* Call(uint64_t id, const tw_message* m);
  void Cancel(uint64_t id);
  void Answer(const std::shared_ptr<Exchange>& x, const tw_message* m);
  void Release();  // the host has closed the peer

  // For the caller's side. fd: the socket of the first line, connected to a Unix socket of a
  // process of the same user; owned by this call; later lines use such sockets too.
  void OpenLine(int fd = -1);
  // For the other side. Returns false if the connection is closed. call: owned by this call if it
  // returns true.
  bool AddLine(grpc_call* call);
  void OfferRings();
  // Records the serial number of the peer's certificate; empty for none.
  void ProvenBy(const std::string& serial);
  std::vector<std::string> serials() {
    std::lock_guard lock(mu_);
    return serials_;
  }

  // Called once a second. Ends the connection if the other side has taken nothing of the waiting
  // data for so many seconds.
  void Look(int seconds);

  // For threads that may call back.
  void Settle(const std::shared_ptr<Exchange>& x);
  void Shut(End how, const std::string& why);
  // For all threads.
  void SettleLater(std::shared_ptr<Exchange> x);
  void SettleSoon(std::shared_ptr<Exchange> x);  // the same, for exchanges whose memory nobody waits for
  void ShutLater(const std::string& why);
  void Counted(bool by_ring);  // counts a message that has arrived
  void MaybeEnd();
  bool Read(Reader* reader);  // false: the data are malformed. REQUIRES: reading
  // Called by an outbox that holds the lock: sends the body through shared memory. ShareNow does so
  // at once if that is quick; false if it is not.
  bool ShareNow(Exchange* x);
  void Share(std::shared_ptr<Exchange> x);
  void LineBegan(size_t index, grpc_call* call);
  void LineEnded(size_t index, grpc_status_code status, const std::string& details);

 private:
  bool Begin(const Frame& f, Reader* reader);
  Line* Add(grpc_channel* channel, bool connects, grpc_call* call);
  // Marks an exchange as busy while a frame for it is read. If an exception is thrown meanwhile,
  // the end of the connection cleans it up.
  class Busy {
   public:
    Busy(Connection* connection, Exchange* x) : connection_(connection), x_(x) {}
    ~Busy() {
      if (!x_) return;
      std::lock_guard lock(connection_->mu_);
      x_->busy = false;
    }
    Busy(const Busy&) = delete;
    void Over() { x_ = nullptr; }

   private:
    Connection* const connection_;
    Exchange* x_;  // NULL if there is none
  };
  std::shared_ptr<Exchange> Expect(const Frame& f, bool* out_sense);
  void Filled(const std::shared_ptr<Exchange>& x, uint64_t bytes);
  std::shared_ptr<Exchange> Wanted(uint64_t id) const;
  void OfferSegment();
  void WakeCopies();
  uint32_t FreeSlot() const;
  void Copy();
  bool ReadShared(const Frame& f, Reader* reader);
  bool ReadSlot(const Frame& f);
  bool ReadRings(const Frame& f, Reader* reader);
  RingLine* ring();
  void HearTheLast();
  std::shared_ptr<Exchange> Find(uint64_t id) const;
  Outbox* WayFor(uint64_t bytes, Exchange* x);
  Outbox* SmallWay();
  void WantBulkLines();
  bool Finished(const Exchange& x) const;
  tw_status* Fail(End how) const;

  Endpoint* const endpoint_;
  const bool mine_, local_;
  const std::string name_, id_;
  const uint32_t role_;
  std::mutex reading_, mu_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::vector<std::string> serials_;  // of certificates that its streams have proven
  std::unordered_map<uint64_t, std::shared_ptr<Exchange>> exchanges_;
  uint64_t heads_ = 0;     // bytes of heads of answers that the other side has not taken
  bool too_many_ = false;  // such heads: the connection is about to end
  End shut_ = End::kNone;
  std::string why_;
  bool held_ = true;  // by the host, or by the peer's first line
  bool opening_ = false, removed_ = false;
  std::atomic<bool> own_user_{false};  // see OpenLine
  // Shared memory: this side writes out_, which is never replaced once set; the thread that reads
  // lines reads in_.
  enum class Sharing { kNone, kOffered, kGood, kRefused } out_state_ = Sharing::kNone;
  std::unique_ptr<Segment> out_, in_;
  bool in_offered_ = false;  // set once, even if the offer was refused; guarded like in_
  uint32_t taken_ = 0;       // slots of out_, one bit each
  std::deque<std::shared_ptr<Exchange>> sharing_;
  bool copying_ = false;            // Copy runs, or is scheduled
  std::unique_ptr<RingLine> ring_;  // never replaced once set
  bool rings_told_ = false;         // set once, even if the rings were refused
};

}  // namespace thalweg::grpc_transport
