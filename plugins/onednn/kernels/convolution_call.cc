#include "kernels/convolution_call.h"

namespace thalweg::onednn {
namespace {

using cpu::WindowAxis;

int64_t After(const WindowAxis& a) { return (a.out - 1) * a.stride + (a.window - 1) * a.dilation + 1 - a.in - a.before; }

// Returns the layout with the axes n, channels, then the spatial axes; dense with channels last.
Layout Images(const Api& api, dnnl_data_type_t type, const Sizes& s, int64_t channels, int64_t WindowAxis::* of) {
  std::vector<int64_t> dims{s.batch, channels}, strides{channels * s.Points(of), 1};
  int64_t step = strides[0];
  for (const WindowAxis& a : s.axes) {
    dims.push_back(a.*of);
    strides.push_back(step /= a.*of);
  }
  return LayoutOf(api, type, dims, strides);
}

}  // namespace

Layout PlainFilter(const Api& api, dnnl_data_type_t type, const Sizes& part, const Sizes& whole) {
  std::vector<int64_t> dims, strides;
  if (part.groups > 1) {
    dims.push_back(part.groups);
    strides.push_back(part.out / part.groups);
  }
  dims.insert(dims.end(), {part.out / part.groups, part.in / part.groups});
  strides.insert(strides.end(), {1, part.depthwise ? part.out / part.in : whole.out});
  int64_t step = (part.depthwise ? part.out : whole.in / whole.groups * whole.out) * part.taps();
  for (const WindowAxis& a : part.axes) {
    dims.push_back(a.window);
    strides.push_back(step /= a.window);
  }
  return LayoutOf(api, type, dims, strides);
}

ConvolutionCall::ConvolutionCall(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type)
    : sizes_(sizes),
      pass_(pass),
      images_(Images(api, type, sizes, sizes.in, &WindowAxis::in)),
      results_(Images(api, type, sizes, sizes.out, &WindowAxis::out)) {
  const Layout plain = PlainFilter(api, type, sizes, sizes);
  const std::vector<int64_t> dims(plain.dims, plain.dims + plain.ndims);
  // The forward pass uses the filter's type; the gradient sums in float.
  const Layout any = LayoutOf(api, type, dims, {}), sum = LayoutOf(api, dnnl_f32, dims, {});
  dnnl_dims_t stride{}, dilate{}, before{}, after{};
  for (size_t i = 0; i < sizes.axes.size(); ++i) {
    stride[i] = sizes.axes[i].stride;
    dilate[i] = sizes.axes[i].dilation - 1;
    before[i] = sizes.axes[i].before;
    after[i] = After(sizes.axes[i]);
  }
  const Attributes attributes(api);
  dnnl_convolution_desc_t op;
  constexpr char kWhat[] = "describing a convolution";
  Check(api.dnnl_dilated_convolution_forward_desc_init(&op, pass == Pass::kForward ? dnnl_forward_inference : dnnl_forward_training,
                                                       dnnl_convolution_direct, &images_, &any, nullptr, &results_, stride, dilate, before,
                                                       after),
        kWhat);
  const Description forward(api, &op, attributes);
  if (pass == Pass::kForward) {
    primitive_ = std::make_unique<Primitive>(forward);
    filter_ = forward.layout(dnnl_query_weights_md);
    return;
  }
  if (pass == Pass::kInput)
    Check(api.dnnl_dilated_convolution_backward_data_desc_init(&op, dnnl_convolution_direct, &images_, &any, &results_, stride, dilate,
                                                               before, after),
          kWhat);
  else
    Check(api.dnnl_dilated_convolution_backward_weights_desc_init(&op, dnnl_convolution_direct, &images_, &sum, nullptr, &results_, stride,
                                                                  dilate, before, after),
          kWhat);
  const Description backward(api, &op, attributes, &forward);
  primitive_ = std::make_unique<Primitive>(backward);
  filter_ = backward.layout(pass == Pass::kFilter ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
}

dnnl_status_t ConvolutionCall::Run(const void* images, const void* filter, const void* results, char* scratch) const {
  constexpr int kWhat[3][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                               {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                               {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
  const int(&what)[3] = kWhat[int(pass_)];
  return primitive_->Run({{what[0], images_, images}, {what[1], filter_, filter}, {what[2], results_, results}}, scratch);
}

}  // namespace thalweg::onednn
