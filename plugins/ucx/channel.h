// Channel: one connection's own UCX worker with one endpoint. A worker of its own makes the loss of
// a peer final: destroying the worker ends all transfers of the connection, and of no other. Memory of a
// call is written by the receiver's worker only, since bodies are fetched and never put.
//
// Threads: one at a time.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "frame.h"
#include "library.h"

namespace thalweg::ucx_transport {

// UCX for one endpoint: which transports it may use.
class Context {
 public:
  // transports: UCX_TLS. devices: UCX_NET_DEVICES; empty: as the environment says. Returns NULL on failure, with
  // the reason in *why.
  static std::unique_ptr<Context> Create(const Library* ucx, const std::string& transports, const std::string& devices, std::string* why);
  ~Context();
  Context(const Context&) = delete;
  const Library& ucx() const { return *ucx_; }
  ucp_context_h handle() const { return context_; }

 private:
  explicit Context(const Library* ucx) : ucx_(ucx) {}
  const Library* ucx_;
  ucp_context_h context_ = nullptr;
};

class Channel;

// What a transfer belongs to. It stays valid until the transfer ends or the channel is destroyed.
struct Transfer {
  Channel* channel = nullptr;  // filled by the channel
  void* call = nullptr;
};

// Receives the events of a channel, from inside Progress and the destructor. No exception leaves
// these functions, because UCX calls them.
class ChannelEvents {
 public:
  // data: valid until return.
  virtual void OnMessage(const Frame& f, const uint8_t* data, size_t bytes) = 0;
  // Returns true if the body is kept; then Receive or Drop follows, outside of Progress.
  virtual bool OnBody(const Frame& f, size_t bytes, void* body) = 0;
  // call: of the transfer. ok: false if it failed.
  virtual void OnSent(void* call, bool ok) = 0;
  virtual void OnReceived(void* call, bool ok) = 0;
  virtual void OnFailure(const char* why) = 0;  // the channel is of no more use

 protected:
  ~ChannelEvents() = default;
};

class Channel {
 public:
  enum class Went { kDone, kWaits, kFailed };

  static std::unique_ptr<Channel> Create(const Context& context, ChannelEvents* events, std::string* why);
  ~Channel();
  Channel(const Channel&) = delete;

  const std::string& address() const { return address_; }
  int fd() const { return fd_; }  // readable if there is work, after Arm
  bool Connect(std::string_view peer, std::string* why);

  // Sends the frame and the parts. Everything that is pointed to stays valid until the end: at once
  // (kDone, kFailed), or when OnSent is called.
  Went Send(unsigned id, const Frame* f, const ucp_dt_iov_t* parts, size_t n, Transfer* transfer);
  // Fetches a kept body. kWaits: OnReceived follows.
  Went Receive(void* body, void* to, size_t bytes, Transfer* transfer);
  void Drop(void* body);

  bool Progress() { return ucx_.ucp_worker_progress(worker_) > 0; }
  // Returns true if fd() will tell of the next event; false if there is work now.
  bool Arm();

 private:
  Channel(const Context& context, ChannelEvents* events) : ucx_(context.ucx()), events_(events) {}
  bool Start(ucp_context_h context, std::string* why);
  bool Handle(unsigned id, ucp_am_recv_callback_t f, uint32_t flags, std::string* why);
  Went Started(ucs_status_ptr_t request) const;

  const Library& ucx_;
  ChannelEvents* const events_;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h peer_ = nullptr;
  std::string address_;
  int fd_ = -1;
};

}  // namespace thalweg::ucx_transport
