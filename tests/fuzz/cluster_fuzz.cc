// Parses the messages and files of a cluster's processes from bytes; the first byte chooses the
// parser. A parsed value is written again, and must then parse to the same value.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "distributed/cluster.h"
#include "distributed/messages.h"
#include "distributed/piece.h"
#include "distributed/stats_wire.h"
#include "distributed/task_status.h"

namespace {

using namespace thalweg::distributed;

void Same(std::string_view a, std::string_view b) {
  if (a == b) return;
  std::fprintf(stderr, "what was written reads as something else\n");
  std::abort();
}

template <class M>
void Fields(std::string_view bytes) {
  const auto m = M::Get(bytes);
  if (!m.ok()) return;
  WireWriter first, second;
  m->Put(&first);
  M::Get(first.bytes())->Put(&second);
  Same(first.bytes(), second.bytes());
}

void Piece(std::string_view bytes) {
  const auto m = PieceMessage::Get(bytes);
  if (m.ok()) Same(m->Put(), PieceMessage::Get(m->Put())->Put());
}

void Tensors(std::string_view bytes) {
  const auto tensors = GetTensors(bytes);
  if (!tensors.ok()) return;
  WireWriter w;
  if (!PutTensors(tensors->data(), tensors->size(), &w).ok()) std::abort();
  Same(w.bytes(), bytes);
}

void Status(std::string_view bytes) {
  const auto m = TaskStatus::Get(bytes);
  if (m.ok()) Same(m->Put(), TaskStatus::Get(m->Put())->Put());
}

void Stats(std::string_view bytes) {
  StatsPart part;
  part.task = "/job:ps/replica:0/task:0";
  if (GetStats(bytes, 0, &part).ok()) thalweg::StepStats().Assemble({&part.part, 1});
}

void Cluster(std::string_view bytes) {
  const auto config = ParseTaskConfig(bytes);
  if (!config.ok()) return;
  Same(config->cluster.text(), ClusterSpec::Parse(config->cluster.text())->text());
}

void Heads(std::string_view bytes) {
  std::string_view fields;
  (void)GetRequest(bytes);
  (void)GetAnswer(bytes, &fields);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr void (*kReaders[])(std::string_view) = {Heads,
                                                           Cluster,
                                                           Piece,
                                                           Tensors,
                                                           Fields<Hello>,
                                                           Fields<OpenRequest>,
                                                           Fields<SessionRequest>,
                                                           Fields<HandleMessage>,
                                                           Fields<RunRequest>,
                                                           Fields<ReceiveRequest>,
                                                           Fields<AbortRequest>,
                                                           Status,
                                                           Stats,
                                                           Fields<ResetRequest>,
                                                           Fields<ResetAnswer>};
  if (size == 0) return 0;
  kReaders[data[0] % std::size(kReaders)](std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
