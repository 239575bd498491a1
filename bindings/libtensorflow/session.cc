#include "session.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/session_options.h"
#include "tensor.h"
#include "wire.h"

namespace thalweg::tf {
namespace {

std::vector<std::string> OptionsOf(const TF_SessionOptions& o) {
  // TensorFlow runs what a graph says, so clients expect graphs that they load to read their own files.
  std::vector<std::string> options = {"trust_imported=true"};
  if (!o.target.empty() && o.target != "local") options.push_back("target=" + o.target);
  if (o.soft_placement) options.push_back("soft_placement=true");
  AppendOptionsOf("THALWEG_TENSORFLOW_SESSION_OPTIONS", &options);
  return options;
}

// A RunMetadata with the times of all nodes; microseconds on the machine's monotonic clock.
std::string MetadataOf(const tw_step_stats* stats) {
  enum MetadataField : uint32_t { kStepStats = 1 };
  enum StatsField : uint32_t { kDevStats = 1 };
  enum DeviceField : uint32_t { kDevice = 1, kNodeStats = 2 };
  enum NodeField : uint32_t { kName = 1, kStart = 2, kOpEnd = 4, kAllEnd = 5, kLabel = 8, kThread = 10 };
  const auto micros = [](int64_t ns) { return static_cast<uint64_t>(std::max<int64_t>(ns, 0) / 1000); };
  const int64_t began = tw_step_stats_total(stats)->began_ns;
  std::map<std::string, std::string> devices;
  for (uint32_t i = 0; i < tw_step_stats_node_count(stats); ++i) {
    const tw_step_node& n = *tw_step_stats_node(stats, i);
    std::string node;
    PutField(kName, std::string_view(n.name), &node);
    PutField(kStart, micros(began + n.start_ns), &node);
    PutField(kOpEnd, micros(n.end_ns - n.start_ns), &node);
    PutField(kAllEnd, micros(n.end_ns - n.start_ns), &node);
    PutField(kLabel, Text(n.name, " = ", n.op), &node);
    PutField(kThread, uint64_t{n.thread}, &node);
    PutField(kNodeStats, node, &devices[n.device]);
  }
  std::string steps, metadata;
  for (const auto& [name, nodes] : devices) {
    std::string device;
    PutField(kDevice, name, &device);
    PutField(kDevStats, device + nodes, &steps);
  }
  PutField(kStepStats, steps, &metadata);
  return metadata;
}

}  // namespace

TF_Session* NewSession(TF_Graph* graph, const TF_SessionOptions* options) {
  const std::vector<std::string> texts = OptionsOf(options ? *options : TF_SessionOptions());
  std::vector<const char*> words;
  for (const std::string& t : texts) words.push_back(t.c_str());
  tw_session* session = nullptr;
  Check(tw_session_create(graph->graph, words.data(), static_cast<uint32_t>(words.size()), &session));
  SessionRef owner(session);
  graph->owners.fetch_add(1);
  return new TF_Session{graph, std::move(owner), options ? options->timeout_ms : 0};
}

Step::Step(const TF_Graph& graph, const TF_Output* inputs, int n_inputs, const TF_Output* outputs, int n_outputs,
           const TF_Operation* const* target_opers, int n_targets) {
  for (int i = 0; i < n_inputs; ++i) feeds.push_back(Inside(graph, inputs[i], "a feed"));
  for (int i = 0; i < n_outputs; ++i) fetches.push_back(Inside(graph, outputs[i], "a fetch"));
  for (int i = 0; i < n_targets; ++i) {
    if (!target_opers[i] || target_opers[i]->graph != &graph) Fail(TF_INVALID_ARGUMENT, "a target is not in the graph");
    targets.push_back(target_opers[i]->op);
  }
  fetched.resize(fetches.size());
  signature.size = sizeof signature;
  signature.feeds = feeds.data();
  signature.fetches = fetches.data();
  signature.targets = targets.data();
  signature.n_feeds = static_cast<uint32_t>(feeds.size());
  signature.n_fetches = static_cast<uint32_t>(fetches.size());
  signature.n_targets = static_cast<uint32_t>(targets.size());
}

Step::~Step() {
  for (tw_tensor* t : fed) tw_tensor_release(t);
  for (tw_tensor* t : fetched) tw_tensor_release(t);
}

void Step::Feed(TF_Tensor* const* values) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (!values[i]) Fail(TF_INVALID_ARGUMENT, "the tensor of feed ", std::to_string(i), " is NULL");
    fed.push_back(ToThalweg(*values[i]).release());
  }
}

void Step::Give(TF_Tensor** values) {
  std::vector<std::unique_ptr<TF_Tensor>> made;
  for (tw_tensor*& t : fetched) made.emplace_back(FromThalweg(TensorRef(std::exchange(t, nullptr))));
  for (size_t i = 0; i < made.size(); ++i) values[i] = made[i].release();
}

}  // namespace thalweg::tf

using namespace thalweg::tf;

TF_SessionOptions* TF_NewSessionOptions(void) { return new TF_SessionOptions; }
void TF_DeleteSessionOptions(TF_SessionOptions* options) { delete options; }
void TF_SetTarget(TF_SessionOptions* options, const char* target) { options->target = OrEmpty(target); }

void TF_SetConfig(TF_SessionOptions* options, const void* bytes, size_t n, TF_Status* status) {
  enum ConfigField : uint32_t { kSoftPlacement = 7, kTimeout = 11 };
  Guard(status, [&] {
    TF_SessionOptions set = *options;
    EachField(
        {static_cast<const char*>(bytes), n}, "ConfigProto",
        [&](uint32_t field, uint64_t value) {
          if (field == kSoftPlacement) set.soft_placement = value != 0;
          if (field == kTimeout) set.timeout_ms = static_cast<int64_t>(value);
        },
        [](uint32_t, std::string_view) {});
    *options = set;
  });
}

TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* options, TF_Status* status) {
  return Guard(status, [&] { return NewSession(graph, options); });
}
void TF_CloseSession(TF_Session* session, TF_Status* status) {
  Guard(status, [&] { Check(tw_session_close(session->session.get())); });
}
void TF_DeleteSession(TF_Session* session, TF_Status* status) {
  Guard(status, [&] { delete session; });
}
// Sessions of Thalweg see what is added to their graph.
void TF_ExtendSession(TF_Session*, TF_Status* status) {
  Guard(status, [] {});
}

void TF_SessionRun(TF_Session* session, const TF_Buffer* run_options, const TF_Output* inputs, TF_Tensor* const* input_values, int ninputs,
                   const TF_Output* outputs, TF_Tensor** output_values, int noutputs, const TF_Operation* const* target_opers, int ntargets,
                   TF_Buffer* run_metadata, TF_Status* status) {
  enum OptionField : uint32_t { kTraceLevel = 1, kTimeout = 2 };
  for (int i = 0; i < noutputs; ++i) output_values[i] = nullptr;
  Guard(status, [&] {
    if (run_metadata && run_metadata->data) Fail(TF_INVALID_ARGUMENT, "Passing non-empty run_metadata is invalid.");
    Step step(*session->graph, inputs, ninputs, outputs, noutputs, target_opers, ntargets);
    step.Feed(input_values);
    tw_run_options options{};
    options.size = sizeof options;
    int64_t timeout_ms = session->timeout_ms;
    bool trace = false;
    if (run_options) {
      EachField(
          {static_cast<const char*>(run_options->data), run_options->length}, "RunOptions proto",
          [&](uint32_t field, uint64_t value) {
            if (field == kTraceLevel) trace = value != 0;
            if (field == kTimeout) timeout_ms = static_cast<int64_t>(value);
          },
          [](uint32_t, std::string_view) {});
    }
    options.timeout_ns = std::clamp<int64_t>(timeout_ms, 0, INT64_MAX / 1000000) * 1000000;
    StatsRef stats;
    if (trace && run_metadata) {
      tw_step_stats* made = nullptr;
      Check(tw_step_stats_create(&made));
      stats.reset(made);
      options.stats = made;
    }
    Check(tw_session_run(session->session.get(), &step.signature, step.fed.data(), &options, step.fetched.data()));
    if (run_metadata) Fill(run_metadata, stats ? MetadataOf(stats.get()) : std::string());
    step.Give(output_values);
  });
}

// ---- Partial runs ----

namespace {

// A handle is the text that the client holds; it begins with this record's address.
struct PartialRun {
  tw_partial_run* run = nullptr;
  ~PartialRun() { tw_partial_run_destroy(run); }
};
struct PartialRuns {
  std::mutex mu;
  std::map<std::string, std::shared_ptr<PartialRun>> runs;  // guarded by mu
  uint64_t last = 0;                                        // guarded by mu
};
PartialRuns& Runs() {
  static PartialRuns* const runs = new PartialRuns;
  return *runs;
}

}  // namespace

void TF_SessionPRunSetup(TF_Session* session, const TF_Output* inputs, int ninputs, const TF_Output* outputs, int noutputs,
                         const TF_Operation* const* target_opers, int ntargets, const char** handle, TF_Status* status) {
  *handle = nullptr;
  Guard(status, [&] {
    const Step whole(*session->graph, inputs, ninputs, outputs, noutputs, target_opers, ntargets);
    auto run = std::make_shared<PartialRun>();
    Check(tw_partial_run_create(session->session.get(), &whole.signature, &run->run));
    const std::lock_guard lock(Runs().mu);
    const std::string name = "partial_run_" + std::to_string(++Runs().last);
    char* text = static_cast<char*>(std::malloc(name.size() + 1));
    if (!text) throw std::bad_alloc();
    std::memcpy(text, name.c_str(), name.size() + 1);
    Runs().runs[name] = std::move(run);
    *handle = text;
  });
}

void TF_SessionPRun(TF_Session* session, const char* handle, const TF_Output* inputs, TF_Tensor* const* input_values, int ninputs,
                    const TF_Output* outputs, TF_Tensor** output_values, int noutputs, const TF_Operation* const* target_opers,
                    int ntargets, TF_Status* status) {
  for (int i = 0; i < noutputs; ++i) output_values[i] = nullptr;
  Guard(status, [&] {
    std::shared_ptr<PartialRun> run;
    {
      const std::lock_guard lock(Runs().mu);
      const auto at = Runs().runs.find(OrEmpty(handle));
      if (at == Runs().runs.end()) Fail(TF_INVALID_ARGUMENT, "Must run 'setup' before performing partial runs!");
      run = at->second;
    }
    Step part(*session->graph, inputs, ninputs, outputs, noutputs, target_opers, ntargets);
    part.Feed(input_values);
    Check(tw_partial_run_run(run->run, &part.signature, part.fed.data(), nullptr, part.fetched.data()));
    part.Give(output_values);
  });
}

void TF_DeletePRunHandle(const char* handle) {
  if (!handle) return;
  {
    const std::lock_guard lock(Runs().mu);
    Runs().runs.erase(handle);
  }
  std::free(const_cast<char*>(handle));
}

void TF_Reset(const TF_SessionOptions* options, const char** containers, int ncontainers, TF_Status* status) {
  Guard(status, [&] {
    if (options && !options->target.empty() && options->target != "local") {
      Fail(TF_UNIMPLEMENTED, "TF_Reset of a cluster; use tw_cluster_reset of Thalweg");
    }
    if (ncontainers == 0) Check(tw_runtime_reset(nullptr, nullptr, nullptr));
    for (int i = 0; i < ncontainers; ++i) Check(tw_runtime_reset(nullptr, containers[i], nullptr));
  });
}

// ---- Constants ----

// Whether a value depends on nothing but constants.
static bool IsConstant(const tw_graph* graph, const tw_operation* op, int depth) {
  if (depth > 1000 || tw_operation_is_stateful(op)) return false;
  const std::string type = tw_operation_type(op);
  if (type == "Const") return true;
  if (tw_operation_input_count(op) == 0 || tw_operation_control_count(op) > 0 || type == "PlaceholderWithDefault") return false;
  if (type == "Merge" || type == "Switch" || type == "Enter" || type == "Exit" || type == "NextIteration") return false;
  for (uint32_t i = 0; i < tw_operation_input_count(op); ++i) {
    const tw_operation* from = nullptr;
    Check(tw_graph_producer(graph, tw_operation_input(op, i), &from, nullptr));
    if (!IsConstant(graph, from, depth + 1)) return false;
  }
  return true;
}

unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output, TF_Tensor** result, TF_Status* status) {
  *result = nullptr;
  return Guard(status, [&]() -> unsigned char {
    Inside(*graph, output);
    if (!IsConstant(graph->graph, output.oper->op, 0)) return 0;
    const std::unique_ptr<TF_Session> session(NewSession(graph, nullptr));
    Step step(*graph, nullptr, 0, &output, 1, nullptr, 0);
    Check(tw_session_run(session->session.get(), &step.signature, nullptr, nullptr, step.fetched.data()));
    step.Give(result);
    return 1;
  });
}
