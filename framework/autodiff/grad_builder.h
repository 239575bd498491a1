// GradBuilder: the interface through which an op's gradient builder adds nodes: it gives access to
// the node's inputs, outputs and arriving gradients, and takes the gradients of the inputs.
// Threads: one at a time per graph.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "framework/autodiff/differentiator.h"
#include "framework/base/status.h"
#include "framework/graph/builder.h"
#include "framework/graph/graph.h"

namespace thalweg {

class GradBuilder final : public tw_builder {
 public:
  GradBuilder(Differentiator* d, const Node* n, std::string scope) : d_(d), node_(n), scope_(std::move(scope)) {}
  tw_edge Add(const tw_new_node& n) override;
  tw_edge Output(tw_edge node, uint32_t i) override;
  tw_edge Constant(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes) override;
  Status Describe(tw_edge e, uint32_t* out_dtype, tw_shape* out_shape) override;
  tw_edge Input(uint32_t i) override;
  tw_edge Result(uint32_t o) override;
  tw_edge ShapeOf(uint32_t i) override;
  tw_edge Dy(uint32_t o) override;
  uint32_t HasDy(uint32_t o) override;
  tw_edge DySparse(uint32_t o, tw_edge* out_rows) override;
  void Dx(uint32_t i, tw_edge values) override;
  void DxSparse(uint32_t i, tw_edge rows, tw_edge values) override;

 private:
  // tw_edge: node id + 1 in the upper bits, port in the lower 16.
  static tw_edge ToC(Edge e) { return (uint64_t(e.node->id()) + 1) << 16 | uint64_t(e.port); }
  bool FromC(tw_edge c, Edge* e);
  tw_edge Answer(StatusOr<Edge> e) {
    if (e.ok()) return ToC(*e);
    Fail(e.status());
    return 0;
  }

  Differentiator* d_;
  const Node* node_;
  std::string scope_;
};

}  // namespace thalweg
