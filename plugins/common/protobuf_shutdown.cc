// Frees the tables that protobuf allocates on first use. A plugin that has a protobuf of its own
// compiles this file into itself. Without it, every load and unload of the plugin leaks those tables.
#include <google/protobuf/stubs/common.h>

namespace thalweg::common {
namespace {

// The destructor runs when the library is unloaded, or when the process exits.
struct ProtobufShutdown {
  ProtobufShutdown() = default;
  ProtobufShutdown(const ProtobufShutdown&) = delete;
  ProtobufShutdown& operator=(const ProtobufShutdown&) = delete;
  ~ProtobufShutdown() { google::protobuf::ShutdownProtobufLibrary(); }
};

const ProtobufShutdown protobuf_shutdown;

}  // namespace
}  // namespace thalweg::common
