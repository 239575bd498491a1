// A TensorFlow Lite file in memory: subgraphs with tensors and operators, buffers, signatures. Texts point into the file. The contents are
// not trusted. Threads: one thread at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../common/importer/flatbuffer.h"

namespace thalweg::tflite {

using importer::Dims;
using importer::Error;
using importer::FlatTable;
using importer::Tensor;

// real = scale * (stored - zero), one scale for the tensor or one for each index of `axis`. No scale: the tensor is not quantised.
struct Quantization {
  std::vector<double> scales;
  std::vector<int64_t> zeros;
  int64_t axis = 0;
};

struct TensorInfo {
  std::string_view name;
  uint32_t dtype = 0;  // TW_FLOAT, ...; 0 for a type that we do not have
  int64_t type = 0;    // as the file has it
  Dims dims;           // -1: the program says it
  bool ranked = true;
  bool variable = false;  // keeps its value from one operator to the next
  uint64_t buffer = 0;
  Quantization quantization;
  FlatTable sparsity;  // of a constant that is stored without its zeros
};

struct OperatorCode {
  int32_t builtin = 0;
  int32_t version = 1;
  std::string_view custom;  // the name of an operator that is not built in
};

struct Operator {
  size_t code = 0;                       // in codes
  std::vector<int64_t> inputs, outputs;  // tensors; -1 for an input that is absent
  FlatTable options;
};

struct Subgraph {
  std::string_view name;
  std::vector<TensorInfo> tensors;
  std::vector<int64_t> inputs, outputs;
  std::vector<Operator> operators;
};

struct NamedTensor {
  std::string_view name;
  int64_t tensor = 0;
};

struct Signature {
  std::string_view name;
  std::vector<NamedTensor> inputs, outputs;
  size_t subgraph = 0;
};

struct File {
  // What tables point into; it stays where it is.
  std::unique_ptr<const importer::FlatBuffer> buffer;
  std::shared_ptr<const void> keep;  // holds the bytes
  std::vector<OperatorCode> codes;
  std::vector<Subgraph> subgraphs;
  std::vector<std::string_view> buffers;
  std::vector<Signature> signatures;
  std::string_view description;
  std::string_view runtime;  // the least version of the runtime, from the metadata; may be empty
};

// How sure the first bytes are those of a TensorFlow Lite file: 0 to 100.
uint32_t Recognise(std::string_view head);
// Throws Error naming the byte. Constants stay where they are, so `keep` must hold the bytes.
File ReadFile(std::string_view bytes, std::shared_ptr<const void> keep);

// The element type of a number in the file; 0 if we have none. Its name for messages.
uint32_t DtypeOf(int64_t type);
std::string TypeName(int64_t type);
// Names from the file, fit for a message and a signature: at most 200 bytes of UTF-8, no control characters.
std::string Printable(std::string_view text);

}  // namespace thalweg::tflite
