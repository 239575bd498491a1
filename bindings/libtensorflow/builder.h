// Operations that a client describes, and their addition to the graph. Threads: one builder, one thread.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core.h"
#include "framework/proto/attr_value.pb.h"
#include "graph.h"
#include "tensor.h"

struct TF_OperationDescription {
  TF_Graph* graph;
  std::string type, name, device;
  std::vector<tw_output> inputs;
  std::vector<const tw_operation*> controls;
  std::vector<std::string> colocated;  // "loc:@" and a name
  std::map<std::string, thalweg::proto::AttrValue> attrs;
  std::map<std::string, std::vector<thalweg::tf::TensorRef>> tensors;  // attributes that are tensors; `attrs` has the others
  std::map<std::string, bool> tensor_lists;
  std::optional<thalweg::tf::Error> failure;  // the first one
};

namespace thalweg::tf {

// Adds the operation; throws Error, and the graph is then unchanged.
TF_Operation* Finish(TF_OperationDescription* description);
// The attributes of the call of a function.
struct Call {
  const proto::FunctionDef* function = nullptr;
  std::vector<uint32_t> in_types, out_types;
};
// The types of a function's arguments and results; `attrs` are those of the call.
Call CallOf(const proto::FunctionDef& function, const std::map<std::string, proto::AttrValue>& attrs);

}  // namespace thalweg::tf
