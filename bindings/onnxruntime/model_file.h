// ModelFile: the texts for people in an ONNX file, and the names and types of its inputs and outputs. Reading skips weights and nodes, so
// it costs little. Threads: values.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"
#include "types.h"

struct OrtModelMetadata {
  std::string producer, graph_name, graph_description, domain, description;
  int64_t version = 0;
  std::map<std::string, std::string> custom;
};

namespace thalweg::ort {

struct Port {
  std::string name;
  OrtTypeInfo type;
  std::vector<std::string> denotations;  // of the axes
};

struct ModelFile {
  OrtModelMetadata metadata;
  std::vector<Port> inputs, outputs;
  std::vector<Port> initialized;  // inputs that have a value in the file
};

// Reads the bytes of a file. Errors: INVALID_PROTOBUF for bytes that are no message; INVALID_ARGUMENT for a message without a graph.
ModelFile ReadModel(std::string_view bytes);
// Sets the free sizes that the client fixed.
void FixSizes(const std::vector<FixedSize>& fixed, ModelFile* file);

}  // namespace thalweg::ort
