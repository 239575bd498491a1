// Imports the bytes of an ONNX file into a graph of the C API: parsing, constants, folding, translation, functions, bodies. Files that the
// model names are served from memory.
#include <cstdint>
#include <string>
#include <string_view>

#include "plugins/onnx/model.h"
#include "plugins/onnx/recognise.h"
#include "tests/fuzz/broken.h"
#include "tests/plugins/importer/graph_sink.h"

namespace {

using thalweg::fuzz::Broken;
using namespace thalweg::onnx;
using thalweg::importer::Check;
using thalweg::importer::GraphSink;

constexpr size_t kMostBytes = 64 << 10;

// The error of the import; "" if it succeeds.
std::string Imported(std::string_view bytes, bool share_weights) {
  tw_graph* graph = nullptr;
  Check(tw_graph_create(nullptr, &graph));
  std::string error;
  try {
    GraphSink sink(graph);
    const auto keep = std::make_shared<const std::string>(bytes);
    const OpenExternal open = [&](const std::string&) { return Bytes{keep->data(), keep->size(), keep}; };
    const Ports ports = Import(ParseModel(*keep, share_weights), open, sink);
    for (const Port& port : ports.outputs) {
      if (!port.edge) Broken("an output has no edge");
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
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (Recognise(bytes.substr(0, 4096), size <= 4096) > 100) Broken("more than certain");
  if (Imported(bytes, false) != Imported(bytes, true)) Broken("weights in place make another result");
  return 0;
}
