// Exchange: a call and its answer, at either end.
// Threads: its connection's lock guards it but for what it says.
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
  const uint64_t id;  // the caller's
  const bool mine;    // it is called here
  const std::weak_ptr<Connection> connection;
  const std::shared_ptr<Chores> chores;

  tw_message out = {};    // mine: the request; else the answer, once there is one
  std::string out_head;   // a copy
  Outbox* way = nullptr;  // that it goes
  uint64_t sent = 0;      // bytes of the body
  bool shared = false;    // its body goes through shared memory
  bool begun = false;     // its first frame is on its way
  bool written = false;   // all of it is on its way
  bool counted = false;   // its head counts towards what the connection keeps

  tw_incoming in = {};  // the other way round; while it is served it stays as it is
  std::string in_head;
  char* to = nullptr;  // where the next bytes of the body go; NULL: nowhere
  uint64_t rest = 0;   // bytes that are still to come there
  bool placed = false, served = false, answered = false;

  bool busy = false;                        // a callback runs, or bytes are copied to its memory
  bool told = false;                        // `gone` was called
  End end = End::kNone;                     // mine: how it ended; else why nobody waits
  bool over = false;                        // nobody may use it any more
  std::atomic<int> held{0};                 // slices of its body that gRPC has
  std::atomic<bool> awaits_release{false};  // it can be over when they are back

  // A slice of the body is back: any thread, also inside of gRPC.
  void Released();
};

}  // namespace thalweg::grpc_transport
