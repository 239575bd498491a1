// Call: a request and its answer, at either end. Threads: the endpoint's lock guards all members,
// except those of a transfer that is under way, which UCX reads.
#pragma once
#include <chrono>
#include <string>

#include "channel.h"
#include "frame.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg::ucx_transport {

class Connection;

struct Call {
  Call(Connection* c, uint64_t n) : connection(c), number(n) { transfer.call = this; }
  Call(const Call&) = delete;

  Connection* const connection;
  const uint64_t number;
  Call* next = nullptr;  // in the endpoint's queue
  bool queued = false;

  // The outgoing message: the request, or at the serving end the answer.
  uint64_t id = 0;    // the caller's
  tw_message m = {};  // m.done: NULL once it was called
  std::string head;
  Frame frame = {};
  ucp_dt_iov_t parts[2] = {}, body_part = {};
  Transfer transfer;
  bool ready = false, sent = false;  // ready: there is a message to send
  int sending = 0;                   // transfers that have not ended

  // The incoming message.
  tw_incoming in = {};
  std::string in_head;
  void* to = nullptr;                     // memory for its body; NULL: it is not wanted
  void* body = nullptr;                   // a body that UCX keeps until it is received or dropped
  uint64_t body_bytes = 0;                // of that
  bool arrived = false, follows = false;  // follows: the body comes by itself
  bool receiving = false, body_over = false;

  bool cancelled = false;  // at the calling end: by the host; at the serving end: by the caller
  std::chrono::steady_clock::time_point cancelled_at;
  bool told = false;     // the other end knows that
  bool refused = false;  // there was no answer
  bool placed = false, served = false, gone = false;

  bool whole() const { return arrived && (!follows || body_over); }
};

}  // namespace thalweg::ucx_transport
