// The operation builder behind tw_op; scopes read its fields.
#pragma once
#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "thalweg/graph.h"

struct tw_op {
  tw_graph* graph = nullptr;
  thalweg::NodeSpec spec;
  thalweg::Status status;  // the first failure
};
