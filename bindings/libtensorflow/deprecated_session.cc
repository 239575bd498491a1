// Sessions of the first API, which name values by texts.
#include <cstring>

#include "import.h"
#include "session.h"

using namespace thalweg::tf;

struct TF_DeprecatedSession {
  TF_SessionOptions options;
  TF_Graph* graph;
  std::unique_ptr<TF_Session> session;
  ~TF_DeprecatedSession() {
    session.reset();
    graph->Release();
  }
};

namespace {

std::vector<TF_Output> Values(TF_DeprecatedSession* s, const char** names, int n) {
  std::vector<TF_Output> values;
  for (int i = 0; i < n; ++i) {
    const auto [node, port] = SplitInput(OrEmpty(names[i]));
    TF_Operation* operation = s->graph->FindName(node);
    if (!operation) Fail(TF_NOT_FOUND, "the graph has no value '", OrEmpty(names[i]), "'");
    values.push_back({operation, port});
  }
  return values;
}
std::vector<const TF_Operation*> Targets(TF_DeprecatedSession* s, const char** names, int n) {
  std::vector<const TF_Operation*> targets;
  for (int i = 0; i < n; ++i) {
    targets.push_back(s->graph->FindName(OrEmpty(names[i])));
    if (!targets.back()) Fail(TF_NOT_FOUND, "the graph has no operation '", OrEmpty(names[i]), "'");
  }
  return targets;
}

// Runs call(feeds, fetches, targets), which sets *status itself, unless a name is unknown.
template <class Call>
void Named(TF_DeprecatedSession* s, const char** inputs, int ninputs, const char** outputs, int noutputs, const char** targets,
           int ntargets, TF_Status* status, Call&& call) {
  std::vector<TF_Output> feeds, fetches;
  std::vector<const TF_Operation*> operations;
  bool found = false;
  Guard(status, [&] {
    if (!s->session) Fail(TF_FAILED_PRECONDITION, "Session was not created with a graph before Run()!");
    feeds = Values(s, inputs, ninputs);
    fetches = Values(s, outputs, noutputs);
    operations = Targets(s, targets, ntargets);
    found = true;
  });
  if (found) call(feeds.data(), fetches.data(), operations.data());
}

// The first API takes the feeds from the client.
void Release(TF_Tensor** tensors, int n) {
  for (int i = 0; i < n; ++i) TF_DeleteTensor(tensors[i]);
}

}  // namespace

TF_DeprecatedSession* TF_NewDeprecatedSession(const TF_SessionOptions* options, TF_Status* status) {
  return Guard(status, [&] {
    auto graph = std::make_unique<TF_Graph>();
    auto* made = new TF_DeprecatedSession{*options, graph.get(), nullptr};
    graph.release();
    return made;
  });
}
void TF_CloseDeprecatedSession(TF_DeprecatedSession* s, TF_Status* status) {
  Guard(status, [&] {
    if (s->session) Check(tw_session_close(s->session->session.get()));
  });
}
void TF_DeleteDeprecatedSession(TF_DeprecatedSession* s, TF_Status* status) {
  Guard(status, [&] { delete s; });
}

void TF_ExtendGraph(TF_DeprecatedSession* s, const void* bytes, size_t n, TF_Status* status) {
  Guard(status, [&] {
    thalweg::proto::GraphDef def;
    Parse(bytes, n, "GraphDef", &def);
    Import(s->graph, std::move(def), TF_ImportGraphDefOptions());
    if (!s->session) s->session.reset(NewSession(s->graph, &s->options));
  });
}

void TF_Run(TF_DeprecatedSession* s, const TF_Buffer* run_options, const char** input_names, TF_Tensor** inputs, int ninputs,
            const char** output_names, TF_Tensor** outputs, int noutputs, const char** target_names, int ntargets, TF_Buffer* run_metadata,
            TF_Status* status) {
  for (int i = 0; i < noutputs; ++i) outputs[i] = nullptr;
  Named(s, input_names, ninputs, output_names, noutputs, target_names, ntargets, status, [&](auto* feeds, auto* fetches, auto* targets) {
    TF_SessionRun(s->session.get(), run_options, feeds, inputs, ninputs, fetches, outputs, noutputs, targets, ntargets, run_metadata,
                  status);
  });
  Release(inputs, ninputs);
}
void TF_PRunSetup(TF_DeprecatedSession* s, const char** input_names, int ninputs, const char** output_names, int noutputs,
                  const char** target_names, int ntargets, const char** handle, TF_Status* status) {
  *handle = nullptr;
  Named(s, input_names, ninputs, output_names, noutputs, target_names, ntargets, status, [&](auto* feeds, auto* fetches, auto* targets) {
    TF_SessionPRunSetup(s->session.get(), feeds, ninputs, fetches, noutputs, targets, ntargets, handle, status);
  });
}
void TF_PRun(TF_DeprecatedSession* s, const char* handle, const char** input_names, TF_Tensor** inputs, int ninputs,
             const char** output_names, TF_Tensor** outputs, int noutputs, const char** target_names, int ntargets, TF_Status* status) {
  for (int i = 0; i < noutputs; ++i) outputs[i] = nullptr;
  Named(s, input_names, ninputs, output_names, noutputs, target_names, ntargets, status, [&](auto* feeds, auto* fetches, auto* targets) {
    TF_SessionPRun(s->session.get(), handle, feeds, inputs, ninputs, fetches, outputs, noutputs, targets, ntargets, status);
  });
  Release(inputs, ninputs);
}
