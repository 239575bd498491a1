// Runs cases of ONNX's test data: folders with model.onnx and test_data_set_N/{input,output}_N.pb. Prints one line a case: its name, a tab,
// "ok" or the reason. Used while translators are written; the tests use the plugin (cases_test.py).
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "graph_sink.h"
#include "plugins/onnx/model.h"

namespace thalweg::onnx {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Tensor ReadTensor(const fs::path& path) {
  proto::TensorProto t;
  if (!t.ParseFromString(ReadFile(path))) throw Error{TW_UNIMPLEMENTED, "data is no tensor: " + path.filename().string()};
  return TensorOf(t, nullptr, nullptr);
}

void Compare(const Tensor& want, const tw_tensor* got) {
  const Dims dims(tw_tensor_dims(got), tw_tensor_dims(got) + tw_tensor_rank(got));
  if (tw_tensor_dtype(got) != want.dtype()) throw Error{TW_UNKNOWN, std::string("type is ") + DtypeName(tw_tensor_dtype(got)) + ", not " + DtypeName(want.dtype())};
  if (dims != want.dims()) throw Error{TW_UNKNOWN, "shape is " + Text(dims) + ", not " + Text(want.dims())};
  if (want.dtype() == TW_STRING) {
    for (int64_t i = 0; i < want.count(); ++i) {
      const char* data;
      uint64_t bytes;
      Check(tw_tensor_get_string(got, static_cast<uint64_t>(i), &data, &bytes));
      if (std::string(data, bytes) != want.strings()[static_cast<size_t>(i)]) throw Error{TW_UNKNOWN, "string " + std::to_string(i) + " is '" + std::string(data, bytes) + "'"};
    }
    return;
  }
  uint32_t dtype = want.dtype();
  int64_t count = want.count();
  Tensor w = want;
  Dims all{count};
  if (dtype == TW_COMPLEX64 || dtype == TW_COMPLEX128) {
    dtype = dtype == TW_COMPLEX64 ? TW_FLOAT : TW_DOUBLE;
    count *= 2;
    all = {count};
    w = Tensor(dtype, all, want.data(), std::make_shared<Tensor>(want));
  }
  const Tensor g(dtype, all, tw_tensor_data(got), nullptr);
  for (int64_t i = 0; i < count; ++i) {
    if (IsInteger(dtype)) {
      if (w.integer(i) != g.integer(i)) throw Error{TW_UNKNOWN, "element " + std::to_string(i) + " is " + std::to_string(g.integer(i)) + ", not " + std::to_string(w.integer(i))};
      continue;
    }
    const double a = w.real(i), b = g.real(i);
    if ((std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= 1e-5 + 1e-3 * std::fabs(a)) continue;
    throw Error{TW_UNKNOWN, "element " + std::to_string(i) + " is " + std::to_string(b) + ", not " + std::to_string(a)};
  }
}

struct Graph {
  tw_graph* graph = nullptr;
  tw_session* session = nullptr;
  Graph() { Check(tw_graph_create(nullptr, &graph)); }
  ~Graph() {
    tw_session_destroy(session);
    tw_graph_destroy(graph);
  }
};

void Run(const fs::path& folder, tw_runtime* runtime) {
  (void)runtime;
  Graph g;
  GraphSink sink(g.graph);
  const OpenExternal external = [&](const std::string& location) {
    const auto text = std::make_shared<const std::string>(ReadFile(folder / location));
    return Bytes{text->data(), text->size(), text};
  };
  const Ports ports = Import(ParseModel(ReadFile(folder / "model.onnx")), external, sink);
  std::vector<tw_output> feeds, fetches;
  for (const Port& p : ports.inputs) feeds.push_back(p.edge);
  for (const Port& p : ports.outputs) fetches.push_back(p.edge);
  Check(tw_session_create(g.graph, nullptr, 0, &g.session));
  bool any = false;
  for (int set = 0; fs::exists(folder / ("test_data_set_" + std::to_string(set))); ++set) {
    any = true;
    const fs::path data = folder / ("test_data_set_" + std::to_string(set));
    std::vector<tw_tensor*> in, out(fetches.size());
    for (size_t i = 0; i < feeds.size(); ++i) in.push_back(TensorFor(ReadTensor(data / ("input_" + std::to_string(i) + ".pb"))));
    tw_signature s{};
    s.size = sizeof s;
    s.feeds = feeds.data();
    s.n_feeds = static_cast<uint32_t>(feeds.size());
    s.fetches = fetches.data();
    s.n_fetches = static_cast<uint32_t>(fetches.size());
    Check(tw_session_run(g.session, &s, in.data(), nullptr, out.data()));
    for (size_t i = 0; i < out.size(); ++i) {
      try {
        Compare(ReadTensor(data / ("output_" + std::to_string(i) + ".pb")), out[i]);
      } catch (Error& e) {
        e.text = "output " + std::to_string(i) + " '" + ports.outputs[i].name + "': " + e.text;
        throw;
      }
    }
    for (tw_tensor* t : in) tw_tensor_release(t);
    for (tw_tensor* t : out) tw_tensor_release(t);
  }
  if (!any) throw Error{TW_NOT_FOUND, "no data"};
}

}  // namespace
}  // namespace thalweg::onnx

int main(int argc, char** argv) {
  using namespace thalweg::onnx;
  for (int i = 1; i < argc; ++i) {
    std::string result = "ok";
    try {
      Run(argv[i], nullptr);
    } catch (const Error& e) {
      result = e.text;
    } catch (const std::exception& e) {
      result = e.what();
    }
    for (char& c : result) c = c == '\n' || c == '\t' ? ' ' : c;
    std::printf("%s\t%s\n", fs::path(argv[i]).filename().c_str(), result.c_str());
    std::fflush(stdout);
  }
  return 0;
}
