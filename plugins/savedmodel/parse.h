// Parses a file that is one message. Threads: any.
#pragma once
#include <string>

#include <google/protobuf/message_lite.h>
#include <google/protobuf/stubs/logging.h>

#include "sink.h"

namespace thalweg::savedmodel {

// Throws Error if the bytes are not a whole message; `what` names the file.
inline void Parse(const FileBytes& file, const std::string& what, google::protobuf::MessageLite* message) {
  constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;
  if (file.size() > kMostBytes) throw Error{TW_RESOURCE_EXHAUSTED, what + " has more than 2 GiB, which no message may have"};
  const google::protobuf::LogSilencer silent;  // the library would write about damaged text on standard error
  if (message->ParseFromArray(file.data(), static_cast<int>(file.size()))) return;
  throw Error{TW_DATA_LOSS, what + " is damaged: its " + std::to_string(file.size()) + " bytes are not a whole message"};
}

}  // namespace thalweg::savedmodel
