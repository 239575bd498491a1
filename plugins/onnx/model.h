// A model file while it is imported: its messages, functions, the memory that holds its constants, and the errors found so far.
// Threads: one thread at a time.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "builder.h"
#include "plugins/onnx/onnx.pb.h"

namespace thalweg::onnx {

// Memory that `keep` holds.
struct Bytes {
  const char* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<const void> keep;
};

// Opens a file beside the model, or for "" the model's own file. location: relative, without "..". Throws Error.
using OpenExternal = std::function<Bytes(const std::string& location)>;

struct Model {
  std::shared_ptr<const proto::ModelProto> file;
  OpenExternal external;                                                                 // empty: the model has no folder
  std::map<std::pair<std::string, std::string>, const proto::FunctionProto*> functions;  // by domain and name
  std::vector<std::string> errors;  // of nodes; the import goes on to find more of them
  uint32_t code = 0;                // of the first error
  int depth = 0;                    // of bodies and function calls around the current node
  int64_t nodes = 0;                // that were translated, each time that a function is called or a body tried
};

// An input or output of the main graph.
struct Port {
  std::string name;
  Value value;
  Edge edge = 0;                     // of a tensor
  std::vector<std::string> symbols;  // per axis; "" for a size that is known or has no name
};

// An imported graph: its inputs without default values, and its outputs.
struct Ports {
  std::vector<Port> inputs, outputs;
};

// Parses the bytes of a file. share_weights: large constants are left where they are; the OpenExternal of Import then returns these bytes
// for "". Throws Error (INVALID_ARGUMENT) if they are no ONNX model.
std::shared_ptr<const proto::ModelProto> ParseModel(std::string_view bytes, bool share_weights = false);
// Translates the main graph into `sink`. Throws one Error that lists all unknown ops, or else all nodes that failed.
Ports Import(std::shared_ptr<const proto::ModelProto> file, OpenExternal external, Sink& sink);

// The tensor of a message. The elements of raw_data are shared with `keep`, which owns the message. Throws Error.
Tensor TensorOf(const proto::TensorProto& t, const std::shared_ptr<const void>& keep, const OpenExternal& external);
Tensor TensorOf(const proto::SparseTensorProto& t, const std::shared_ptr<const void>& keep, const OpenExternal& external);
// Our element type for ONNX's; throws Error for types that we do not have.
uint32_t DtypeOf(int32_t onnx_type);

}  // namespace thalweg::onnx
