#include "dnn_descriptors.h"

#include <algorithm>
#include <iterator>

namespace thalweg::cuda {

bool DnnLibrary::Open(const tw_host* host) {
  return library.Open(host, [&](Library& l) {
    bool all = true;
#define THALWEG_DNN_FIND(name)                            \
  name = reinterpret_cast<decltype(name)>(l.Find(#name)); \
  all = all && name;
    THALWEG_DNN_FUNCTIONS(THALWEG_DNN_FIND)
#undef THALWEG_DNN_FIND
    return all;
  });
}
std::shared_ptr<DnnLibrary> MakeDnnLibrary() { return std::make_shared<DnnLibrary>(); }

void Fail(const DnnLibrary& l, const char* what, cudnnStatus_t status) {
  throw tw::Error{TW_INTERNAL, std::string(what) + " failed with " + l.cudnnGetErrorString(status)};
}

bool DnnTypeOf(uint32_t type, cudnnDataType_t* out) {
  switch (type) {
    case TW_FLOAT: *out = CUDNN_DATA_FLOAT; return true;
    case TW_DOUBLE: *out = CUDNN_DATA_DOUBLE; return true;
    case TW_HALF: *out = CUDNN_DATA_HALF; return true;
    case TW_BFLOAT16: *out = CUDNN_DATA_BFLOAT16; return true;
    default: return false;
  }
}

namespace {

constexpr auto kNone = CUDNN_ATTR_POINTWISE_MODE;  // for operations without details

// How the library describes an operation: its object, the attribute for the details, and the
// attributes for its tensors, in the order of DnnOperation.
struct Form {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t details;
  std::array<cudnnBackendAttributeName_t, 8> tensors;
};

// clang-format off
#define PW(name) CUDNN_ATTR_OPERATION_POINTWISE_##name
#define NORM(name) CUDNN_ATTR_OPERATION_NORM_##name
constexpr Form kBinary = {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, PW(PW_DESCRIPTOR), {PW(XDESC), PW(BDESC), PW(YDESC)}};
constexpr Form kUnary = {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, PW(PW_DESCRIPTOR), {PW(XDESC), PW(YDESC)}};
constexpr Form kChoice = {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, PW(PW_DESCRIPTOR),
                          {PW(XDESC), PW(BDESC), PW(TDESC), PW(YDESC)}};
constexpr Form kReduction = {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                             {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC}};
constexpr Form kPool = {CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC,
                        {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC}};
constexpr Form kPoolImages = {CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC,
                              {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC}};
constexpr Form kForms[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}},
    kBinary, kBinary, kBinary, kBinary, kUnary, kUnary, kReduction, kReduction,
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC,
     {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC}},
    kPool, kPool, kPoolImages,
    {CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, kNone,
     {NORM(FWD_XDESC), NORM(FWD_SCALE_DESC), NORM(FWD_BIAS_DESC), NORM(FWD_EPSILON_DESC), NORM(FWD_MEAN_DESC), NORM(FWD_INV_VARIANCE_DESC),
      NORM(FWD_YDESC)}},
    {CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, kNone,
     {NORM(BWD_XDESC), NORM(BWD_MEAN_DESC), NORM(BWD_INV_VARIANCE_DESC), NORM(BWD_DYDESC), NORM(BWD_SCALE_DESC), NORM(BWD_DSCALE_DESC),
      NORM(BWD_DBIAS_DESC), NORM(BWD_DXDESC)}},
    kUnary, kUnary, kUnary, kBinary, kChoice,
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, kNone, {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC}},
};
#undef PW
#undef NORM
// clang-format on
static_assert(std::size(kForms) == DnnOperation::kTurn + 1);

cudnnPointwiseMode_t ModeOf(DnnOperation::What what) {
  switch (what) {
    case DnnOperation::kAdd: return CUDNN_POINTWISE_ADD;
    case DnnOperation::kSubtract: return CUDNN_POINTWISE_SUB;
    case DnnOperation::kMultiply: return CUDNN_POINTWISE_MUL;
    case DnnOperation::kDivide: return CUDNN_POINTWISE_DIV;
    case DnnOperation::kExponential: return CUDNN_POINTWISE_EXP;
    case DnnOperation::kLogarithm: return CUDNN_POINTWISE_LOG;
    case DnnOperation::kRowIndex:
    case DnnOperation::kColumnIndex: return CUDNN_POINTWISE_GEN_INDEX;
    case DnnOperation::kNotLess: return CUDNN_POINTWISE_CMP_GE;
    case DnnOperation::kSelect: return CUDNN_POINTWISE_BINARY_SELECT;
    default: return CUDNN_POINTWISE_RELU_FWD;
  }
}

void SetConvolution(Descriptor* d, const DnnOperation::Window& w, cudnnDataType_t computed) {
  d->Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, computed)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2})
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, w.stride)
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, w.dilation)
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, w.before)
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, w.after);
}

// Sizes are fractions here, because the same object also resizes images.
void SetPool(Descriptor* d, const DnnOperation::Window& w, cudnnDataType_t computed, bool mean) {
  const auto fractions = [&](cudnnBackendAttributeName_t name, const std::array<int64_t, 2>& values) {
    const cudnnFraction_t two[] = {{values[0], 1}, {values[1], 1}};
    d->Set(name, CUDNN_TYPE_FRACTION, 2, two);
  };
  d->Set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, mean ? CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING : CUDNN_RESAMPLE_MAXPOOL)
      .Set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, computed)
      .Set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN)
      .Set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, mean ? CUDNN_ZERO_PAD : CUDNN_NEG_INF_PAD)
      .Set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2});
  fractions(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, w.size);
  fractions(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, w.before);
  fractions(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, w.after);
  fractions(CUDNN_ATTR_RESAMPLE_STRIDES, w.stride);
}

}  // namespace

DnnObjects::DnnObjects(const DnnLibrary& l, cudnnHandle_t handle, const DnnGraph& graph)
    : l_(l), graph_(l, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  for (size_t k = 0; k < graph.tensors.size(); ++k) AddTensor(graph.tensors[k], int64_t(k) + 1);
  for (const DnnOperation& o : graph.operations) AddOperation(o, graph.tensors[0].type);
  std::vector<cudnnBackendDescriptor_t> all;
  bool ok = true;
  for (const Descriptor& o : operations_) {
    all.push_back(o.it());
    ok = ok && o.ok();
  }
  if (!ok) return;  // the graph is never finalised
  graph_.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
      .Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, int64_t(all.size()), all.data())
      .Finalize();
}

void DnnObjects::AddTensor(const DnnTensor& t, int64_t number) {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Descriptor& d = tensors_.emplace_back(l_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  if (t.type == TW_INT32 || t.type == TW_BOOL)
    type = t.type == TW_BOOL ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_INT32;
  else if (!DnnTypeOf(t.type, &type))
    return;
  d.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, t.dims)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, t.steps)
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, number)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, t.aligned)
      .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, t.kind == DnnTensor::kInside)
      .Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, t.kind == DnnTensor::kNumber)
      .Finalize();
}

const Descriptor* DnnObjects::Details(const DnnOperation& o, cudnnDataType_t computed) {
  const auto make = [&](cudnnBackendDescriptorType_t type) { return &details_.emplace_back(l_, type); };
  switch (o.what) {
    case DnnOperation::kConvolution:
    case DnnOperation::kConvolutionImages:
    case DnnOperation::kConvolutionFilter: {
      Descriptor* d = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
      SetConvolution(d, o.window, computed);
      return &d->Finalize();
    }
    case DnnOperation::kPoolLargest:
    case DnnOperation::kPoolMean:
    case DnnOperation::kPoolMeanImages: {
      Descriptor* d = make(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
      SetPool(d, o.window, computed, o.what == DnnOperation::kPoolMean || o.what == DnnOperation::kPoolMeanImages);
      return &d->Finalize();
    }
    case DnnOperation::kLargest:
    case DnnOperation::kSum:
      return &make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR)
                  ->Set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                        o.what == DnnOperation::kSum ? CUDNN_REDUCE_TENSOR_ADD : CUDNN_REDUCE_TENSOR_MAX)
                  .Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, computed)
                  .Finalize();
    case DnnOperation::kProduct:
      return &make(CUDNN_BACKEND_MATMUL_DESCRIPTOR)->Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, computed).Finalize();
    case DnnOperation::kNormalise:
    case DnnOperation::kNormaliseGradients:
    case DnnOperation::kTurn: return nullptr;
    default: {
      const bool compares = o.what == DnnOperation::kNotLess,
                 counts = o.what == DnnOperation::kRowIndex || o.what == DnnOperation::kColumnIndex;
      Descriptor* d = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
      d->Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, ModeOf(o.what))
          .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compares ? CUDNN_DATA_BOOLEAN : computed);
      if (counts) d->Set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, int64_t{o.what == DnnOperation::kRowIndex ? 2 : 3});
      return &d->Finalize();
    }
  }
}

void DnnObjects::AddOperation(const DnnOperation& o, uint32_t type) {
  const Form& form = kForms[o.what];
  const cudnnDataType_t computed = type == TW_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  Descriptor& d = operations_.emplace_back(l_, form.type);
  if (const Descriptor* details = Details(o, computed)) d.Set(form.details, *details);
  for (size_t k = 0; k < o.tensors.size(); ++k)
    if (o.tensors[k]) d.Set(form.tensors[k], tensors_[o.tensors[k] - 1]);
  const auto scale = [&](cudnnBackendAttributeName_t alpha, cudnnBackendAttributeName_t beta) {  // y = alpha f(x) + beta y
    if (type == TW_DOUBLE)
      d.Set(alpha, CUDNN_TYPE_DOUBLE, 1.0).Set(beta, CUDNN_TYPE_DOUBLE, 0.0);
    else
      d.Set(alpha, CUDNN_TYPE_FLOAT, 1.0f).Set(beta, CUDNN_TYPE_FLOAT, 0.0f);
  };
  switch (o.what) {
    case DnnOperation::kConvolution:
      scale(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
      break;
    case DnnOperation::kConvolutionImages:
      scale(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
      break;
    case DnnOperation::kConvolutionFilter:
      scale(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
      break;
    case DnnOperation::kPoolLargest:
    case DnnOperation::kPoolMean:
      d.Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA, CUDNN_TYPE_DOUBLE, 1.0)
          .Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA, CUDNN_TYPE_DOUBLE, 0.0);
      break;
    case DnnOperation::kPoolMeanImages:
      d.Set(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_ALPHA, CUDNN_TYPE_DOUBLE, 1.0)
          .Set(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_BETA, CUDNN_TYPE_DOUBLE, 0.0);
      break;
    case DnnOperation::kNormalise:
      d.Set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM)
          .Set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, CUDNN_NORM_FWD_TRAINING);
      break;
    case DnnOperation::kNormaliseGradients: d.Set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM); break;
    default: break;
  }
  d.Finalize();
}

}  // namespace thalweg::cuda
