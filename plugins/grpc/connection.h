// Connection: all that goes between this endpoint and a peer, for calls of one of the two: a line for what is small and, once something is
// not, two for what is big, so that the small does not wait behind it. Within a machine memory that both share takes the place of all.
// Threads: any; callbacks come from the pollers' threads and the chores'. A lock guards what it holds, and is never held in a callback
// or while gRPC works.
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
  // name: where the peer is, or who it has proven to be. id: what its lines have in common.
  // local: the peer is on this machine, and shares memory if it wants to.
  Connection(Endpoint* endpoint, bool mine, bool local, std::string name, uint32_t role, std::string id);
  ~Connection();
  std::mutex& mu() { return mu_; }
  std::mutex& reading() { return reading_; }         // of one message at a time: two threads may have one of each line. Before mu
  bool shut() const { return shut_ != End::kNone; }  // REQUIRES: mu
  bool mine() const { return mine_; }
  bool local() const { return local_; }
  Poller& poller() const;
  const Endpoint& endpoint() const { return *endpoint_; }
  // REQUIRES: mu. What comes next can be waited for: nothing is called here but what is answered late, and no body is on its way.
  bool quiet() const;
  const std::string& name() const { return name_; }

  // Entries; nothing is called back inside.
  tw_status* Call(uint64_t id, const tw_message* m);
  void Cancel(uint64_t id);
  void Answer(const std::shared_ptr<Exchange>& x, const tw_message* m);
  void Release();  // the host has closed the peer

  // The caller's side. fd: of the first line, where it goes by the Unix socket of a process of the same user: taken; then so go all others.
  void OpenLine(int fd = -1);
  // The other side. False: it is over. call: taken, if true.
  bool AddLine(grpc_call* call);
  void OfferRings();
  // The certificate of who is there, by its serial number; empty: none.
  void ProvenBy(const std::string& serial);
  std::vector<std::string> serials() {
    std::lock_guard lock(mu_);
    return serials_;
  }

  // Once a second. Ends it where the other side has taken nothing of what waits for it for so many seconds.
  void Look(int seconds);

  // Of the threads that may call back.
  void Settle(const std::shared_ptr<Exchange>& x);
  void Shut(End how, const std::string& why);
  // Of all threads.
  void SettleLater(std::shared_ptr<Exchange> x);
  void SettleSoon(std::shared_ptr<Exchange> x);  // the same, where nobody waits for its memory
  void ShutLater(const std::string& why);
  void Counted(bool by_ring);  // something has come
  void MaybeEnd();
  bool Read(Reader* reader);  // false: it makes no sense. REQUIRES: reading
  // Of an outbox, whose lock this has: the body is to go through shared memory. Now: if that is done in a moment; false: it is not.
  bool ShareNow(Exchange* x);
  void Share(std::shared_ptr<Exchange> x);
  void LineBegan(size_t index, grpc_call* call);
  void LineEnded(size_t index, grpc_status_code status, const std::string& details);

 private:
  bool Begin(const Frame& f, Reader* reader);
  Line* Add(grpc_channel* channel, bool connects, grpc_call* call);
  // While a frame is read that an exchange is busy with: where something is thrown meanwhile, it is left to the end of the connection.
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
    Exchange* x_;  // NULL: none
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
  bool too_many_ = false;  // of them: it is about to end
  End shut_ = End::kNone;
  std::string why_;
  bool held_ = true;  // by the host, or by the peer's first line
  bool opening_ = false, removed_ = false;
  std::atomic<bool> own_user_{false};  // see OpenLine
  // Shared memory: out_ is written here, and stays once it is there; in_ is read by the thread that reads lines.
  enum class Sharing { kNone, kOffered, kGood, kRefused } out_state_ = Sharing::kNone;
  std::unique_ptr<Segment> out_, in_;
  bool in_offered_ = false;  // once, whatever became of it; as in_
  uint32_t taken_ = 0;       // slots of out_, a bit each
  std::deque<std::shared_ptr<Exchange>> sharing_;
  bool copying_ = false;            // Copy runs, or will
  std::unique_ptr<RingLine> ring_;  // stays once it is there
  bool rings_told_ = false;         // once, whatever became of it
};

}  // namespace thalweg::grpc_transport
