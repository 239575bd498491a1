// ExtractImagePatches: one copy of a pixel's channels for each place in each window.
#include <algorithm>
#include <cstring>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class Patches {
 public:
  explicit Patches(const tw::Node& n)
      : sizes_(n.ints("ksizes")), strides_(n.ints("strides")), rates_(n.ints("rates")), same_(n.s("padding") == "SAME") {
    for (const auto* list : {&sizes_, &strides_, &rates_})
      if (list->size() != 4) Invalid("ksizes, strides and rates need four entries, one per axis");
  }

  void operator()(tw::Frame f, tw::In<tw::Any> images, tw::Out<tw::Any> patches) const {
    if (patches.size() == 0) return;
    if (images.rank() != 4 || patches.rank() != 4 || patches.dim(3) != images.dim(3) * sizes_[1] * sizes_[2])
      Invalid("images " + DimsText(images.v) + " and patches " + DimsText(patches.v()) + " do not fit together");
    const size_t pixel = size_t(images.dim(3)) * ElementBytes(images.v->dtype);
    const int64_t height = images.dim(1), width = images.dim(2), rows = patches.dim(1), columns = patches.dim(2);
    const int64_t above = Before(1, height, rows), beside = Before(2, width, columns);
    const int64_t of_patch = sizes_[1] * sizes_[2];
    ParallelFor(f.f, images.dim(0) * rows, Cost(columns, of_patch, int64_t(pixel / 4 + 4)), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const unsigned char* image = images.data() + size_t(r / rows * height * width) * pixel;
        unsigned char* to = patches.data() + size_t(r * columns * of_patch) * pixel;
        for (int64_t x = 0; x < columns; ++x)
          for (int64_t i = 0; i < sizes_[1]; ++i)
            for (int64_t j = 0; j < sizes_[2]; ++j, to += pixel) {
              const int64_t row = r % rows * strides_[1] - above + i * rates_[1], column = x * strides_[2] - beside + j * rates_[2];
              if (row >= 0 && row < height && column >= 0 && column < width)
                std::memcpy(to, image + size_t(row * width + column) * pixel, pixel);
              else
                std::memset(to, 0, pixel);
            }
      }
    });
  }

 private:
  // The padding before an axis of n pixels with `out` places of windows.
  int64_t Before(size_t axis, int64_t n, int64_t out) const {
    const int64_t reach = (sizes_[axis] - 1) * rates_[axis] + 1;
    return same_ ? std::max<int64_t>(0, (out - 1) * strides_[axis] + reach - n) / 2 : 0;
  }

  std::vector<int64_t> sizes_, strides_, rates_;
  bool same_;
};

}  // namespace

void register_extract_image_patches(tw::Plugin& p) { p.kernel<Patches>("ExtractImagePatches @CPU"); }

}  // namespace thalweg::cpu
