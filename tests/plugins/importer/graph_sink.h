// Fills a graph of the C API, so that tests can import without loading a plugin.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugins/common/importer/sink.h"
#include "thalweg/thalweg.h"

namespace thalweg::importer {

class GraphSink final : public Sink {
 public:
  explicit GraphSink(tw_graph* graph) : graph_(graph) {}  // borrowed
  ~GraphSink() override;
  Edge Emit(const std::string& op, const std::string& name, const std::vector<Edge>& inputs, const Attrs& attrs) override;
  Edge Output(Edge node, uint32_t i) override;
  Edge Constant(const Tensor& value, const std::string& name) override;
  Edge Argument(const std::string& name, uint32_t dtype, const ShapeAttr& shape) override;
  void Describe(Edge edge, uint32_t* dtype, ShapeAttr* shape) override;
  std::unique_ptr<Sink> Body() override;
  std::string Define(const std::string& name, Sink& body, const std::vector<Edge>& args, const std::vector<Edge>& results) override;

 private:
  std::string Free(const std::string& name);
  tw_graph* graph_;
  bool owned_ = false;
  std::map<std::string, int> used_;  // names, with the last number behind them
};

// A tensor of the C API that shares the constant's memory. Throws Error.
tw_tensor* TensorFor(const Tensor& value);
// Throws a failure of the C API as Error.
void Check(tw_status* status);

}  // namespace thalweg::importer
