// Functions that clients make of graphs. Threads: values, no sharing.
#pragma once
#include "core.h"
#include "framework/proto/graph.pb.h"

struct TF_Function {
  thalweg::proto::FunctionDef def;
};
