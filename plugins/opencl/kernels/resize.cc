// ResizeBilinear, ResizeNearestNeighbor and their gradients. Source positions are computed on the
// host in float, with the same steps as in TensorFlow, so that ties choose the same pixels.
#include <algorithm>

#include "common/alignment.h"
#include "kernels/copy.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

using common::Alignment;

// Along an axis, each result is (1 - weight) of `low` plus weight of `high`. Each place of the
// image contributes to the results [begin, end).
struct Mixes {
  std::vector<int64_t> low, high, begin, end;
  std::vector<float> weight;
};

Mixes Bilinear(const Alignment& a, int64_t in, int64_t out) {
  const float scale = a.Scale(in, out);
  Mixes m;
  m.begin.assign(size_t(in), out);
  m.end.assign(size_t(in), 0);
  for (int64_t o = 0; o < out; ++o) {
    const common::Mix mix = a.Bilinear(o, in, scale);
    m.low.push_back(mix.low);
    m.high.push_back(mix.high);
    m.weight.push_back(mix.weight);
    for (int64_t i : {mix.low, mix.high}) {
      m.begin[size_t(i)] = std::min(m.begin[size_t(i)], o);
      m.end[size_t(i)] = o + 1;
    }
  }
  return m;
}

std::vector<int64_t> Nearest(const Alignment& a, int64_t in, int64_t out) {
  const float scale = a.Scale(in, out);
  std::vector<int64_t> places;
  for (int64_t o = 0; o < out; ++o) places.push_back(a.Nearest(o, in, scale));
  return places;
}

void CheckImages(const tw_view* original, const tw_view* resized) {
  if (original->rank != 4 || resized->rank != 4 || original->dims[0] != resized->dims[0] || original->dims[3] != resized->dims[3])
    Invalid("images of " + tw::text(original->dims, original->rank) + " and " + tw::text(resized->dims, resized->rank) +
            " must have rank 4 and agree in number and channels");
  if (original->count == 0 && resized->count != 0) Invalid("images without pixels cannot become larger");
}

// The lists of both axes on the device.
struct Lists {
  Lists(Device& device, const Mixes& rows, const Mixes& columns)
      : low_row(device, rows.low),
        high_row(device, rows.high),
        weight_row(device, rows.weight),
        low_column(device, columns.low),
        high_column(device, columns.high),
        weight_column(device, columns.weight) {}
  Temporary low_row, high_row, weight_row, low_column, high_column, weight_column;
  std::vector<Place> places() const {
    return {low_row.place(), high_row.place(), weight_row.place(), low_column.place(), high_column.place(), weight_column.place()};
  }
};

// Returns n, height, width and channels of the original, and height and width of the results.
std::vector<Size> Sizes(const tw_view* original, const tw_view* resized) {
  return {original->dims[0], original->dims[1], original->dims[2], original->dims[3], resized->dims[1], resized->dims[2]};
}

std::string ResizeText(const std::string& type) { return ProgramText({{"T", type}}, {"resize.h"}); }

class ResizeBilinear {
 public:
  explicit ResizeBilinear(const tw::Node& n) : alignment_(n), kernel_(n, ResizeText(tw::dtype_text(n.type_in(0))), "bilinear") {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    CheckImages(x, y);
    if (y->count == 0) return;
    const Lists lists(kernel_.device(), Bilinear(alignment_, x->dims[1], y->dims[1]), Bilinear(alignment_, x->dims[2], y->dims[2]));
    kernel_.RunTasks(frame.f, Size(y->count) / x->dims[3], 8 * x->dims[3], At(x), lists.places(), At(y), Sizes(x, y));
  }

 private:
  Alignment alignment_;
  Kernel kernel_;
};

class ResizeBilinearGrad {
 public:
  explicit ResizeBilinearGrad(const tw::Node& n) : alignment_(n), kernel_(n, ResizeText(tw::dtype_text(n.type_out(0))), "bilinear_grad") {}
  void operator()(tw::Frame frame) const {
    const tw_view *dy = frame.f->in[0], *dx = frame.f->out[0];
    CheckImages(dx, dy);
    if (dx->count == 0) return;
    const Mixes rows = Bilinear(alignment_, dx->dims[1], dy->dims[1]), columns = Bilinear(alignment_, dx->dims[2], dy->dims[2]);
    Device& device = kernel_.device();
    const Lists lists(device, rows, columns);
    const Temporary begin_row(device, rows.begin), end_row(device, rows.end), begin_column(device, columns.begin),
        end_column(device, columns.end);
    kernel_.RunTasks(frame.f, Size(dx->count), 8 * (1 + Size(dy->count) / Size(dx->count)), At(dy), lists.places(), begin_row.place(),
                     end_row.place(), begin_column.place(), end_column.place(), At(dx), Sizes(dx, dy));
  }

 private:
  Alignment alignment_;
  Kernel kernel_;
};

// Gathers rows of pixels, then pixels within rows.
class ResizeNearest {
 public:
  explicit ResizeNearest(const tw::Node& n)
      : alignment_(n), kernel_(n, ProgramText({{"T", MovedAs(n.type_in(0))}}, {"copy.h"}), "gather"), bytes_(ElementBytes(n.type_in(0))) {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    CheckImages(x, y);
    if (y->count == 0) return;
    const Size n = x->dims[0], height = x->dims[1], width = x->dims[2], channels = x->dims[3], rows = y->dims[1], columns = y->dims[2];
    Device& device = kernel_.device();
    const Temporary row_list(device, Nearest(alignment_, height, rows)), column_list(device, Nearest(alignment_, width, columns)),
        between(device, uint64_t(n * rows * width * channels) * bytes_);
    kernel_.RunTasks(frame.f, n * rows, width * channels, At(x), row_list.place(), between.place(), Size(1), n, height, rows,
                     width * channels);
    kernel_.RunTasks(frame.f, n * rows * columns, channels, between.place(), column_list.place(), At(y), Size(1), n * rows, width, columns,
                     channels);
  }

 private:
  Alignment alignment_;
  Kernel kernel_;
  uint32_t bytes_;
};

// For each of `in` places, the results [begin, end) that show it.
struct Showing {
  Showing(const Alignment& a, int64_t in, int64_t out) : begin(size_t(in), 0), end(size_t(in), 0) {
    const std::vector<int64_t> places = Nearest(a, in, out);
    for (int64_t o = 0; o < out; ++o) {
      const size_t i = size_t(places[size_t(o)]);
      if (end[i] == 0) begin[i] = o;
      end[i] = o + 1;
    }
  }
  std::vector<int64_t> begin, end;
};

class ResizeNearestGrad {
 public:
  explicit ResizeNearestGrad(const tw::Node& n) : alignment_(n), kernel_(n, ResizeText(tw::dtype_text(n.type_in(0))), "nearest_grad") {}
  void operator()(tw::Frame frame) const {
    const tw_view *dy = frame.f->in[0], *dx = frame.f->out[0];
    CheckImages(dx, dy);
    if (dx->count == 0) return;
    Device& device = kernel_.device();
    const Showing rows(alignment_, dx->dims[1], dy->dims[1]), columns(alignment_, dx->dims[2], dy->dims[2]);
    const Temporary begin_row(device, rows.begin), end_row(device, rows.end), begin_column(device, columns.begin),
        end_column(device, columns.end);
    kernel_.RunTasks(frame.f, Size(dx->count), 2 * (1 + Size(dy->count) / Size(dx->count)), At(dy), begin_row.place(), end_row.place(),
                     begin_column.place(), end_column.place(), At(dx), Sizes(dx, dy));
  }

 private:
  Alignment alignment_;
  Kernel kernel_;
};

}  // namespace

void register_resize(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16"}) {
    p.kernel<ResizeBilinear>("ResizeBilinear(" + t + ", int32 -> float) @OPENCL; host size");
    p.kernel<ResizeBilinearGrad>("ResizeBilinearGrad(float, " + t + " -> " + t + ") @OPENCL");
    p.kernel<ResizeNearestGrad>("ResizeNearestNeighborGrad(" + t + ", int32 -> " + t + ") @OPENCL; host size");
    p.kernel<ResizeNearest>("ResizeNearestNeighbor(" + t + ", int32 -> " + t + ") @OPENCL; host size");
  }
}

}  // namespace thalweg::opencl
