// Sessions of clients. Threads: any number may run one session.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core.h"
#include "graph.h"

struct TF_SessionOptions {
  std::string target;
  bool soft_placement = false;
  int64_t timeout_ms = 0;  // of a run that has none of its own
};

struct TF_Session {
  TF_Graph* graph;
  thalweg::tf::SessionRef session;
  int64_t timeout_ms = 0;
  ~TF_Session() { graph->Release(); }
};

namespace thalweg::tf {

// Sets what ConfigProto and the client's target say.
TF_Session* NewSession(TF_Graph* graph, const TF_SessionOptions* options);
// Feeds and fetches of one run, as Thalweg takes them.
struct Step {
  Step(const TF_Graph& graph, const TF_Output* inputs, int n_inputs, const TF_Output* outputs, int n_outputs,
       const TF_Operation* const* targets, int n_targets);
  void Feed(TF_Tensor* const* values);
  // Makes the client's tensors of what a run returned.
  void Give(TF_Tensor** values);

  tw_signature signature{};
  std::vector<tw_output> feeds, fetches;
  std::vector<const tw_operation*> targets;
  std::vector<tw_tensor*> fed, fetched;

  Step(const Step&) = delete;
  ~Step();
};

}  // namespace thalweg::tf
