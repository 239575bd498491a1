// CropAndResize and its gradients. Positions are computed in float with TensorFlow's steps. One task
// adds all gradients of an image, or of a box, in order.
#include <cmath>

#include "kernels/register.h"
#include "kernels/resample.h"

namespace thalweg::cpu {
namespace {

// The pixels around one position of a crop along one axis: (1 - weight) of `low` plus weight of
// `high`; inside: whether the position is inside the image.
struct Place {
  bool inside;
  int64_t low, high;
  float weight;
  float share;  // how the position moves with the end of the box, in pixels; with its beginning: extent - share
};

// Position o of a crop from `from` to `to`, relative to an axis of n pixels.
Place PlaceOf(float from, float to, int64_t n, int64_t crop, int64_t o, bool nearest) {
  const float extent = float(n - 1);
  const float scale = crop > 1 ? (to - from) * extent / float(crop - 1) : 0;
  const float at = crop > 1 ? from * extent + float(o) * scale : 0.5F * (from + to) * extent;
  Place p{at >= 0 && at <= extent, 0, 0, 0, crop > 1 ? float(o) * (extent / float(crop - 1)) : 0.5F * extent};
  if (!p.inside) return p;
  if (nearest) {
    p.low = p.high = int64_t(std::round(at));
    return p;
  }
  p.low = int64_t(std::floor(at));
  p.high = int64_t(std::ceil(at));
  p.weight = at - float(p.low);
  return p;
}

struct Crops {
  const tw_view *boxes, *numbers;
  int64_t count, height, width, channels;  // of the crops
  int64_t batch, rows, columns;            // of the images

  Crops(const tw_view* crops, const tw_view* of_boxes, const tw_view* box_ind, const int64_t* image)
      : boxes(of_boxes),
        numbers(box_ind),
        count(crops->dims[0]),
        height(crops->dims[1]),
        width(crops->dims[2]),
        channels(crops->dims[3]),
        batch(image[0]),
        rows(image[1]),
        columns(image[2]) {
    if (boxes->count != 4 * uint64_t(count) || numbers->count != uint64_t(count) || image[3] != channels)
      Invalid("crops " + DimsText(crops) + ", boxes " + DimsText(boxes) + " and box_ind " + DimsText(numbers) + " do not fit together");
    if (crops->count > 0 && (rows < 1 || columns < 1)) Invalid("images without pixels have no crops");
    for (int64_t i = 0; i < count; ++i)
      if (number(i) < 0 || number(i) >= batch)
        Invalid("box_ind[" + tw::text(i) + "] is " + tw::text(number(i)) + "; it must be in [0, " + tw::text(batch) +
                "), a number of an image");
  }
  int64_t number(int64_t i) const { return IndexAt(numbers, uint64_t(i)); }
  Place Row(int64_t i, int64_t y, bool nearest) const { return Along(i, 0, rows, height, y, nearest); }
  Place Column(int64_t i, int64_t x, bool nearest) const { return Along(i, 1, columns, width, x, nearest); }

 private:
  Place Along(int64_t i, int axis, int64_t n, int64_t crop, int64_t o, bool nearest) const {
    const float* box = reinterpret_cast<const float*>(Bytes(boxes)) + 4 * i;
    return PlaceOf(box[axis], box[axis + 2], n, crop, o, nearest);
  }
};

class Crop {
 public:
  explicit Crop(const tw::Node& n) : nearest_(n.s("method") == "nearest"), outside_(float(n.f("extrapolation_value"))) {}
  void operator()(tw::Frame f, tw::In<tw::Any> image, tw::In<float> boxes, tw::In<int32_t> box_ind, tw::In<int32_t>,
                  tw::Out<float> crops) const {
    const Crops g(crops.v(), boxes.v, box_ind.v, image.dims());
    const int64_t row = g.columns * g.channels, out_row = g.width * g.channels;
    ParallelFor(f.f, g.count * g.height, Cost(out_row, 8), [&](int64_t begin, int64_t end) {
      const TempArray<float> pixels(f.f, size_t(4 * g.channels));
      for (int64_t r = begin; r < end; ++r) {
        const int64_t i = r / g.height;
        const Place y = g.Row(i, r % g.height, nearest_);
        float* to = crops.data() + r * out_row;
        for (int64_t x = 0; x < g.width; ++x, to += g.channels) {
          const Place at = g.Column(i, x, nearest_);
          if (!y.inside || !at.inside) {
            std::fill_n(to, g.channels, outside_);
            continue;
          }
          float *a = pixels.get(), *b = a + g.channels, *c = b + g.channels, *d = c + g.channels;
          const int64_t top = (g.number(i) * g.rows + y.low) * row, bottom = (g.number(i) * g.rows + y.high) * row;
          ReadNumbers(image.v, top + at.low * g.channels, g.channels, a);
          if (nearest_) {
            std::copy_n(a, g.channels, to);
            continue;
          }
          ReadNumbers(image.v, top + at.high * g.channels, g.channels, b);
          ReadNumbers(image.v, bottom + at.low * g.channels, g.channels, c);
          ReadNumbers(image.v, bottom + at.high * g.channels, g.channels, d);
          for (int64_t k = 0; k < g.channels; ++k) {
            const float above = a[k] + (b[k] - a[k]) * at.weight, below = c[k] + (d[k] - c[k]) * at.weight;
            to[k] = above + (below - above) * y.weight;
          }
        }
      }
    });
  }

 private:
  bool nearest_;
  float outside_;
};

class GradImage {
 public:
  explicit GradImage(const tw::Node& n) : nearest_(n.s("method") == "nearest") {}
  void operator()(tw::Frame f, tw::In<float> grads, tw::In<float> boxes, tw::In<int32_t> box_ind, tw::In<int32_t> image_size,
                  tw::Out<tw::Any> output) const {
    const Ints dims = ReadInts(image_size.v, "image_size");
    if (dims.n != 4) Invalid("image_size has " + tw::text(dims.n) + " entries; images have four sizes");
    for (int k = 0; k < 4; ++k)
      if (dims[k] < 0) Invalid("image_size has the entry " + tw::text(dims[k]) + "; none may be negative");
    const Crops g(grads.v, boxes.v, box_ind.v, dims.at);
    Allocate(output, dims.at, dims.n);
    if (output.v()->dtype == TW_DOUBLE)
      Run<double>(f.f, g, grads, output.v());
    else
      Run<float>(f.f, g, grads, output.v());
  }

 private:
  // Sum: the type to add in.
  template <class Sum>
  void Run(const tw_frame* f, const Crops& g, const tw::In<float>& grads, const tw_view* output) const {
    const int64_t of_image = g.rows * g.columns * g.channels;
    const int64_t cost = Cost(of_image + 1) + Cost(int64_t(grads.size()) / std::max<int64_t>(1, g.batch), 8);
    ParallelFor(f, g.batch, cost, [&](int64_t begin, int64_t end) {
      const TempArray<Sum> sums(f, size_t(of_image));
      for (int64_t image = begin; image < end; ++image) {
        std::fill_n(sums.get(), of_image, Sum(0));
        for (int64_t i = 0; i < g.count; ++i)
          if (g.number(i) == image) AddCrop(g, i, grads.data() + i * g.height * g.width * g.channels, sums.get());
        WriteNumbers(output, image * of_image, of_image, sums.get());
      }
    });
  }

  template <class Sum>
  void AddCrop(const Crops& g, int64_t i, const float* dy, Sum* sums) const {
    for (int64_t y = 0; y < g.height; ++y) {
      const Place row = g.Row(i, y, nearest_);
      for (int64_t x = 0; x < g.width; ++x, dy += g.channels) {
        const Place column = g.Column(i, x, nearest_);
        if (!row.inside || !column.inside) continue;
        const auto add = [&](int64_t at_row, int64_t at_column, Sum weight) {
          Sum* to = sums + (at_row * g.columns + at_column) * g.channels;
          for (int64_t c = 0; c < g.channels; ++c) to[c] += weight * Sum(dy[c]);
        };
        if (nearest_) {
          add(row.low, column.low, 1);
          continue;
        }
        const Sum down(row.weight), across(column.weight);
        add(row.low, column.low, (1 - down) * (1 - across));
        add(row.low, column.high, (1 - down) * across);
        add(row.high, column.low, down * (1 - across));
        add(row.high, column.high, down * across);
      }
    }
  }

  bool nearest_;
};

void GradBoxes(tw::Frame f, tw::In<float> grads, tw::In<tw::Any> image, tw::In<float> boxes, tw::In<int32_t> box_ind,
               tw::Out<float> output) {
  const Crops g(grads.v, boxes.v, box_ind.v, image.dims());
  ParallelFor(f.f, g.count, Cost(g.height, g.width, g.channels * 8), [&](int64_t begin, int64_t end) {
    const TempArray<float> pixels(f.f, size_t(4 * g.channels));
    for (int64_t i = begin; i < end; ++i) {
      float sums[4] = {};
      const float* dy = grads.data() + i * g.height * g.width * g.channels;
      for (int64_t y = 0; y < g.height; ++y) {
        const Place row = g.Row(i, y, false);
        for (int64_t x = 0; x < g.width; ++x, dy += g.channels) {
          const Place column = g.Column(i, x, false);
          if (!row.inside || !column.inside) continue;
          float *a = pixels.get(), *b = a + g.channels, *c = b + g.channels, *d = c + g.channels;
          const int64_t top = (g.number(i) * g.rows + row.low) * g.columns, bottom = (g.number(i) * g.rows + row.high) * g.columns;
          ReadNumbers(image.v, (top + column.low) * g.channels, g.channels, a);
          ReadNumbers(image.v, (top + column.high) * g.channels, g.channels, b);
          ReadNumbers(image.v, (bottom + column.low) * g.channels, g.channels, c);
          ReadNumbers(image.v, (bottom + column.high) * g.channels, g.channels, d);
          float down = 0, across = 0;
          for (int64_t k = 0; k < g.channels; ++k) {
            down += dy[k] * ((1 - column.weight) * (c[k] - a[k]) + column.weight * (d[k] - b[k]));
            across += dy[k] * ((1 - row.weight) * (b[k] - a[k]) + row.weight * (d[k] - c[k]));
          }
          sums[0] += down * (float(g.rows - 1) - row.share);
          sums[1] += across * (float(g.columns - 1) - column.share);
          sums[2] += down * row.share;
          sums[3] += across * column.share;
        }
      }
      std::copy_n(sums, 4, output.data() + 4 * i);
    }
  });
}

}  // namespace

void register_crop_and_resize(tw::Plugin& p) {
  p.kernel<Crop>("CropAndResize @CPU");
  p.kernel<GradImage>("CropAndResizeGradImage @CPU");
  p.kernel<GradBoxes>("CropAndResizeGradBoxes @CPU");
}

}  // namespace thalweg::cpu
