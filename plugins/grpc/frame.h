// The contents of a stream's message: frames, one after another. A frame is followed by its head
// and a part of its body. Bytes are little endian, as on every machine that this is built for;
// versions of peers are compared when a stream begins.
#pragma once
#include <cstdint>
#include <cstring>

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>

namespace thalweg::grpc_transport {

constexpr const char* kProtocol = "1";
constexpr const char* kAsksForRings = "thalweg-rings";  // "1": the caller can use rings; older callers do not send it
constexpr const char* kMethod = "/thalweg.Transport/Stream";

enum class Kind : uint8_t {
  kRequest = 1,
  kAnswer = 2,
  kPiece = 3,    // more of the body of a request or answer
  kCancel = 4,   // nobody waits for the answer any more
  kSegment = 5,  // memory to which this side offers to write bodies; its name is the head
  kOpened = 6,   // the answer to kSegment: bytes is 1 if the memory can be read, else 0
  kSlot = 7,     // more of the body is in a slot: bytes has the slot in the upper half, and the length in the lower
  kRead = 8,     // the slot `bytes` may be written again
  kRings = 9,    // from the called side: memory with rings, and its doorbell (RingNames, in the head)
  kBell = 10,    // the answer to kRings: the rings can be used; the caller's doorbell is in the head
  kHere = 11     // through the ring: the other side is to write there, too
};

struct Frame {
  Kind kind = Kind::kRequest;
  uint8_t reserved = 0;
  uint16_t head = 0;   // bytes
  uint32_t here = 0;   // bytes of the body that follow
  uint64_t id = 0;     // chosen by the caller
  uint64_t bytes = 0;  // of the whole body
};
static_assert(sizeof(Frame) == 24);

// Reads the bytes of an incoming message in order, from a buffer of gRPC or from a ring.
class Reader {
 public:
  explicit Reader(grpc_byte_buffer* message) : of_grpc_(true), rest_(grpc_byte_buffer_length(message)) {
    grpc_byte_buffer_reader_init(&slices_, message);
  }
  Reader(const char* bytes, uint64_t n) : of_grpc_(false), at_(bytes), end_(bytes + n), rest_(n) {}
  ~Reader() {
    if (open_) grpc_slice_unref(slice_);
    if (of_grpc_) grpc_byte_buffer_reader_destroy(&slices_);
  }
  Reader(const Reader&) = delete;
  uint64_t rest() const { return rest_; }
  bool by_ring() const { return !of_grpc_; }
  // Copies n bytes to `to`, or skips them if it is NULL. REQUIRES: n <= rest().
  void Take(void* to, uint64_t n) {
    rest_ -= n;
    while (n > 0) {
      if (at_ == end_ && !Next()) return;
      const uint64_t part = uint64_t(end_ - at_) < n ? uint64_t(end_ - at_) : n;
      if (to) {
        std::memcpy(to, at_, part);
        to = static_cast<char*>(to) + part;
      }
      at_ += part;
      n -= part;
    }
  }

 private:
  bool Next() {
    if (open_) grpc_slice_unref(slice_);
    open_ = of_grpc_ && grpc_byte_buffer_reader_next(&slices_, &slice_) != 0;
    if (!open_) return false;
    at_ = reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice_));
    end_ = at_ + GRPC_SLICE_LENGTH(slice_);
    return true;
  }
  const bool of_grpc_;
  grpc_byte_buffer_reader slices_ = {};
  grpc_slice slice_ = {};
  bool open_ = false;
  const char *at_ = nullptr, *end_ = nullptr;
  uint64_t rest_;
};

}  // namespace thalweg::grpc_transport
