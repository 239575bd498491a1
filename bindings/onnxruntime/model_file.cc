#include "model_file.h"

#include <set>

namespace thalweg::ort {
namespace {

constexpr int kDeepestType = 64;  // sequences of sequences of ...

[[noreturn]] void Damaged() { Fail(ORT_INVALID_PROTOBUF, "protobuf parsing failed: the bytes are no ONNX model, or a damaged one"); }

struct Field {
  uint64_t number = 0;
  uint32_t wire = 0;
  uint64_t varint = 0;     // of wire type 0
  std::string_view bytes;  // of wire type 2
};

uint64_t TakeVarint(std::string_view* rest) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (rest->empty()) Damaged();
    const auto byte = static_cast<unsigned char>(rest->front());
    rest->remove_prefix(1);
    if (shift < 64) value |= uint64_t{byte & 127u} << shift;
    if (byte < 128) return value;
  }
  Damaged();
}

std::string_view TakeBytes(uint64_t n, std::string_view* rest) {
  if (n > rest->size()) Damaged();
  const std::string_view taken = rest->substr(0, static_cast<size_t>(n));
  rest->remove_prefix(static_cast<size_t>(n));
  return taken;
}

// Calls each(field) for the fields of a message.
template <class Each>
void EachField(std::string_view message, Each&& each) {
  while (!message.empty()) {
    const uint64_t tag = TakeVarint(&message);
    Field f{tag >> 3, static_cast<uint32_t>(tag & 7), 0, {}};
    if (f.number == 0 || f.number >= 1u << 29) Damaged();
    switch (f.wire) {
      case 0: f.varint = TakeVarint(&message); break;
      case 1: f.bytes = TakeBytes(8, &message); break;
      case 2: f.bytes = TakeBytes(TakeVarint(&message), &message); break;
      case 5: f.bytes = TakeBytes(4, &message); break;
      default: Damaged();
    }
    each(f);
  }
}

bool IsBytes(const Field& f, uint64_t number) { return f.wire == 2 && f.number == number; }
bool IsNumber(const Field& f, uint64_t number) { return f.wire == 0 && f.number == number; }

ONNXTensorElementDataType ElementType(uint64_t number) {
  // The values of TensorProto.DataType from 23 on have other numbers in ONNX Runtime's API.
  switch (number) {
    case 23: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1;
    case 24: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0;
    case 25: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2;
    case 26: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2;
    default: return number < 23 ? static_cast<ONNXTensorElementDataType>(number) : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  }
}

// TensorShapeProto.Dimension: dim_value (1), dim_param (2), denotation (3).
void ReadDim(std::string_view message, Port* port) {
  int64_t size = -1;
  std::string symbol, denotation;
  EachField(message, [&](const Field& f) {
    if (IsNumber(f, 1)) size = static_cast<int64_t>(f.varint) < 0 ? -1 : static_cast<int64_t>(f.varint);
    if (IsBytes(f, 2)) symbol = f.bytes;
    if (IsBytes(f, 3)) denotation = f.bytes;
  });
  port->type.tensor.dims.push_back(size);
  port->type.tensor.symbols.push_back(size >= 0 ? "" : symbol);
  port->denotations.push_back(denotation);
}

// TypeProto.Tensor: elem_type (1), shape (2).
void ReadTensorType(std::string_view message, Port* port) {
  port->type.kind = ONNX_TYPE_TENSOR;
  EachField(message, [&](const Field& f) {
    if (IsNumber(f, 1)) port->type.tensor.type = ElementType(f.varint);
    if (!IsBytes(f, 2)) return;
    port->type.tensor.has_shape = true;
    EachField(f.bytes, [&](const Field& dim) {
      if (IsBytes(dim, 1)) ReadDim(dim.bytes, port);
    });
  });
}

void ReadType(std::string_view message, int depth, Port* port);

std::shared_ptr<const OrtTypeInfo> InnerType(std::string_view message, int depth) {
  if (depth > kDeepestType) Fail(ORT_INVALID_GRAPH, "a type has more than ", std::to_string(kDeepestType), " types within each other");
  Port inner;
  ReadType(message, depth, &inner);
  return std::make_shared<const OrtTypeInfo>(std::move(inner.type));
}

// TypeProto: tensor (1), sequence (4), map (5), denotation (6), sparse tensor (8), optional (9).
void ReadType(std::string_view message, int depth, Port* port) {
  EachField(message, [&](const Field& f) {
    if (f.wire != 2) return;
    OrtTypeInfo& type = port->type;
    switch (f.number) {
      case 1: ReadTensorType(f.bytes, port); break;
      case 4:
        type.kind = ONNX_TYPE_SEQUENCE;
        EachField(f.bytes, [&](const Field& g) {
          if (IsBytes(g, 1)) type.sequence.element = InnerType(g.bytes, depth + 1);
        });
        break;
      case 5:
        type.kind = ONNX_TYPE_MAP;
        EachField(f.bytes, [&](const Field& g) {
          if (IsNumber(g, 1)) type.map.key = ElementType(g.varint);
          if (IsBytes(g, 2)) type.map.value = InnerType(g.bytes, depth + 1);
        });
        break;
      case 6: type.denotation = f.bytes; break;
      case 8: type.kind = ONNX_TYPE_SPARSETENSOR; break;
      case 9:
        type.kind = ONNX_TYPE_OPTIONAL;
        EachField(f.bytes, [&](const Field& g) {
          if (IsBytes(g, 1)) type.optional.contained = InnerType(g.bytes, depth + 1);
        });
        break;
      default: break;
    }
  });
}

// ValueInfoProto: name (1), type (2).
Port ReadPort(std::string_view message) {
  Port port;
  EachField(message, [&](const Field& f) {
    if (IsBytes(f, 1)) port.name = f.bytes;
    if (IsBytes(f, 2)) ReadType(f.bytes, 0, &port);
  });
  return port;
}

// The name of a TensorProto (8), or of the values (1) of a SparseTensorProto.
std::string TensorName(std::string_view message, bool sparse) {
  std::string name;
  EachField(message, [&](const Field& f) {
    if (sparse && IsBytes(f, 1)) name = TensorName(f.bytes, false);
    if (!sparse && IsBytes(f, 8)) name = f.bytes;
  });
  return name;
}

struct GraphParts {
  std::vector<Port> inputs;
  std::set<std::string> given;  // names of initializers
};

// GraphProto: name (2), initializer (5), doc_string (10), input (11), output (12), sparse_initializer (15).
void ReadGraph(std::string_view message, ModelFile* file, GraphParts* parts) {
  EachField(message, [&](const Field& f) {
    if (f.wire != 2) return;
    switch (f.number) {
      case 2: file->metadata.graph_name = f.bytes; break;
      case 5: parts->given.insert(TensorName(f.bytes, false)); break;
      case 10: file->metadata.graph_description = f.bytes; break;
      case 11: parts->inputs.push_back(ReadPort(f.bytes)); break;
      case 12: file->outputs.push_back(ReadPort(f.bytes)); break;
      case 15: parts->given.insert(TensorName(f.bytes, true)); break;
      default: break;
    }
  });
}

void ReadEntry(std::string_view message, std::map<std::string, std::string>* entries) {
  std::string key, value;
  EachField(message, [&](const Field& f) {
    if (IsBytes(f, 1)) key = f.bytes;
    if (IsBytes(f, 2)) value = f.bytes;
  });
  (*entries)[key] = value;
}

}  // namespace

// ModelProto: producer_name (2), domain (4), model_version (5), doc_string (6), graph (7), metadata_props (14).
ModelFile ReadModel(std::string_view bytes) {
  ModelFile file;
  GraphParts parts;
  bool has_graph = false;
  OrtModelMetadata& m = file.metadata;
  EachField(bytes, [&](const Field& f) {
    if (IsBytes(f, 2)) m.producer = f.bytes;
    if (IsBytes(f, 4)) m.domain = f.bytes;
    if (IsNumber(f, 5)) m.version = static_cast<int64_t>(f.varint);
    if (IsBytes(f, 6)) m.description = f.bytes;
    if (IsBytes(f, 14)) ReadEntry(f.bytes, &m.custom);
    if (!IsBytes(f, 7)) return;
    has_graph = true;
    ReadGraph(f.bytes, &file, &parts);
  });
  if (!has_graph) Fail(ORT_INVALID_ARGUMENT, "no graph was found in the protobuf; the file is no ONNX model");
  for (Port& port : parts.inputs) (parts.given.count(port.name) ? file.initialized : file.inputs).push_back(std::move(port));
  return file;
}

void FixSizes(const std::vector<FixedSize>& fixed, ModelFile* file) {
  const auto fix = [](const FixedSize& f, Port* port, bool denotations) {
    OrtTensorTypeAndShapeInfo& t = port->type.tensor;
    for (size_t i = 0; i < t.dims.size(); ++i) {
      if (t.dims[i] >= 0) continue;
      const bool named = f.denotation ? denotations && port->denotations[i] == f.name : t.symbols[i] == f.name;
      if (!named) continue;
      t.dims[i] = f.size;
      t.symbols[i].clear();
    }
  };
  for (const FixedSize& f : fixed) {
    for (Port& port : file->inputs) fix(f, &port, true);
    for (Port& port : file->outputs) fix(f, &port, false);
  }
}

}  // namespace thalweg::ort
