#include "kernels/convolution.h"

#include <algorithm>

#include "kernels/channel_slices.h"
#include "kernels/image_pieces.h"

namespace thalweg::onednn {

using cpu::WindowAxis;

bool Sizes::operator==(const Sizes& o) const {
  const auto same = [](const WindowAxis& a, const WindowAxis& b) {
    return a.in == b.in && a.out == b.out && a.window == b.window && a.stride == b.stride && a.dilation == b.dilation &&
           a.before == b.before;
  };
  return batch == o.batch && in == o.in && out == o.out && groups == o.groups && depthwise == o.depthwise &&
         std::equal(axes.begin(), axes.end(), o.axes.begin(), o.axes.end(), same);
}

int64_t Sizes::Points(int64_t WindowAxis::* of) const {
  int64_t n = 1;
  for (const WindowAxis& a : axes) n *= a.*of;
  return n;
}

std::shared_ptr<const Convolution> MakeConvolution(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type) {
  if (const int64_t width = SliceWidth(api, sizes, pass, type)) return std::make_shared<ChannelSlices>(api, sizes, pass, type, width);
  return std::make_shared<ImagePieces>(api, sizes, pass, type);
}

}  // namespace thalweg::onednn
