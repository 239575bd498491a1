// NodeRecord: the record of a node that kernels get. Threads: a value.
#pragma once
#include <vector>

#include "framework/graph/graph.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/step/frame.h"
#include "thalweg/plugin/kernel.h"

namespace thalweg {

class NodeRecord {
 public:
  // All arguments must outlive the record.
  NodeRecord(const NodeRun& run, const Device& device, const std::vector<tw_shape>& shapes) {
    const Node& n = *run.node;
    n.FillC(&attrs_);
    c.size = sizeof c;
    c.host = run.host ? run.host : run.kernel->host;
    c.user = run.kernel->def.user;
    c.name = n.name().data();
    c.name_len = n.name().size();
    c.op = n.op().name.data();
    c.op_len = n.op().name.size();
    c.attrs = attrs_.data();
    c.types = run.types;
    c.shapes = shapes.data();
    c.in_at = n.in_at().data();
    c.n_attrs = attrs_.size();
    c.n_in = uint32_t(n.n_in());
    c.n_out = uint32_t(n.n_out());
    c.device = device.self();
  }
  NodeRecord(const NodeRecord&) = delete;
  tw_node c{};

 private:
  CAttrs attrs_;
};

}  // namespace thalweg
