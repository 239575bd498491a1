// Imports the bytes of a GraphDef, exports, plans, runs and differentiates, through the C API and
// with the build's plugins. Bad input may fail with any status; it must not crash, leak, hang, or
// give different bits with and without optimization.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/broken.h"
#include "tests/fuzz/handles.h"
#include "thalweg/thalweg.h"

namespace {

using thalweg::fuzz::Broken;
using thalweg::fuzz::Buffer;
using thalweg::fuzz::Graph;
using thalweg::fuzz::Must;
using thalweg::fuzz::Runtime;
using thalweg::fuzz::Session;
using thalweg::fuzz::Take;
using thalweg::fuzz::Tensor;

// Small enough that every input ends soon under a sanitizer.
constexpr size_t kMostBytes = 32 << 10;
constexpr uint32_t kMostOperations = 64;
constexpr int64_t kUnknownDim = 2;  // the size fed for an unknown dim
constexpr int64_t kTimeoutNs = 2'000'000'000;

Runtime MakeRuntime() {
  const char* options[] = {"threads=1", "memory_limit.CPU=4M", "disabled_plugins=org.thalweg.opencl"};
  tw_runtime* made = nullptr;
  Must(tw_runtime_create(options, 3, &made), "making a runtime");
  return Runtime(made);
}

struct Program {
  std::vector<tw_output> feeds, fetches;
  std::vector<const tw_operation*> targets;
  std::vector<Tensor> fed;
  bool stateful = false;  // random or with variables: results differ between runs
  bool complete = true;   // every placeholder could be fed
};

bool IsStateful(const std::string& type) {
  for (const char* part : {"Random", "Truncated", "Multinomial", "Var", "Assign", "Apply", "Save", "Restore"}) {
    if (type.find(part) != type.npos) return true;
  }
  return false;
}

// Makes deterministic elements of any plain type; returns false if the tensor cannot be made.
bool Fill(uint32_t dtype, const tw_shape& shape, Tensor* out) {
  std::vector<int64_t> dims;
  if (shape.rank < 0) dims = {kUnknownDim, kUnknownDim};
  int64_t count = 1;
  for (int32_t i = 0; i < std::max(shape.rank, 0); ++i) {
    dims.push_back(shape.dims[i] < 0 ? kUnknownDim : shape.dims[i]);
    if (dims.back() > 4096 || (count *= dims.back()) > 4096) return false;
  }
  tw_tensor* t = nullptr;
  if (Take(tw_tensor_create(dtype, dims.data(), uint32_t(dims.size()), &t)) != TW_OK) return false;
  out->reset(t);
  if (dtype == TW_STRING) return true;
  auto* bytes = static_cast<unsigned char*>(tw_tensor_mutable_data(t));
  const uint64_t n = tw_tensor_bytes(t);
  if (dtype == TW_FLOAT) {
    for (uint64_t i = 0; i < n / 4; ++i) reinterpret_cast<float*>(bytes)[i] = 0.25f * float(i % 17) - 1;
  } else if (dtype == TW_DOUBLE) {
    for (uint64_t i = 0; i < n / 8; ++i) reinterpret_cast<double*>(bytes)[i] = 0.25 * double(i % 17) - 1;
  } else if (n) {
    std::memset(bytes, 0, n);
    for (uint64_t i = 0; i < n; i += std::max<uint64_t>(tw_dtype_bytes(dtype), 1)) bytes[i] = dtype == TW_BOOL ? (i & 1) : (i % 5);
  }
  return true;
}

Program ReadProgram(const tw_graph* graph) {
  Program p;
  for (uint32_t i = 0; i < tw_graph_count(graph); ++i) {
    const tw_operation* op = tw_graph_operation(graph, i);
    const std::string type = tw_operation_type(op);
    p.stateful = p.stateful || IsStateful(type);
    if (type == "Placeholder") {
      const tw_output value = tw_operation_output(op, 0);
      uint32_t dtype = 0;
      tw_shape shape;
      Must(tw_graph_describe(graph, value, &dtype, &shape), "describing a placeholder");
      Tensor t;
      if (!Fill(dtype, shape, &t)) {
        p.complete = false;
        continue;
      }
      p.feeds.push_back(value);
      p.fed.push_back(std::move(t));
    }
    for (uint32_t o = 0; o < tw_operation_output_count(op); ++o) {
      uint32_t dtype = 0;
      Must(tw_graph_describe(graph, tw_operation_output(op, o), &dtype, nullptr), "describing a value");
      if (dtype == TW_RESOURCE || dtype == TW_VARIANT || dtype > 100) continue;
      p.fetches.push_back(tw_operation_output(op, o));
    }
    p.targets.push_back(op);
  }
  return p;
}

uint32_t Run(tw_graph* graph, const Program& p, const std::vector<const char*>& options, std::vector<Tensor>* out) {
  tw_session* made = nullptr;
  Must(tw_session_create(graph, options.data(), uint32_t(options.size()), &made), "making a session");
  Session session(made);
  tw_signature what{};
  what.size = sizeof what;
  what.feeds = p.feeds.data();
  what.fetches = p.fetches.data();
  what.targets = p.targets.data();
  what.n_feeds = uint32_t(p.feeds.size());
  what.n_fetches = uint32_t(p.fetches.size());
  what.n_targets = uint32_t(p.targets.size());
  std::vector<tw_tensor*> feeds;
  for (const Tensor& t : p.fed) feeds.push_back(t.get());
  tw_run_options limits{};
  limits.size = sizeof limits;
  limits.timeout_ns = kTimeoutNs;
  uint32_t code = TW_OK;
  // The second step uses the plan and the state that the first one left.
  for (int step = 0; step < 2; ++step) {
    std::vector<tw_tensor*> fetched(p.fetches.size(), nullptr);
    code = Take(tw_session_run(session.get(), &what, feeds.data(), &limits, fetched.data()));
    out->clear();
    for (tw_tensor* t : fetched) {
      if ((t != nullptr) != (code == TW_OK)) Broken("a run and its fetches disagree about its success");
      out->emplace_back(t);
    }
  }
  return code;
}

void Compare(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const tw_tensor *x = a[i].get(), *y = b[i].get();
    const uint32_t dtype = tw_tensor_dtype(x);
    bool same = dtype == tw_tensor_dtype(y) && tw_tensor_rank(x) == tw_tensor_rank(y) && tw_tensor_bytes(x) == tw_tensor_bytes(y);
    for (uint32_t d = 0; same && d < tw_tensor_rank(x); ++d) same = tw_tensor_dim(x, d) == tw_tensor_dim(y, d);
    if (same && dtype != TW_STRING && tw_tensor_bytes(x)) same = std::memcmp(tw_tensor_data(x), tw_tensor_data(y), tw_tensor_bytes(x)) == 0;
    if (!same) Broken("fetch " + std::to_string(i) + " differs with and without optimization");
  }
}

// Checks that an exported graph, imported again, exports the same bytes.
void RoundTrip(tw_runtime* runtime, const tw_graph* graph) {
  tw_buffer *first = nullptr, *second = nullptr;
  Must(tw_graph_export(graph, &first), "exporting");
  Buffer a(first);
  tw_graph* made = nullptr;
  Must(tw_graph_create(runtime, &made), "making a graph");
  Graph again(made);
  Must(tw_graph_import(again.get(), tw_buffer_data(a.get()), tw_buffer_bytes(a.get()), nullptr), "importing what was exported");
  Must(tw_graph_export(again.get(), &second), "exporting again");
  Buffer b(second);
  if (tw_buffer_bytes(a.get()) != tw_buffer_bytes(b.get()) ||
      std::memcmp(tw_buffer_data(a.get()), tw_buffer_data(b.get()), tw_buffer_bytes(a.get())) != 0) {
    Broken("export, import and export give other bytes");
  }
}

// Adds the gradients of the last unread float value with respect to every float placeholder.
bool AddGradients(tw_graph* graph, Program* p) {
  std::vector<tw_output> xs, ys;
  for (tw_output v : p->feeds) {
    uint32_t dtype = 0;
    Must(tw_graph_describe(graph, v, &dtype, nullptr), "describing a feed");
    if (dtype == TW_FLOAT || dtype == TW_DOUBLE) xs.push_back(v);
  }
  for (tw_output v : p->fetches) {
    uint32_t dtype = 0;
    Must(tw_graph_describe(graph, v, &dtype, nullptr), "describing a fetch");
    if (dtype == TW_FLOAT || dtype == TW_DOUBLE) ys.assign(1, v);
  }
  if (xs.empty() || ys.empty()) return false;
  std::vector<tw_gradient> gradients(xs.size());
  if (Take(tw_gradients_add(graph, ys.data(), nullptr, 1, xs.data(), uint32_t(xs.size()), gradients.data())) != TW_OK) return false;
  p->fetches.clear();
  p->targets.clear();
  for (const tw_gradient& g : gradients) {
    if (g.values) p->fetches.push_back(g.values);
    if (g.rows) p->fetches.push_back(g.rows);
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > kMostBytes) return -1;
  // Variables live as long as their runtime: an input that may make some gets its own runtime.
  static const Runtime shared = MakeRuntime();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Runtime own = bytes.find("Var") == bytes.npos ? nullptr : MakeRuntime();
  tw_runtime* runtime = own ? own.get() : shared.get();
  // This target does not test files.
  if (bytes.find("SaveV2") != bytes.npos || bytes.find("MergeV2") != bytes.npos || bytes.find("RestoreV2") != bytes.npos) return -1;

  tw_graph* made = nullptr;
  Must(tw_graph_create(runtime, &made), "making a graph");
  Graph graph(made);
  const uint32_t verified = Take(tw_graph_verify(runtime, data, size));
  const uint32_t imported = Take(tw_graph_import(graph.get(), data, size, nullptr));
  if (imported != TW_OK) {
    if (verified == TW_OK) Broken("what the verifier let through is not imported");
    if (tw_graph_count(graph.get()) != 0) Broken("a failed import left operations behind");
    return 0;
  }
  RoundTrip(runtime, graph.get());
  if (tw_graph_count(graph.get()) == 0 || tw_graph_count(graph.get()) > kMostOperations) return 0;
  Program program = ReadProgram(graph.get());
  if (!program.complete) return 0;
  std::vector<Tensor> plain, optimized;
  const uint32_t without = Run(graph.get(), program, {"optimize=false", "container=plain"}, &plain);
  const uint32_t with = Run(graph.get(), program, {"engine=counted", "container=optimized"}, &optimized);
  const auto limited = [](uint32_t code) { return code == TW_RESOURCE_EXHAUSTED || code == TW_DEADLINE_EXCEEDED; };
  if (!program.stateful && !limited(without) && !limited(with)) {
    if ((without == TW_OK) != (with == TW_OK)) Broken("a step succeeds only with, or only without, optimization");
    if (with == TW_OK) Compare(plain, optimized);
  }
  if (AddGradients(graph.get(), &program)) Run(graph.get(), program, {}, &optimized);
  return 0;
}
