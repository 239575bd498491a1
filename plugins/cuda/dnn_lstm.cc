// LSTM layers through cudnnRNNForward, because the graph API has no engine for them. The plans of
// the graph API are in dnn.cc.
#include <algorithm>

#include "dnn_descriptors.h"

namespace thalweg::cuda {
namespace {

// Tensor cores are optional for floats; results of 16-bit types are rounded anyway.
cudnnMathType_t MathOf(uint32_t type, Precision precision) {
  if (type != TW_FLOAT || precision == Precision::kTf32) return CUDNN_DEFAULT_MATH;
  return precision == Precision::kFloat ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
}

}  // namespace

struct Dnn::Lstm {
  explicit Lstm(const DnnLibrary& l)
      : dropout(l.cudnnCreateDropoutDescriptor, l.cudnnDestroyDropoutDescriptor),
        layer(l.cudnnCreateRNNDescriptor, l.cudnnDestroyRNNDescriptor),
        x(l.cudnnCreateRNNDataDescriptor, l.cudnnDestroyRNNDataDescriptor),
        y(l.cudnnCreateRNNDataDescriptor, l.cudnnDestroyRNNDataDescriptor),
        state(l.cudnnCreateTensorDescriptor, l.cudnnDestroyTensorDescriptor) {}
  Made<cudnnDropoutDescriptor_t> dropout;
  Made<cudnnRNNDescriptor_t> layer;
  Made<cudnnRNNDataDescriptor_t> x, y;
  Made<cudnnTensorDescriptor_t> state;
  DnnLstmMemory memory{};
};

namespace {

// Returns the offsets of the matrix and the bias of `gate`. Returns false if the library has none
// or if their layout is not dense.
bool FindGate(const DnnLibrary& l, cudnnHandle_t handle, cudnnRNNDescriptor_t layer, size_t bytes, int32_t gate, int64_t rows,
              int64_t columns, uint64_t* matrix, uint64_t* bias) {
  const Made<cudnnTensorDescriptor_t> of_matrix(l.cudnnCreateTensorDescriptor, l.cudnnDestroyTensorDescriptor),
      of_bias(l.cudnnCreateTensorDescriptor, l.cudnnDestroyTensorDescriptor);
  const uintptr_t base = 1 << 20;  // addresses are computed, never dereferenced
  void *matrix_at = nullptr, *bias_at = nullptr;
  cudnnDataType_t type{};
  int axes = 0, dims[3] = {}, steps[3] = {};
  if (!of_matrix.it() || !of_bias.it() ||
      l.cudnnGetRNNWeightParams(handle, layer, 0, bytes, reinterpret_cast<const void*>(base), gate, of_matrix.it(), &matrix_at,
                                of_bias.it(), &bias_at) != CUDNN_STATUS_SUCCESS ||
      l.cudnnGetTensorNdDescriptor(of_matrix.it(), 3, &type, &axes, dims, steps) != CUDNN_STATUS_SUCCESS)
    return false;
  if (!matrix_at || axes != 3 || dims[0] != 1 || dims[1] != rows || dims[2] != columns || steps[1] != columns || steps[2] != 1)
    return false;
  *matrix = reinterpret_cast<uintptr_t>(matrix_at) - base;
  if (!bias) return true;
  *bias = reinterpret_cast<uintptr_t>(bias_at) - base;
  return bias_at != nullptr;
}

}  // namespace

std::unique_ptr<Dnn::Lstm> Dnn::Make(const DnnLstm& of) {
  const DnnLibrary& l = *library_;
  const auto handle = static_cast<cudnnHandle_t>(handle_);
  cudnnDataType_t type{};
  if (!DnnTypeOf(of.type, &type) || std::max({of.steps, of.batch, of.inputs, of.units, of.batch * of.units}) > INT32_MAX) return nullptr;
  const int batch = int(of.batch), units = int(of.units), inputs = int(of.inputs);
  const cudnnDataType_t computed = type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  const std::vector<int> lengths(size_t(of.batch), int(of.steps));
  const auto lay = [&](const Made<cudnnRNNDataDescriptor_t>& data, int size) {
    return l.cudnnSetRNNDataDescriptor(data.it(), type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, int(of.steps), batch, size,
                                       lengths.data(), nullptr) == CUDNN_STATUS_SUCCESS;
  };
  const int dims[] = {1, batch, units}, steps[] = {batch * units, units, 1};
  auto way = std::make_unique<Lstm>(l);
  DnnLstmMemory& m = way->memory;
  size_t parameters = 0, workspace = 0, reserved = 0;
  bool ok = way->dropout.it() && way->layer.it() && way->x.it() && way->y.it() && way->state.it() &&
            l.cudnnSetDropoutDescriptor(way->dropout.it(), handle, 0, nullptr, 0, 0) == CUDNN_STATUS_SUCCESS &&
            l.cudnnSetRNNDescriptor_v8(way->layer.it(), CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_SINGLE_INP_BIAS,
                                       CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type, computed, MathOf(of.type, vendors_.precision),
                                       inputs, units, units, 1, way->dropout.it(), CUDNN_RNN_PADDED_IO_ENABLED) == CUDNN_STATUS_SUCCESS &&
            lay(way->x, inputs) && lay(way->y, units) &&
            l.cudnnSetTensorNdDescriptor(way->state.it(), type, 3, dims, steps) == CUDNN_STATUS_SUCCESS &&
            l.cudnnGetRNNWeightSpaceSize(handle, way->layer.it(), &parameters) == CUDNN_STATUS_SUCCESS &&
            l.cudnnGetRNNTempSpaceSizes(handle, way->layer.it(), CUDNN_FWD_MODE_INFERENCE, way->x.it(), &workspace, &reserved) ==
                CUDNN_STATUS_SUCCESS;
  m.parameters = parameters;
  m.workspace = workspace;
  for (size_t gate = 0; ok && gate < m.matrices.size(); ++gate) {
    const bool of_inputs = gate < m.biases.size();
    ok = FindGate(l, handle, way->layer.it(), parameters, int32_t(gate), of.units, of_inputs ? of.inputs : of.units, &m.matrices[gate],
                  of_inputs ? &m.biases[gate] : nullptr);
  }
  return ok ? std::move(way) : nullptr;
}

std::shared_ptr<const Dnn::Lstm> Dnn::Find(const tw_host* host, const DnnLstm& of) {
  std::lock_guard lock(mutex_);
  if (!Start(host)) return nullptr;
  return lstms_.Find(of, [&] { return Make(of); });
}

const DnnLstmMemory& Dnn::Memory(const Lstm& way) { return way.memory; }

void Dnn::Enqueue(const Lstm& way, CUstream queue, CUdeviceptr x, CUdeviceptr h, CUdeviceptr c, CUdeviceptr parameters, CUdeviceptr y,
                  CUdeviceptr workspace) {
  const DnnLibrary& l = *library_;
  const auto handle = static_cast<cudnnHandle_t>(handle_);
  const auto at = [](CUdeviceptr p) { return reinterpret_cast<void*>(p); };
  std::lock_guard lock(mutex_);
  cudnnStatus_t status = l.cudnnSetStream(handle, reinterpret_cast<cudaStream_t>(queue));
  if (status == CUDNN_STATUS_SUCCESS)  // the data descriptors hold the sequence lengths
    status = l.cudnnRNNForward(handle, way.layer.it(), CUDNN_FWD_MODE_INFERENCE, nullptr, way.x.it(), at(x), way.y.it(), at(y),
                               way.state.it(), at(h), nullptr, way.state.it(), at(c), nullptr, way.memory.parameters, at(parameters),
                               way.memory.workspace, at(workspace), 0, nullptr);
  if (status != CUDNN_STATUS_SUCCESS) Fail(l, "cudnnRNNForward", status);
}

}  // namespace thalweg::cuda
