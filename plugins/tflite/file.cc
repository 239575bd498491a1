#include "file.h"

#include <algorithm>

#include "../common/utf8.h"

namespace thalweg::tflite {
namespace {

constexpr const char* kWhat = "the TensorFlow Lite file";
constexpr size_t kMostAxes = 64;
constexpr size_t kMostName = 200;        // bytes
constexpr size_t kMostValues = 1 << 16;  // of an operator, a subgraph or a signature

// Fields of tables, by their numbers in the format's schema, version 3.
enum ModelField { kVersion, kCodes, kSubgraphs, kDescription, kBuffers, kMetadataBuffer, kMetadata, kSignatures };
enum CodeField { kOldBuiltin, kCustom, kCodeVersion, kBuiltin };
enum SubgraphField { kTensors, kInputs, kOutputs, kOperators, kSubgraphName };
enum TensorField { kShape, kType, kBuffer, kTensorName, kQuantization, kVariable, kSparsity, kSignatureShape, kHasRank };
enum QuantizationField { kMin, kMax, kScale, kZero, kDetailsType, kDetails, kAxis };
enum OperatorField {
  kCode,
  kOperatorInputs,
  kOperatorOutputs,
  kOptionsType,
  kOptions,
  kCustomOptions,
  kSecondOptionsType = 11,
  kSecondOptions
};
enum BufferField { kData, kOffset, kSize };
enum MetadataField { kMetadataName, kMetadataBytes };
enum SignatureField { kSignatureInputs, kSignatureOutputs, kKey, kTag, kSignatureSubgraph };
enum TensorMapField { kMapName, kMapTensor };

struct NamedType {
  const char* name;
  uint32_t dtype;
};
constexpr NamedType kTypes[] = {
    {"FLOAT32", TW_FLOAT},       {"FLOAT16", TW_HALF},      {"INT32", TW_INT32},      {"UINT8", TW_UINT8},
    {"INT64", TW_INT64},         {"STRING", TW_STRING},     {"BOOL", TW_BOOL},        {"INT16", TW_INT16},
    {"COMPLEX64", TW_COMPLEX64}, {"INT8", TW_INT8},         {"FLOAT64", TW_DOUBLE},   {"COMPLEX128", TW_COMPLEX128},
    {"UINT64", TW_UINT64},       {"RESOURCE", TW_RESOURCE}, {"VARIANT", TW_VARIANT},  {"UINT32", TW_UINT32},
    {"UINT16", TW_UINT16},       {"INT4", TW_INT4},         {"BFLOAT16", TW_BFLOAT16}};

Dims ShapeOf(const FlatTable& t) {
  Dims dims = t.numbers<int32_t>(kShape);
  const Dims open = t.numbers<int32_t>(kSignatureShape);
  if (open.size() == dims.size()) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (open[i] < 0) dims[i] = -1;
    }
  }
  if (dims.size() > kMostAxes) t.Fail("a tensor has " + std::to_string(dims.size()) + " axes; at most 64 are accepted");
  for (int64_t& d : dims) d = std::max<int64_t>(d, -1);
  return dims;
}

Quantization QuantizationOf(const FlatTable& t) {
  Quantization q;
  if (!t) return q;
  q.scales = t.reals(kScale);
  q.zeros = t.numbers<int64_t>(kZero);
  q.axis = t.number<int32_t>(kAxis, 0);
  if (q.zeros.size() < q.scales.size()) t.spend((q.scales.size() - q.zeros.size()) * sizeof(int64_t));
  if (q.zeros.empty()) q.zeros.assign(q.scales.size(), 0);
  if (q.zeros.size() != q.scales.size() && !(q.zeros.size() == 1 && !q.scales.empty())) {
    t.Fail("a quantised tensor has " + std::to_string(q.scales.size()) + " scales and " + std::to_string(q.zeros.size()) + " zero points");
  }
  q.zeros.resize(q.scales.size(), q.zeros.empty() ? 0 : q.zeros[0]);
  return q;
}

TensorInfo ReadTensor(const FlatTable& t, size_t buffers) {
  TensorInfo info;
  info.name = t.text(kTensorName);
  info.type = t.number<int8_t>(kType, 0);
  info.dtype = DtypeOf(info.type);
  info.dims = ShapeOf(t);
  info.variable = t.flag(kVariable);
  info.buffer = t.number<uint32_t>(kBuffer, 0);
  if (info.buffer >= buffers) t.Fail("a tensor has buffer " + std::to_string(info.buffer) + "; there are " + std::to_string(buffers));
  info.quantization = QuantizationOf(t.table(kQuantization));
  info.sparsity = t.table(kSparsity);
  return info;
}

// Each index names a tensor of the subgraph.
void CheckTensors(const FlatTable& place, const std::vector<int64_t>& indices, size_t tensors, bool may_be_absent) {
  if (indices.size() > kMostValues) {
    place.Fail("a list names " + std::to_string(indices.size()) + " tensors; at most " + std::to_string(kMostValues) + " are accepted");
  }
  for (const int64_t i : indices) {
    if (may_be_absent && i == -1) continue;
    if (i < 0 || static_cast<uint64_t>(i) >= tensors) {
      place.Fail("there is no tensor " + std::to_string(i) + "; the subgraph has " + std::to_string(tensors));
    }
  }
}

Operator ReadOperator(const FlatTable& t, size_t codes, size_t tensors) {
  Operator o;
  o.code = t.number<uint32_t>(kCode, 0);
  if (o.code >= codes) t.Fail("an operator has code " + std::to_string(o.code) + "; there are " + std::to_string(codes));
  o.inputs = t.numbers<int32_t>(kOperatorInputs);
  o.outputs = t.numbers<int32_t>(kOperatorOutputs);
  CheckTensors(t, o.inputs, tensors, true);
  CheckTensors(t, o.outputs, tensors, false);
  o.options = t.table(kOptions);
  if (!o.options) o.options = t.table(kSecondOptions);
  return o;
}

Subgraph ReadSubgraph(const FlatTable& t, size_t codes, size_t buffers) {
  Subgraph s;
  s.name = t.text(kSubgraphName);
  const std::vector<FlatTable> tensors = t.tables(kTensors, sizeof(FlatTable) + sizeof(TensorInfo));
  s.tensors.reserve(tensors.size());
  for (const FlatTable& one : tensors) s.tensors.push_back(ReadTensor(one, buffers));
  s.inputs = t.numbers<int32_t>(kInputs);
  s.outputs = t.numbers<int32_t>(kOutputs);
  CheckTensors(t, s.inputs, s.tensors.size(), false);
  CheckTensors(t, s.outputs, s.tensors.size(), false);
  const std::vector<FlatTable> operators = t.tables(kOperators, sizeof(FlatTable) + sizeof(Operator));
  s.operators.reserve(operators.size());
  for (const FlatTable& one : operators) {
    s.operators.push_back(ReadOperator(one, codes, s.tensors.size()));
  }
  return s;
}

// The bytes of a buffer: inside the flatbuffer or, in files beyond 2 GB, behind it.
std::string_view BytesOf(const FlatTable& t, std::string_view file) {
  const auto offset = t.number<uint64_t>(kOffset, 0), size = t.number<uint64_t>(kSize, 0);
  if (offset <= 1) return t.text(kData);
  if (offset > file.size() || size > file.size() - offset) t.Fail("a buffer of " + std::to_string(size) + " bytes lies behind the end");
  return file.substr(offset, size);
}

std::vector<NamedTensor> ReadMap(const FlatTable& t, unsigned field, const Subgraph& of) {
  std::vector<NamedTensor> all;
  const std::vector<FlatTable> tables = t.tables(field, sizeof(FlatTable) + sizeof(NamedTensor));
  if (tables.size() > kMostValues) t.Fail("a signature has " + std::to_string(tables.size()) + " inputs or outputs");
  for (const FlatTable& one : tables) {
    const int64_t tensor = one.number<uint32_t>(kMapTensor, 0);
    CheckTensors(one, {tensor}, of.tensors.size(), false);
    all.push_back({one.text(kMapName), tensor});
  }
  return all;
}

Signature ReadSignature(const FlatTable& t, const std::vector<Subgraph>& subgraphs) {
  Signature s;
  s.name = t.text(kKey);
  s.subgraph = t.number<uint32_t>(kSignatureSubgraph, 0);
  if (s.subgraph >= subgraphs.size()) t.Fail("a signature has subgraph " + std::to_string(s.subgraph) + ", which does not exist");
  s.inputs = ReadMap(t, kSignatureInputs, subgraphs[s.subgraph]);
  s.outputs = ReadMap(t, kSignatureOutputs, subgraphs[s.subgraph]);
  return s;
}

}  // namespace

uint32_t DtypeOf(int64_t type) { return type >= 0 && type < static_cast<int64_t>(std::size(kTypes)) ? kTypes[type].dtype : 0; }

std::string TypeName(int64_t type) {
  return type >= 0 && type < static_cast<int64_t>(std::size(kTypes)) ? kTypes[type].name : "type " + std::to_string(type);
}

std::string Printable(std::string_view text) {
  std::string clean;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    bool valid = false;
    const uint32_t c = common::NextChar(text, &at, &valid);
    if (at > kMostName) break;
    if (valid && c >= 32 && c != 127) {
      clean += text.substr(begin, at - begin);
    } else {
      clean += '?';
    }
  }
  return clean;
}

uint32_t Recognise(std::string_view head) { return head.size() >= 16 && head.substr(4, 4) == "TFL3" ? 98 : 0; }

File ReadFile(std::string_view bytes, std::shared_ptr<const void> keep) {
  if (!Recognise(bytes)) throw Error{TW_INVALID_ARGUMENT, "the file is no TensorFlow Lite model: its bytes 4 to 7 are not 'TFL3'"};
  File file;
  file.buffer = std::make_unique<const importer::FlatBuffer>(bytes, kWhat, 6 * bytes.size() + (uint64_t{1} << 20));
  file.keep = std::move(keep);
  const FlatTable root(*file.buffer, file.buffer->follow(0));
  const auto version = root.number<uint32_t>(kVersion, 0);
  if (version != 3) {
    throw Error{TW_UNIMPLEMENTED,
                "the file has version " + std::to_string(version) + " of the TensorFlow Lite format; only version 3 is supported"};
  }
  for (const FlatTable& t : root.tables(kCodes, sizeof(FlatTable) + sizeof(OperatorCode))) {
    // Older files have the number in a byte; newer ones write 127 there if it does not fit.
    const int32_t old = t.number<int8_t>(kOldBuiltin, 0), now = t.number<int32_t>(kBuiltin, 0);
    file.codes.push_back({std::max(old, now), t.number<int32_t>(kCodeVersion, 1), t.text(kCustom)});
  }
  for (const FlatTable& t : root.tables(kBuffers, sizeof(FlatTable) + sizeof(std::string_view))) file.buffers.push_back(BytesOf(t, bytes));
  for (const FlatTable& t : root.tables(kSubgraphs, sizeof(FlatTable) + sizeof(Subgraph))) {
    file.subgraphs.push_back(ReadSubgraph(t, file.codes.size(), file.buffers.size()));
  }
  if (file.subgraphs.empty()) root.Fail("it has no subgraph");
  for (const FlatTable& t : root.tables(kSignatures, sizeof(FlatTable) + sizeof(Signature))) {
    file.signatures.push_back(ReadSignature(t, file.subgraphs));
  }
  file.description = root.text(kDescription);
  for (const FlatTable& t : root.tables(kMetadata, sizeof(FlatTable))) {
    const auto buffer = t.number<uint32_t>(kMetadataBytes, 0);
    if (t.text(kMetadataName) != "min_runtime_version" || buffer >= file.buffers.size()) continue;
    file.runtime = file.buffers[buffer].substr(0, kMostName);
    file.runtime = file.runtime.substr(0, std::min(file.runtime.find('\0'), file.runtime.size()));
  }
  return file;
}

}  // namespace thalweg::tflite
