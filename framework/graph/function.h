// Function: a graph that nodes call by its name. FunctionLibrary: the functions of a graph, which the bodies of these functions share.
// Threads: a Function is immutable; a library takes and answers from any thread.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// What a function takes, gives and does, by values and nodes of its body.
struct FunctionSpec {
  std::string name;
  std::shared_ptr<Graph> body;
  std::vector<Edge> args;            // placeholders
  std::vector<Edge> results;         // may repeat, may be arguments
  std::vector<const Node*> targets;  // that run for what they do
};

class Function {
 public:
  // Errors: INVALID_ARGUMENT naming the function: an argument that is no placeholder or stands twice, a placeholder that is needed but is
  // no argument, values and nodes of another graph.
  static StatusOr<std::shared_ptr<const Function>> Make(FunctionSpec spec);

  const std::string& name() const { return spec_.name; }
  Graph& body() const { return *spec_.body; }
  const std::vector<Edge>& args() const { return spec_.args; }
  const std::vector<Edge>& results() const { return spec_.results; }
  const std::vector<const Node*>& targets() const { return spec_.targets; }
  uint32_t arg_type(size_t i) const { return spec_.args[i].node->out_type(0); }
  uint32_t result_type(size_t o) const { return spec_.results[o].node->out_type(spec_.results[o].port); }
  // "'f' (float[2], int32) -> (float[?])": for messages.
  std::string title() const;

 private:
  explicit Function(FunctionSpec spec) : spec_(std::move(spec)) {}
  const FunctionSpec spec_;
};

// Values of attributes as stored, by name.
using AttrMessages = std::map<std::string, std::string, std::less<>>;

// A function that gives the gradients of a node's inputs, given those of its outputs.
struct StoredGradient {
  std::string function;
  bool takes_inputs = false;  // and, before them, the inputs
};

// A loop of Enter, Merge, Switch, NextIteration and Exit as a node that calls functions, beside the graph that it stands for (see
// plan/sequence_pass.cc).
struct LoopCall {
  std::shared_ptr<Graph> graph;  // that holds the node
  const Node* node = nullptr;    // NULL: it is none that can be one
  std::vector<int32_t> inputs;   // of the node: what enters by which Enter
  std::vector<int32_t> outputs;  // per Exit: the node's
};

class FunctionLibrary {
 public:
  // graph: that has the library; outlives it.
  explicit FunctionLibrary(const Graph* graph) : graph_(graph) {}
  // A stored function is read when it is first asked for. Errors: NOT_FOUND, naming it; those of ImportFunctionDef.
  StatusOr<std::shared_ptr<const Function>> Find(std::string_view name);
  // ALREADY_EXISTS where another has the name.
  Status Add(std::shared_ptr<const Function> f);
  // The same of one that the program knows nothing of: neither told by Names nor exported.
  Status AddHidden(std::shared_ptr<const Function> f);
  std::vector<std::string> Names() const;  // sorted
  // `base`, or base_1, base_2, ...: a name that no function has, nor will get from another call.
  std::string UniqueName(std::string_view base);

  // The name by which a stored function is found whose attributes have these values. It is made when it is first asked for, and neither
  // told by Names nor exported.
  std::string Instance(std::string_view name, const AttrMessages& attrs);
  // The function as stored, which an instance does not have. NOT_FOUND: it is not stored.
  StatusOr<std::string> Stored(std::string_view name) const;
  // What was kept for a loop of these nodes; NULL: nothing.
  std::shared_ptr<const LoopCall> FindLoop(const std::vector<const Node*>& nodes) const;
  // Answers what is kept: of two that come for one loop, the first.
  std::shared_ptr<const LoopCall> KeepLoop(std::vector<const Node*> nodes, LoopCall call);
  // What a library says is the gradient of calls of the function, or of nodes whose attribute _gradient_op_type is this. Empty: nothing.
  std::optional<StoredGradient> GradientOf(std::string_view name);

  // Functions of a serialised FunctionDefLibrary. Check: whether Store can take them. Errors: INVALID_ARGUMENT for damaged bytes;
  // ALREADY_EXISTS where another function has the name of one.
  Status Check(std::string_view library) const;
  Status Store(std::string_view library);
  // A serialised FunctionDefLibrary of the functions that did not come by Store.
  StatusOr<std::string> ExportAdded() const;

 private:
  struct Entry {
    std::shared_ptr<const Function> function;  // NULL: not read yet; without bytes: the name was given out
    std::string bytes;                         // as stored
    std::string origin;                        // of an instance: the stored function; of a hidden one itself
    AttrMessages attrs;                        // and the values of its attributes
    bool is_instance() const { return !origin.empty(); }
  };
  Status Add(std::shared_ptr<const Function> f, bool hidden);
  const Graph* const graph_;
  mutable std::shared_mutex mu_;
  std::map<std::string, Entry, std::less<>> all_;
  std::map<std::string, StoredGradient, std::less<>> gradients_;
  std::map<std::vector<const Node*>, std::shared_ptr<const LoopCall>> loops_;
};

}  // namespace thalweg
