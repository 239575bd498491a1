// Exchange: a call and its answer, at either end.
// Threads: guarded by its connection's lock, except where stated.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "thalweg/plugin/plugin.h"
#include "watch.h"

namespace thalweg::grpc_transport {

class Connection;
class Outbox;

enum class End : uint8_t { kNone, kGood, kCancelled, kLost, kDenied };

struct Exchange : std::enable_shared_from_this<Exchange> {
  Exchange(uint64_t id_, bool mine_, std::weak_ptr<Connection> connection_, std::shared_ptr<Chores> chores_)
      : id(id_), mine(mine_), connection(std::move(connection_)), chores(std::move(chores_)) {}
  const uint64_t id;  // chosen by the caller
  const bool mine;    // this side makes the call
  const std::weak_ptr<Connection> connection;
  const std::shared_ptr<Chores> chores;

  tw_message out = {};    // for mine: the request; else the answer, once there is one
  std::string out_head;   // a copy
  Outbox* way = nullptr;  // the outbox that sends it
  uint64_t sent = 0;      // bytes of the body
  bool shared = false;    // the body goes through shared memory
  bool begun = false;     // the first frame is on its way
  bool written = false;   // all of it is on its way
  bool counted = false;   // the head counts towards the unread heads of the connection

  tw_incoming in = {};  // the incoming message; unchanged while it is served
  std::string in_head;
  char* to = nullptr;  // destination of the next bytes of the body; NULL if they are dropped
  uint64_t rest = 0;   // bytes of the body still to come
  bool placed = false, served = false, answered = false;

  bool busy = false;                        // a callback runs, or bytes are copied to its memory
  bool told = false;                        // `gone` was called
  End end = End::kNone;                     // for mine: how the call ended; else why nobody waits
  bool over = false;                        // the exchange must not be used any more
  std::atomic<int> held{0};                 // slices of the body that gRPC holds
  std::atomic<bool> awaits_release{false};  // the exchange can end when these are released

  // gRPC has released a slice of the body. Called on any thread, also inside gRPC.
  void Released();
};

}  // namespace thalweg::grpc_transport
