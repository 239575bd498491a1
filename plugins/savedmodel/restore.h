// Variables and tables of a SavedModel: which of the graph's handles the restore operation fills
// from which tensors of the checkpoint. Threads: one thread at a time.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "framework/proto/graph.pb.h"
#include "framework/proto/saved_model.pb.h"
#include "needed.h"
#include "sink.h"

namespace thalweg::savedmodel {

// One node of the restore operation: op(target, tensors of the checkpoint ...).
struct Filled {
  struct Part {
    std::string key;    // in the checkpoint
    std::string slice;  // "" for the whole tensor; else "10 5 0,5:-", as RestoreV2 takes it
  };
  std::string op;      // AssignVariableOp, LookupTableImportV2, Assign
  std::string target;  // node of the main graph whose handle or reference is filled
  std::vector<Part> parts;
};

// Follows the restore operation of the graph. Returns false if it contains anything but nodes that
// fill a handle with tensors of a checkpoint; then it has to be run as it is.
bool TraceRestore(const proto::GraphDef& graph, const Needed& needed, const std::string& restore_op, std::vector<Filled>* all);

// Reads the tensors of those targets that are needed, and adds a step that fills them.
void Restore(const std::vector<Filled>& all, const Needed& needed, const std::string& prefix, Sink* sink);

}  // namespace thalweg::savedmodel
