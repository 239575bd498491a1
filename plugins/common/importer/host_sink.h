// Fills the model that the host makes (plugin/importer.h). Threads: those of the load.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "sink.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg::importer {

class HostSink final : public Sink {
 public:
  HostSink(const tw_host* host, tw_model_builder* to, tw_builder* graph) : host_(host), to_(to), graph_(graph) {}
  void Place(const std::string& text) override;
  Edge Emit(const std::string& op, const std::string& name, const std::vector<Edge>& inputs, const Attrs& attrs) override;
  Edge Output(Edge node, uint32_t i) override;
  Edge Constant(const Tensor& value, const std::string& name) override;
  Edge Argument(const std::string& name, uint32_t dtype, const ShapeAttr& shape) override;
  void Describe(Edge edge, uint32_t* dtype, ShapeAttr* shape) override;
  std::unique_ptr<Sink> Body() override;
  std::string Define(const std::string& name, Sink& body, const std::vector<Edge>& args, const std::vector<Edge>& results) override;

 private:
  // Throws an Error without a text if the host has failed: it keeps the failure and reports it itself.
  Edge Made(Edge edge) const;
  const tw_host* host_;
  tw_model_builder* to_;
  tw_builder* graph_;
};

// Throws a failure of the host as Error.
void Check(const tw_host* host, tw_status* status);
// The text of a status, which stays the caller's.
std::string TextOf(const tw_host* host, const tw_status* status);

}  // namespace thalweg::importer
