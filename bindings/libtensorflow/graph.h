// Graphs and operations of clients, over those of Thalweg. A TF_Operation stands for one tw_operation; the graph makes them as
// operations appear and keeps them until its end.
// Threads: any number; the mutex of the graph guards what is marked so.
#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core.h"
#include "framework/proto/graph.pb.h"

struct TF_Operation {
  TF_Graph* graph;
  const tw_operation* op;
  size_t index;
  std::string function;  // of an operation that the client made under the name of a function; then `op` is a call of it
};

struct TF_Graph {
  TF_Graph();
  ~TF_Graph();

  // Adds what was added to the Thalweg graph since the last call, and returns the number of operations.
  size_t Update();
  // NULL for NULL.
  TF_Operation* Find(const tw_operation* op);
  TF_Operation* FindName(const std::string& name);
  TF_Output Outside(tw_output value);
  // The GraphDef of the graph, with the names of functions as ops where the client wrote them.
  thalweg::proto::GraphDef Export();
  // The functions of the graph; NULL if there is none of that name.
  const thalweg::proto::FunctionDef* FindFunction(const std::string& name);
  void Release();

  std::recursive_mutex mu;
  tw_graph* graph = nullptr;
  std::atomic<int> owners{1};  // the client and the sessions of the graph

  // Guarded by mu.
  std::deque<TF_Operation> operations;
  std::unordered_map<const tw_operation*, TF_Operation*> by_handle;
  std::unordered_map<tw_output, std::vector<TF_Input>> consumers;
  std::unordered_map<const tw_operation*, std::vector<TF_Operation*>> control_outputs;
  std::map<std::string, thalweg::proto::FunctionDef> functions;
  std::map<tw_output, std::vector<int64_t>> shapes;  // that the client gave; an entry below -1 stands for an unknown rank

 private:
  size_t linked_ = 0;  // operations whose inputs are in `consumers`
};

namespace thalweg::tf {

// The version of GraphDefs that graphs of clients have; that of TensorFlow 2.21.
inline constexpr int kGraphVersion = 2474;

// The value for a call of Thalweg. Fails for an operation of another graph and an output that does not exist.
tw_output Inside(const TF_Graph& graph, TF_Output output, std::string_view what = "output");
// The NodeDef of an operation.
proto::NodeDef NodeOf(const TF_Operation& operation);
// The inputs and outputs of the op, or of the function that the operation calls under its name.
proto::OpDef SignatureOf(const TF_Operation& operation);
// The number of values that an argument stands for.
int64_t Length(const proto::OpDef::ArgDef& arg, const proto::NodeDef& node);
// Removes a leading "^" and a trailing ":n" of the input of a NodeDef.
std::pair<std::string, int> SplitInput(const std::string& input);
void AddFunction(TF_Graph* graph, const proto::FunctionDef& def);

}  // namespace thalweg::tf
