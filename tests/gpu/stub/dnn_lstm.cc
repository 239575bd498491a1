// LSTM layers by cudnnRNNForward, without a GPU: one layer, one direction, inference only. The
// manual leaves the layout of the parameters to the library; here it has gaps, and biases come
// first. The option lstm=0 disables them.
#include <cmath>
#include <cstring>
#include <memory>

#include "dnn_calls.h"
#include "dnn_graph.h"
#include "library.h"

namespace {

struct Layer {
  cudnnDataType_t type{};
  int inputs = 0, units = 0;
  cudnnMathType_t math{};
  DnnStubTensor element() const {
    DnnStubTensor t;
    t.type = type;
    return t;
  }
  size_t bytes() const { return element().element(); }
  static constexpr size_t kGap = 64;
  size_t BiasAt(int gate) const { return size_t(gate) * (size_t(units) * bytes() / kGap + 1) * kGap; }
  size_t MatrixAt(int gate) const {
    size_t at = BiasAt(4);
    for (int k = 0; k < gate; ++k) at += (size_t(units) * size_t(Columns(k)) * bytes() / kGap + 2) * kGap;
    return at;
  }
  int Columns(int gate) const { return gate < 4 ? inputs : units; }
};
struct Data {
  cudnnDataType_t type{};
  int steps = 0, batch = 0, size = 0;
};
Layer& Of(cudnnRNNDescriptor_t d) { return *reinterpret_cast<Layer*>(d); }
Data& Of(cudnnRNNDataDescriptor_t d) { return *reinterpret_cast<Data*>(d); }

constexpr size_t kWorkspace = 4096;
double Sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

// Computes the manual's equations in double; rounds values that are written to memory.
void Forward(const Layer& l, const Data& of, const char* parameters, const void* x, const void* h0, const void* c0, void* y) {
  const DnnStubTensor t = l.element();
  const int64_t units = l.units, inputs = l.inputs;
  std::vector<double> h(size_t(of.batch * units)), c(h.size());
  for (size_t k = 0; k < h.size(); ++k) h[k] = t.Get(h0, int64_t(k)), c[k] = t.Get(c0, int64_t(k));
  const auto gate = [&](int which, int64_t step, int64_t row, int64_t unit, const std::vector<double>& before) {
    double v = t.Get(parameters + l.BiasAt(which), unit);
    for (int64_t k = 0; k < inputs; ++k)
      v += t.Get(parameters + l.MatrixAt(which), unit * inputs + k) * t.Get(x, (step * of.batch + row) * inputs + k);
    for (int64_t k = 0; k < units; ++k) v += t.Get(parameters + l.MatrixAt(4 + which), unit * units + k) * before[size_t(row * units + k)];
    return v;
  };
  for (int64_t step = 0; step < of.steps; ++step) {
    const std::vector<double> before = h;
    for (int64_t row = 0; row < of.batch; ++row)
      for (int64_t unit = 0; unit < units; ++unit) {
        double &cell = c[size_t(row * units + unit)], &state = h[size_t(row * units + unit)];
        cell = Sigmoid(gate(1, step, row, unit, before)) * cell +
               Sigmoid(gate(0, step, row, unit, before)) * std::tanh(gate(2, step, row, unit, before));
        state = Sigmoid(gate(3, step, row, unit, before)) * std::tanh(cell);
        t.Put(y, (step * of.batch + row) * units + unit, state);
      }
  }
}

}  // namespace

EXPORT cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int n, const int dims[],
                                                const int steps[]) {
  ShapeOf(d) = {type, {dims, dims + n}, {steps, steps + n}};
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t d, int room, cudnnDataType_t* type, int* n, int dims[],
                                                int steps[]) {
  const DnnStubShape& s = ShapeOf(d);
  *type = s.type;
  *n = int(s.dims.size());
  for (int k = 0; k < std::min(room, *n); ++k) dims[k] = s.dims[size_t(k)], steps[k] = s.steps[size_t(k)];
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* made) {
  *made = reinterpret_cast<cudnnDropoutDescriptor_t>(new float(1));
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t d) {
  delete reinterpret_cast<float*>(d);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t d, cudnnHandle_t, float dropout, void*, size_t,
                                               unsigned long long) {
  *reinterpret_cast<float*>(d) = dropout;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* made) {
  *made = reinterpret_cast<cudnnRNNDescriptor_t>(new Layer);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t d) {
  EnterLibrary("the end of a layer");
  delete &Of(d);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t d, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t mode,
                                              cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                                              cudnnDataType_t type, cudnnDataType_t computed, cudnnMathType_t math, int32_t inputs,
                                              int32_t units, int32_t projected, int32_t layers, cudnnDropoutDescriptor_t dropout,
                                              uint32_t flags) {
  if (EnterLibrary("a layer") || !LibraryOption("lstm", 1)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (algorithm != CUDNN_RNN_ALGO_STANDARD || mode != CUDNN_LSTM || bias != CUDNN_RNN_SINGLE_INP_BIAS ||
      direction != CUDNN_UNIDIRECTIONAL || input != CUDNN_LINEAR_INPUT || projected != units || layers != 1 ||
      flags != CUDNN_RNN_PADDED_IO_ENABLED || !dropout || *reinterpret_cast<float*>(dropout) != 0 ||
      computed != (type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT))
    return CUDNN_STATUS_BAD_PARAM;
  Of(d) = {type, inputs, units, math};
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* made) {
  *made = reinterpret_cast<cudnnRNNDataDescriptor_t>(new Data);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t d) {
  delete &Of(d);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t d, cudnnDataType_t type, cudnnRNNDataLayout_t layout, int steps,
                                               int batch, int size, const int lengths[], void*) {
  if (layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED) return CUDNN_STATUS_NOT_SUPPORTED;
  for (int k = 0; k < batch; ++k)
    if (lengths[k] != steps) return CUDNN_STATUS_NOT_SUPPORTED;
  Of(d) = {type, steps, batch, size};
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t d, size_t* bytes) {
  *bytes = Of(d).MatrixAt(8);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t,
                                               size_t* workspace, size_t* reserved) {
  *workspace = kWorkspace;
  *reserved = mode == CUDNN_FWD_MODE_TRAINING ? 4096 : 0;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t, cudnnRNNDescriptor_t d, int32_t layer, size_t bytes, const void* base,
                                             int32_t gate, cudnnTensorDescriptor_t matrix, void** matrix_at, cudnnTensorDescriptor_t bias,
                                             void** bias_at) {
  const Layer& l = Of(d);
  if (layer != 0 || gate < 0 || gate > 7 || bytes != l.MatrixAt(8)) return CUDNN_STATUS_BAD_PARAM;
  char* from = static_cast<char*>(const_cast<void*>(base));
  *matrix_at = from + l.MatrixAt(gate);
  *bias_at = gate < 4 ? from + l.BiasAt(gate) : nullptr;
  const int columns = l.Columns(gate);
  ShapeOf(matrix) = {l.type, {1, l.units, columns}, {l.units * columns, columns, 1}};
  ShapeOf(bias) = {l.type, {1, l.units, 1}, {l.units, 1, 1}};
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t d, cudnnForwardMode_t mode, const int32_t*,
                                     cudnnRNNDataDescriptor_t x_data, const void* x, cudnnRNNDataDescriptor_t y_data, void* y,
                                     cudnnTensorDescriptor_t h_shape, const void* h, void* last_h, cudnnTensorDescriptor_t c_shape,
                                     const void* c, void* last_c, size_t parameter_bytes, const void* parameters, size_t workspace_bytes,
                                     void* workspace, size_t, void*) {
  const Layer l = Of(d);
  const Data in = Of(x_data), out = Of(y_data);
  const std::vector<int> state = {1, in.batch, l.units};
  if (mode != CUDNN_FWD_MODE_INFERENCE || last_h || last_c || in.size != l.inputs || out.size != l.units || in.batch != out.batch ||
      in.steps != out.steps || in.type != l.type || out.type != l.type || ShapeOf(h_shape).dims != state ||
      ShapeOf(c_shape).dims != state || parameter_bytes != l.MatrixAt(8) || workspace_bytes < kWorkspace)
    return CUDNN_STATUS_BAD_PARAM;
  EnterLibrary(l.math == CUDNN_FMA_MATH ? "a layer without tensor cores" : "a layer with tensor cores");
  const size_t of_state = size_t(in.batch * l.units) * l.bytes(), of_x = size_t(in.steps * in.batch * l.inputs) * l.bytes();
  std::vector<LibraryTouch> touches = {
      {x, of_x, false}, {h, of_state, false}, {c, of_state, false}, {y, size_t(in.steps) * of_state, true}, {workspace, kWorkspace, true}};
  for (int gate = 0; gate < 8; ++gate) {
    const char* from = static_cast<const char*>(parameters);
    touches.push_back({from + l.MatrixAt(gate), size_t(l.units * l.Columns(gate)) * l.bytes(), false});
    if (gate < 4) touches.push_back({from + l.BiasAt(gate), size_t(l.units) * l.bytes(), false});
  }
  const auto run = [=] { Forward(l, in, static_cast<const char*>(parameters), x, h, c, y); };
  const auto stream = reinterpret_cast<CUstream>(reinterpret_cast<DnnStubHandle*>(handle)->stream);
  return EnqueueOfLibrary(stream, "cudnnRNNForward", touches, run) == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
