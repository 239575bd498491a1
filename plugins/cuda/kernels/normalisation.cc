// Batch normalisation by a library of NVIDIA.
#include <algorithm>

#include "kernels/dnn_call.h"
#include "kernels/product.h"

namespace thalweg::opencl {
namespace {

using Operation = DnnCall::Operation;

// All tensors of one kind get their common alignment, because the library requires the same one for
// mean and deviation.
struct Tensors {
  Tensors(uint32_t t, const Dims& d, bool is_first, std::initializer_list<Place> large, std::initializer_list<Place> small)
      : type(t),
        all{d[0], d[1], d[2], 1},
        steps(is_first ? cuda::Dense(all) : cuda::ChannelsLast(all)),
        channels{1, d[1], 1, 1},
        all_aligned(Common(large, ElementBytes(t))),
        channels_aligned(Common(small, ElementBytes(TW_FLOAT))) {}
  uint32_t All(const Place& at) { return call.Stored(type, all, steps, at, all_aligned); }
  uint32_t PerChannel(const Place& at) { return call.Stored(TW_FLOAT, channels, cuda::ChannelsLast(channels), at, channels_aligned); }
  static uint32_t Common(std::initializer_list<Place> places, uint32_t element) {
    uint32_t least = UINT32_MAX;
    for (const Place& p : places) least = std::min(least, Alignment(p, element));
    return least;
  }

  const uint32_t type;
  const DnnCall::Axes all, steps, channels;
  const uint32_t all_aligned, channels_aligned;
  DnnCall call;
};

}  // namespace

bool NormalisesByLibrary(Device& device, const tw_frame* f, uint32_t type, const Dims& dims, bool first, float epsilon, const Place& x,
                         const Place& scale, const Place& offset, const Place& mean, const Place& inverse, const Place& y) {
  Tensors t(type, dims, first, {x, y}, {scale, offset, mean, inverse});
  const uint32_t from = t.All(x), by = t.PerChannel(scale), more = t.PerChannel(offset), least = t.call.Number(epsilon),
                 its_mean = t.PerChannel(mean), its_inverse = t.PerChannel(inverse), to = t.All(y);
  t.call.Compute(Operation::kNormalise, {from, by, more, least, its_mean, its_inverse, to});
  return t.call.Run(device, f, "cuDNN normalisation");
}

bool NormGradientsByLibrary(Device& device, const tw_frame* f, uint32_t type, const Dims& dims, bool first, const Place& x,
                            const Place& mean, const Place& inverse, const Place& dy, const Place& scale, const Place& d_scale,
                            const Place& d_offset, const Place& dx) {
  Tensors t(type, dims, first, {x, dy, dx}, {mean, inverse, scale, d_scale, d_offset});
  const uint32_t from = t.All(x), its_mean = t.PerChannel(mean), its_inverse = t.PerChannel(inverse), slope = t.All(dy),
                 by = t.PerChannel(scale), of_scale = t.PerChannel(d_scale), of_offset = t.PerChannel(d_offset), to = t.All(dx);
  t.call.Compute(Operation::kNormaliseGradients, {from, its_mean, its_inverse, slope, by, of_scale, of_offset, to});
  return t.call.Run(device, f, "cuDNN normalisation's gradients");
}

}  // namespace thalweg::opencl
