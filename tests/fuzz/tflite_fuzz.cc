// Imports the bytes of a TensorFlow Lite file into a graph of the C API: the flatbuffer, constants, translation, bodies.
#include <cstdint>
#include <string>
#include <string_view>

#include "plugins/tflite/import.h"
#include "tests/fuzz/broken.h"
#include "tests/plugins/importer/graph_sink.h"

namespace {

using thalweg::fuzz::Broken;
using namespace thalweg::tflite;

constexpr size_t kMostBytes = 64 << 10;

// The error of the import; "" if it succeeds.
std::string Imported(const std::shared_ptr<const std::string>& bytes) {
  tw_graph* graph = nullptr;
  thalweg::importer::Check(tw_graph_create(nullptr, &graph));
  std::string error;
  try {
    thalweg::importer::GraphSink sink(graph);
    const File file = ReadFile(*bytes, bytes);
    for (const Ports& ports : ImportFile(file, sink, [](const std::string&) { return true; })) {
      for (const Port& port : ports.outputs) {
        if (!port.edge) Broken("an output has no edge");
      }
    }
  } catch (const Error& e) {
    error = e.text;
    if (error.empty()) Broken("an import failed without a message");
  }
  tw_graph_destroy(graph);
  return error;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > kMostBytes) return 0;
  const auto bytes = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  if (Recognise(std::string_view(*bytes).substr(0, 4096)) > 100) Broken("more than certain");
  if (Imported(bytes) != Imported(bytes)) Broken("a second import has another result");
  return 0;
}
