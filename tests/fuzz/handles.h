// Handles of the C API that free themselves.
#pragma once
#include <memory>

#include "thalweg/thalweg.h"

namespace thalweg::fuzz {

template <class T, void (*kDestroy)(T*)>
struct Destroyer {
  void operator()(T* p) const { kDestroy(p); }
};
using Runtime = std::unique_ptr<tw_runtime, Destroyer<tw_runtime, tw_runtime_release>>;
using Graph = std::unique_ptr<tw_graph, Destroyer<tw_graph, tw_graph_destroy>>;
using Session = std::unique_ptr<tw_session, Destroyer<tw_session, tw_session_destroy>>;
using Tensor = std::unique_ptr<tw_tensor, Destroyer<tw_tensor, tw_tensor_release>>;
using Buffer = std::unique_ptr<tw_buffer, Destroyer<tw_buffer, tw_buffer_release>>;

}  // namespace thalweg::fuzz
