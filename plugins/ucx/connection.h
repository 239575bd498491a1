// Connection: a socket, over which two endpoints meet and notice each other's end, and the channel
// that carries their calls. One side, the caller's, makes calls; the other one serves them.
//
// Threads: the endpoint's lock guards everything. Functions that take the lock are called by the
// thread that drives the endpoint, and release the lock for callbacks and for UCX.
#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "call.h"
#include "channel.h"
#include "secret.h"

namespace thalweg::ucx_transport {

class Endpoint;
using Lock = std::unique_lock<std::mutex>;

class Connection final : private ChannelEvents {
 public:
  // mine: made by connect. name: the address; or the peer's identity.
  Connection(Endpoint* endpoint, int fd, bool mine, std::string name);
  ~Connection();

  Endpoint& endpoint() const { return *endpoint_; }
  bool mine() const { return mine_; }

  // ---- entries, under the lock ----
  tw_status* Start(uint64_t id, const tw_message* m);
  void Cancel(uint64_t id);
  void Answer(Call* c, const tw_message* m);
  void Close() { closing_ = true; }

  // ---- the driving thread ----
  void OnSocket(Lock& l, uint32_t events);
  void OnWork() { armed_ = false; }
  // Loses what is closed or broken, and progresses. Returns true if there is more work now.
  bool Tend(Lock& l, bool spins);
  void Step(Lock& l, Call* c);
  // Returns true if nothing of it is left.
  bool over() const;
  bool meets() const { return state_ < kUp; }

 private:
  enum State { kConnecting, kMeeting, kJoining, kUp, kLost };
  using Clock = std::chrono::steady_clock;

  // Ends the connection when the driving thread comes to it.
  void Break(std::string why, uint32_t code = TW_UNAVAILABLE);
  void BreakNow() noexcept;
  void Lose(Lock& l);
  void LookAtCancelled();
  void Watch();
  tw_status* Ended(uint32_t code, const char* what) const;

  bool ReadSocket();
  void WriteSocket();
  void Say(uint32_t kind, const std::string& text);
  void OnRecord(Lock& l, uint32_t kind, std::string_view text);
  void OnHello(Lock& l, std::string_view text);
  void OnJoin(Lock& l, std::string_view text);
  bool MakeChannel(Lock& l);
  void ConnectChannel(Lock& l, std::string_view address);

  void OnMessage(const Frame& f, const uint8_t* data, size_t bytes) override;
  bool OnBody(const Frame& f, size_t bytes, void* body) override;
  void OnSent(void* call, bool ok) override;
  void OnReceived(void* call, bool ok) override;
  void OnFailure(const char* why) override;

  Call* Find(uint64_t number) const;
  Call* Add(uint64_t number);
  void Erase(Call* c);
  void TakeMessage(Lock& l, const Frame& f, const uint8_t* data);
  void StepMine(Lock& l, Call* c);
  void StepTheirs(Lock& l, Call* c);
  void TakeBody(Lock& l, Call* c, bool wanted);
  void Transmit(Lock& l, Call* c, Kind kind);
  void TellCancelled(Lock& l, Call* c);
  void Done(Lock& l, Call* c, tw_status* s);

  Endpoint* const endpoint_;
  const bool mine_;
  const std::string name_;
  int fd_;
  State state_;
  bool closing_ = false, armed_ = false, watches_writes_ = false, ended_ = false;
  std::string broken_;
  uint32_t code_ = TW_UNAVAILABLE;
  Clock::time_point since_ = Clock::now(), looked_ = since_;
  std::string in_, out_;
  Digest my_nonce_ = {}, their_nonce_ = {};
  Key key_ = {};
  std::unique_ptr<Channel> channel_;
  std::unordered_map<uint64_t, std::unique_ptr<Call>> calls_;  // by number
  std::unordered_map<uint64_t, uint64_t> numbers_;             // of calls that were not done, by the host's ids
  uint64_t count_ = 0;
};

}  // namespace thalweg::ucx_transport
