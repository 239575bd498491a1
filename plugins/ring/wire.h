// The bytes that processes send each other. A connection carries frames one way, from the process
// that opened it. It begins with a Hello, which the other process answers with a Welcome. Numbers
// have the byte order of the processor; kMagic differs in the other order.
#pragma once
#include <cstdint>

namespace thalweg::ring {

constexpr uint32_t kVersion = 1;  // of the records in the store and of the bytes of a connection
constexpr uint64_t kMagic = 0x676e69722d777400 + kVersion;

constexpr uint32_t kMostText = 4096;         // bytes that follow a frame other than kData
constexpr uint32_t kMostData = 128 << 10;    // bytes that follow a frame kData
constexpr uint64_t kNoLimit = uint64_t(-1);  // a grant of stage 1 for values that have memory at the receiver

// The caller proves by the token that it has read the record of the process that it calls.
struct Token {
  uint64_t words[2] = {};
};

struct Hello {
  uint64_t magic = kMagic;
  Token token;        // of the process that is called
  uint64_t from = 0;  // number of the calling process; 0: it asks only whether the group is there
  uint64_t door = 0;  // if `from` is 0: the group that is asked for
};

struct Welcome {
  uint64_t magic = kMagic;
  uint64_t process = 0;   // number of the process that was called
  uint64_t is_there = 0;  // 1: it has the group that was asked for
};

enum class Kind : uint32_t {
  kJoin = 1,  // the sender has found the receiver. text: the sender's record
  kReady,     // the sender begins operation `number`. text: its Task; `value`: bytes of stage 1 that it takes
  kCredit,    // `value`: bytes of stage 1 of operation `number` that the sender takes, from the first one on
  kData,      // the next bytes of `stage` of operation `number`
  kFailed,    // the group has failed at the sender, or refuses the receiver. text: why; `value`: the code
  kLeave,     // the sender has left the group
};

struct Frame {
  Kind kind = Kind::kJoin;
  uint32_t from = 0;    // rank of the sender
  uint64_t door = 0;    // number of the group at the receiver
  uint64_t number = 0;  // of the operation, from 1
  uint32_t stage = 0;   // 1 or 2, see operation.h
  uint32_t length = 0;  // bytes that follow the frame
  uint64_t value = 0;
};
static_assert(sizeof(Hello) == 40 && sizeof(Welcome) == 24 && sizeof(Frame) == 40);

}  // namespace thalweg::ring
