// Function: a graph that nodes call by name. FunctionLibrary: the functions of a graph, which the
// bodies of these functions share. Threads: a Function is immutable; a library may be used from any
// thread.
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

// The signature and effects of a function, as values and nodes of its body.
struct FunctionSpec {
  std::string name;
  std::shared_ptr<Graph> body;
  std::vector<Edge> args;            // placeholders of the body
  std::vector<Edge> results;         // may repeat; may be arguments
  std::vector<const Node*> targets;  // run for their effects
};

class Function {
 public:
  // INVALID_ARGUMENT names the function: an argument is not a placeholder or occurs twice, a needed
  // placeholder is not an argument, or a value or node is of another graph.
  static StatusOr<std::shared_ptr<const Function>> Make(FunctionSpec spec);

  const std::string& name() const { return spec_.name; }
  Graph& body() const { return *spec_.body; }
  const std::vector<Edge>& args() const { return spec_.args; }
  const std::vector<Edge>& results() const { return spec_.results; }
  const std::vector<const Node*>& targets() const { return spec_.targets; }
  uint32_t arg_type(size_t i) const { return spec_.args[i].node->out_type(0); }
  uint32_t result_type(size_t o) const { return spec_.results[o].node->out_type(spec_.results[o].port); }
  // Formats "'f' (float[2], int32) -> (float[?])", for messages.
  std::string title() const;

 private:
  explicit Function(FunctionSpec spec) : spec_(std::move(spec)) {}
  const FunctionSpec spec_;
};

// Serialised attribute values by name.
using AttrMessages = std::map<std::string, std::string, std::less<>>;

// A function that computes the gradients of a node's inputs from those of its outputs.
struct StoredGradient {
  std::string function;
  bool takes_inputs = false;  // it takes the node's inputs too, before those gradients
};

// A loop of Enter, Merge, Switch, NextIteration and Exit in the form of a node that calls
// functions, in a graph of its own (see planner/passes/sequence_pass.cc).
struct LoopCall {
  std::shared_ptr<Graph> graph;  // contains the node
  const Node* node = nullptr;    // NULL: the loop cannot be such a node
  std::vector<int32_t> inputs;   // per input of the node: the Enter that it replaces
  std::vector<int32_t> outputs;  // per Exit: output of the node
};

class FunctionLibrary {
 public:
  // graph: the owner of the library; must outlive it.
  explicit FunctionLibrary(const Graph* graph) : graph_(graph) {}
  // Returns the function; a stored function is parsed at the first call. NOT_FOUND names the
  // function; the errors of ImportFunctionDef.
  StatusOr<std::shared_ptr<const Function>> Find(std::string_view name);
  // ALREADY_EXISTS if another function has the name.
  Status Add(std::shared_ptr<const Function> f);
  // Adds a function of the framework's own, which Names does not list and exports leave out.
  Status AddHidden(std::shared_ptr<const Function> f);
  std::vector<std::string> Names() const;  // sorted
  // Returns `base`, or base_1, base_2, ...: a name that no function has and that no other call
  // returns.
  std::string UniqueName(std::string_view base);

  // Returns the name of the instance of a stored function with these attribute values. The instance
  // is made at the first Find; Names does not list it and exports leave it out.
  std::string Instance(std::string_view name, const AttrMessages& attrs);
  // Returns the function as stored; instances have no stored form. NOT_FOUND if it is not stored.
  StatusOr<std::string> Stored(std::string_view name) const;
  // Returns what KeepLoop stored for a loop of these nodes; NULL if nothing.
  std::shared_ptr<const LoopCall> FindLoop(const std::vector<const Node*>& nodes) const;
  // Returns the stored call: if two calls come for one loop, the first is kept.
  std::shared_ptr<const LoopCall> KeepLoop(std::vector<const Node*> nodes, LoopCall call);
  // Returns the gradient that the library declares for calls of the function, or for nodes whose
  // attribute _gradient_op_type is `name`; empty if there is none.
  std::optional<StoredGradient> GradientOf(std::string_view name);

  // Functions of a serialised FunctionDefLibrary. Check tells whether Store would accept them.
  // INVALID_ARGUMENT for damaged bytes; ALREADY_EXISTS if another function has one of the names.
  Status Check(std::string_view library) const;
  Status Store(std::string_view library);
  // Returns a serialised FunctionDefLibrary of the functions that were not added by Store.
  StatusOr<std::string> ExportAdded() const;

 private:
  struct Entry {
    std::shared_ptr<const Function> function;  // NULL: not parsed yet; if `bytes` is empty too, the name is reserved
    std::string bytes;                         // the stored form
    std::string origin;                        // for an instance: the stored function; for a hidden function: its own name
    AttrMessages attrs;                        // for an instance: values of the attributes
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
