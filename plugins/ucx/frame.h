// What two endpoints say to each other: on the socket where they meet, and through UCX.
//
// A message is an active message kMessage: a frame as its header, then its head and, up to kEager
// bytes, its body. A longer body follows as an active message kBody with the same frame. UCX moves
// that one by its rendezvous: the receiver fetches the bytes from the sender's memory, once it has
// named the memory for them. Each request gets exactly one answer, also if it was cancelled, so both
// sides know when the last message of a call has arrived.
#pragma once
#include <array>
#include <cstdint>

#include "thalweg/plugin/plugin.h"

namespace thalweg::ucx_transport {

constexpr uint64_t kEager = 64 << 10;        // the longest body that travels with its head
constexpr unsigned kMessage = 1, kBody = 2;  // numbers of active messages

enum Kind : uint32_t {
  kRequest = 1,
  kAnswer = 2,
  kNoAnswer = 3,  // of a request that was cancelled; no head and no body
  kCancel = 4     // nobody waits for the answer any more
};

using Key = std::array<uint8_t, 16>;  // of a connection; messages without it are dropped

struct Frame {
  Key key;
  uint32_t kind, head_bytes;
  uint64_t number;  // of the call, counted by the caller
  uint64_t bytes;   // of the body
};
static_assert(sizeof(Frame) == 40);

// The socket carries records: a length, a kind, then so many bytes.
//
//     caller             listener
//     kHello, nonce ->
//                   <-   kHello, nonce, proof that the listener knows the token
//     kJoin, proof that the caller knows it, key, UCX address ->
//                   <-   kJoin, proof, UCX address
//
// The proofs in kJoin cover what follows them. So nobody without the token can put an address of his
// own into a meeting of others.
// The socket then carries nothing more. Its end is the end of the connection.
enum : uint32_t { kHello = 1, kJoin = 2, kRefusal = 3 /* text: no member */, kTrouble = 4 /* text */ };

struct Record {
  uint32_t bytes, kind;
};
constexpr char kMagic[8] = {'T', 'W', 'U', 'C', 'X', '0', '0', '1'};
constexpr uint32_t kLongestRecord = 64 << 10;  // UCX addresses take some hundred bytes for each device

}  // namespace thalweg::ucx_transport
