// The worker of Protocol Buffers: parses a graph's file into an arena, the minimum work of any
// reader. usage: protobuf_worker
#include <fstream>
#include <iterator>
#include <string>

#include <google/protobuf/arena.h>

#include "framework/proto/graph.pb.h"

extern "C" {
#include "tools/benchmarks/programs/worker.h"
}

namespace {

void Parse(void* user) {
  const auto& bytes = *static_cast<const std::string*>(user);
  google::protobuf::Arena arena;
  auto* graph = google::protobuf::Arena::CreateMessage<thalweg::proto::GraphDef>(&arena);
  if (!graph->ParseFromString(bytes) || graph->node_size() == 0) worker_fail("not a graph");
}

// argument: the file.
void AnswerParse(const char* argument) {
  static std::string bytes;
  if (bytes.empty()) {
    std::ifstream file(argument, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    if (bytes.empty()) worker_fail("cannot read '%s'", argument);
  }
  worker_reply_time(Parse, &bytes, 9, 1, 1);
}

}  // namespace

int main() {
  static const worker_command commands[] = {{"parse", AnswerParse}, {nullptr, nullptr}};
  worker_serve(commands);
}
