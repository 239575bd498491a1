// Nodes of `XlaCallModule`, which jax2tf writes: each calls a StableHLO module that it holds as an attribute. Threads: those of the load.
#pragma once
#include "framework/proto/graph.pb.h"
#include "sink.h"

namespace thalweg::savedmodel {

inline constexpr const char* kXlaCallModule = "XlaCallModule";

// Imports the module of each such node of the graph and of its functions as a function of the model, and makes the node call that.
// Equal modules become one function. Throws Error naming the node.
void ImportXlaModules(proto::GraphDef* graph, Sink* sink);

}  // namespace thalweg::savedmodel
