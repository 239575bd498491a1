// Convolutions by a library of NVIDIA.
#include "kernels/copy.h"
#include "kernels/dnn_call.h"
#include "kernels/images.h"

namespace thalweg::opencl {

bool ConvolvesByLibrary(Device& device, const tw_frame* f, ConvolutionPart part, uint32_t type, const Window& w, cl_long out_channels,
                        const Copy& copy, const Place& images, const Place& filter, const Place& results) {
  if (w.pitch != w.channels || w.windows() == 0) return false;
  // The library's filters are [out, height, width, in]; ours have the output channels last.
  const Dims dims = {out_channels, w.filter_height, w.filter_width, w.channels};
  const Dims theirs = DenseSteps(dims), ours = {1, w.filter_width * w.channels * out_channels, w.channels * out_channels, out_channels};
  const Temporary turned(device, uint64_t(Count(dims)) * ElementBytes(type));
  DnnCall call;
  const auto add = [&](const DnnCall::Axes& axes, const Place& at) { return call.Stored(type, axes, cuda::ChannelsLast(axes), at); };
  const uint32_t x = add({w.n, w.channels, w.height, w.width}, images);
  const uint32_t weights = add({out_channels, w.channels, w.filter_height, w.filter_width}, turned.place());
  const uint32_t y = add({w.n, out_channels, w.out_height, w.out_width}, results);
  DnnCall::Operation::Window window = DnnWindow(w);
  window.size = {};  // the library takes it from the filter
  call.Compute(part == ConvolutionPart::kForward  ? DnnCall::Operation::kConvolution
               : part == ConvolutionPart::kImages ? DnnCall::Operation::kConvolutionImages
                                                  : DnnCall::Operation::kConvolutionFilter,
               {x, weights, y}, window);
  const DnnCall::Way way = call.Find(device, f->host);
  if (!way) return false;
  if (part != ConvolutionPart::kFilter) copy.Run(f, dims, filter, ours, turned.place(), theirs);
  call.Run(device, f, "cuDNN convolution", way);
  if (part == ConvolutionPart::kFilter) copy.Run(f, dims, turned.place(), theirs, filter, ours);
  return true;
}

}  // namespace thalweg::opencl
