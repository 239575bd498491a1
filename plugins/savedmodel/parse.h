// Parses a file that is one message, within bounds of memory. Threads: any.
#pragma once
#include <cstdlib>
#include <new>
#include <string>

#include <google/protobuf/arena.h>
#include <google/protobuf/stubs/logging.h>

#include "sink.h"

namespace thalweg::savedmodel {

// The memory of messages. A file of many small messages takes many times its bytes when it is
// parsed, so there is a limit.
class MessageMemory {
 public:
  // bytes: of the file.
  explicit MessageMemory(uint64_t bytes) : arena_(Options(bytes)) {}
  MessageMemory(const MessageMemory&) = delete;
  google::protobuf::Arena* arena() { return &arena_; }

 private:
  static google::protobuf::ArenaOptions Options(uint64_t bytes) {
    left_ = 6 * bytes + (uint64_t{48} << 20);
    google::protobuf::ArenaOptions options;
    options.start_block_size = 4096;
    options.max_block_size = 1 << 20;
    options.block_alloc = [](size_t n) -> void* {
      if (n > left_) throw Error{TW_RESOURCE_EXHAUSTED, "the file's messages take more than 6 times its bytes and 48 MiB; it is refused"};
      left_ -= n;
      if (void* block = std::malloc(n)) return block;
      throw std::bad_alloc();
    };
    options.block_dealloc = [](void* block, size_t) { std::free(block); };
    return options;
  }
  static inline thread_local uint64_t left_ = 0;  // block_alloc has no argument for it; a load stays on its thread
  google::protobuf::Arena arena_;
};

// Throws Error if the bytes are not a whole message; `what` names the file.
template <class Message>
Message* Parse(const FileBytes& file, const std::string& what, MessageMemory* memory) {
  constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;
  if (file.size() > kMostBytes) throw Error{TW_RESOURCE_EXHAUSTED, what + " has more than 2 GiB, which no message may have"};
  const google::protobuf::LogSilencer silent;  // the library would write about damaged text on standard error
  auto* message = google::protobuf::Arena::CreateMessage<Message>(memory->arena());
  if (message->ParseFromArray(file.data(), static_cast<int>(file.size()))) return message;
  throw Error{TW_DATA_LOSS, what + " is damaged: its " + std::to_string(file.size()) + " bytes are not a whole message"};
}

}  // namespace thalweg::savedmodel
