// Convolutions that a library of NVIDIA's computes.
#include <algorithm>

#include "dnn.h"
#include "kernels/copy.h"
#include "kernels/images.h"
#include "kernels/product.h"

namespace thalweg::opencl {
namespace {

int64_t After(Size size, Size out, Size stride, Size filter, Size dilation, Size before) {
  return std::max<Size>(0, (out - 1) * stride + (filter - 1) * dilation + 1 - size - before);
}

}  // namespace

bool ConvolvesByLibrary(Device& device, const tw_frame* f, ConvolutionPart part, uint32_t type, const Window& w, cl_long out_channels,
                        const Copy& copy, const Place& images, const Place& filter, const Place& results) {
  const uint32_t element = ElementBytes(type);
  if (w.pitch != w.channels || w.windows() == 0) return false;
  const uint32_t aligned = std::min(Alignment(images, element), Alignment(results, element));
  const cuda::Convolution c{part == ConvolutionPart::kForward  ? cuda::Convolution::kForward
                            : part == ConvolutionPart::kImages ? cuda::Convolution::kOfImages
                                                               : cuda::Convolution::kOfFilter,
                            type,
                            w.n,
                            w.height,
                            w.width,
                            w.channels,
                            out_channels,
                            w.filter_height,
                            w.filter_width,
                            w.out_height,
                            w.out_width,
                            w.stride_height,
                            w.stride_width,
                            w.dilation_height,
                            w.dilation_width,
                            w.before_height,
                            w.before_width,
                            After(w.height, w.out_height, w.stride_height, w.filter_height, w.dilation_height, w.before_height),
                            After(w.width, w.out_width, w.stride_width, w.filter_width, w.dilation_width, w.before_width),
                            aligned};
  device.Enter();
  const cuda::Dnn::Way* way = device.dnn().Find(f->host, c);
  if (!way) return false;
  // The library's filters are [out, height, width, in]; ours have their channels last.
  const Dims dims = {out_channels, w.filter_height, w.filter_width, w.channels};
  const Dims theirs = DenseSteps(dims), ours = {1, w.filter_width * w.channels * out_channels, w.channels * out_channels, out_channels};
  const uint64_t bytes = cuda::Dnn::Workspace(*way);
  const Temporary turned(device, uint64_t(Count(dims)) * element), workspace(device, bytes);
  if (part != ConvolutionPart::kFilter) copy.Run(f, dims, filter, ours, turned.place(), theirs);
  cuda::Submit(device, f->stream, "cuDNN convolution", [&](CUstream queue) {
    device.dnn().Enqueue(*way, queue, Address(images, queue, element), turned.On(queue), Address(results, queue, element),
                         bytes ? workspace.On(queue) : 0);
  });
  if (part == ConvolutionPart::kFilter) copy.Run(f, dims, turned.place(), theirs, filter, ours);
  return true;
}

}  // namespace thalweg::opencl
