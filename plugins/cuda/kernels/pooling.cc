// Pooling by a library of NVIDIA, except the gradient of max pooling: our kernels define which of
// several equal elements gets it, and the library does not.
#include "kernels/dnn_call.h"
#include "kernels/images.h"

namespace thalweg::opencl {

bool PoolsByLibrary(Device& device, const tw_frame* f, PoolPart part, uint32_t type, const Window& w, const Place& images,
                    const Place& results) {
  if (type == TW_DOUBLE || w.windows() == 0) return false;
  DnnCall call;
  const DnnCall::Axes all = {w.n, w.channels, w.height, w.width}, pooled = {w.n, w.channels, w.out_height, w.out_width};
  const uint32_t x = call.Stored(type, all, cuda::ChannelsLast(all), images);
  const uint32_t y = call.Stored(type, pooled, cuda::ChannelsLast(pooled), results);
  call.Compute(part == PoolPart::kLargest ? DnnCall::Operation::kPoolLargest
               : part == PoolPart::kMean  ? DnnCall::Operation::kPoolMean
                                          : DnnCall::Operation::kPoolMeanImages,
               {x, y}, DnnWindow(w));
  return call.Run(device, f, "cuDNN pooling");
}

}  // namespace thalweg::opencl
