// Conv3D and its gradients as products with the column matrix, of which some rows are made at a
// time.
#include <algorithm>

#include "kernels/images.h"
#include "kernels/matmul.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

constexpr Size kColumnElements = 8 << 20;  // elements of the column matrix made at a time
constexpr Size kMost = INT32_MAX;          // limit along an axis, so that no product of two sizes overflows

// The same layout as in volume.h of plugins/common/device.
struct Volume {
  Size n, size[3], channels, out[3], filter[3], stride[3], dilation[3], before[3];
  Size taps() const { return filter[0] * filter[1] * filter[2]; }
  Size windows() const { return out[0] * out[1] * out[2]; }  // per volume
  Size points() const { return size[0] * size[1] * size[2]; }
};

std::string VolumeText(const tw::Node& n) { return ProgramText({{"T", tw::dtype_text(n.type_out(0))}}, {"window.h", "volume.h"}); }

class Conv {
 public:
  explicit Conv(const tw::Node& n)
      : channels_(n.s("data_format") == "NCDHW"),
        same_(n.s("padding") == "SAME"),
        copy_(n, n.type_out(0)),
        matmul_(n, n.type_out(0)),
        bytes_(ElementBytes(n.type_out(0))) {
    Read(n, "strides", stride_);
    Read(n, "dilations", dilation_);
  }

 protected:
  // Throws if the dims do not fit together.
  Volume VolumeOf(const Dims& volumes, const Dims& filter, const Dims& results) const {
    if (volumes.size() != 5 || filter.size() != 5 || results.size() != 5) Invalid("volumes and the filter must have rank 5");
    const Dims x = channels_.Last(volumes), y = channels_.Last(results);
    if (x[4] != filter[3])
      Invalid("the input has " + tw::text(x[4]) + " channels, the filter " + tw::text(filter.data(), 5) + " takes " + tw::text(filter[3]));
    Volume v{};
    v.n = x[0];
    v.channels = x[4];
    bool fits = x[0] == y[0] && y[4] == filter[4];
    for (size_t k = 0; k < 3; ++k) {
      v.size[k] = x[1 + k], v.filter[k] = filter[k], v.stride[k] = stride_[k], v.dilation[k] = dilation_[k];
      const Size reach = std::max<Size>(0, (filter[k] - 1) * dilation_[k] + 1), room = v.size[k] - reach;
      v.out[k] = same_ ? (v.size[k] + stride_[k] - 1) / stride_[k] : room < 0 ? 0 : room / stride_[k] + 1;
      v.before[k] = same_ ? std::max<Size>(0, (v.out[k] - 1) * stride_[k] - room) / 2 : 0;
      fits = fits && y[1 + k] == v.out[k];
    }
    if (!fits)
      Invalid("input " + tw::text(volumes.data(), 5) + " and filter " + tw::text(filter.data(), 5) + " do not belong to results " +
              tw::text(results.data(), 5));
    return v;
  }

  // Returns how many rows of a column matrix with `columns` columns are made at a time.
  static Size RowsAtATime(Size columns) { return std::max<Size>(1, kColumnElements / std::max<Size>(1, columns)); }

  Channels channels_;
  bool same_;
  Copy copy_;
  MatMul matmul_;
  uint32_t bytes_;

 private:
  void Read(const tw::Node& n, const char* name, Size* to) const {
    const std::vector<int64_t> v = n.ints(name);
    if (v.size() != 5) Invalid(std::string(name) + " needs one entry per axis, 5");
    for (int64_t s : v)
      if (s < 1 || s > kMost)
        Invalid(std::string(name) + " is " + tw::text(v.data(), 5) + "; every entry must be at least 1 and fit in 31 bits");
    if (v[0] != 1 || v[channels_.first() ? 1 : 4] != 1)
      Invalid(std::string(name) + " is " + tw::text(v.data(), 5) + "; along batch and channels it must be 1");
    std::copy_n(v.begin() + (channels_.first() ? 2 : 1), 3, to);
  }
  Size stride_[3], dilation_[3];
};

// Base of the kernels that multiply by the column matrix.
class Unfolding : protected Conv {
 public:
  explicit Unfolding(const tw::Node& n) : Conv(n), unfold_(n, VolumeText(n), "unfold_volume") {}

 protected:
  // Calls body(first, rows, matrix) for runs of rows of the column matrix of the volumes at x.
  template <class F>
  void ForColumns(const tw_frame* f, const Volume& v, Place x, F&& body) const {
    const Size all = v.n * v.windows(), width = v.taps() * v.channels, most = std::min(RowsAtATime(width), all);
    const Temporary columns(copy_.device(), uint64_t(most * width) * bytes_);
    for (Size first = 0; first < all; first += most) {
      const Size rows = std::min(most, all - first);
      unfold_.RunTasks(f, rows * v.taps(), v.channels + 16, x, columns.place(), v, first, rows);
      body(first, rows, RowMajor(columns.place(), width));
    }
  }

 private:
  Kernel unfold_;
};

struct Conv3D : Unfolding {
  using Unfolding::Unfolding;
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *x = f->in[0], *filter = f->in[1], *y = f->out[0];
    const Volume v = VolumeOf(DimsOf(x), DimsOf(filter), DimsOf(y));
    if (y->count == 0) return;
    if (filter->count == 0 || x->count == 0) return copy_.Zero(f, Size(y->count), At(y));
    Channels::Call call(channels_, copy_, f);
    const Place volumes = call.In(x), to = call.Out(y);
    const Size made = filter->dims[4];
    ForColumns(f, v, volumes, [&](Size first, Size rows, Matrix columns) {
      matmul_.Run(f, {rows, made, v.taps() * v.channels}, columns, RowMajor(At(filter), made), to.After(first * made), made);
    });
    call.Finish();
  }
};

struct FilterGradient : Unfolding {
  using Unfolding::Unfolding;
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *x = f->in[0], *dy = f->in[2], *df = f->out[0];
    const Volume v = VolumeOf(DimsOf(x), DimsOf(df), DimsOf(dy));
    if (df->count == 0) return;
    if (x->count == 0 || dy->count == 0) return copy_.Zero(f, Size(df->count), At(df));
    Channels::Call call(channels_, copy_, f);
    const Place volumes = call.In(x), slopes = call.In(dy);
    const Size made = df->dims[4];
    ForColumns(f, v, volumes, [&](Size first, Size rows, Matrix columns) {
      matmul_.Run(f, {v.taps() * v.channels, made, rows}, Transposed(columns), RowMajor(slopes.After(first * made), made), At(df), made,
                  first > 0);
    });
  }
};

class InputGradient : Conv {
 public:
  explicit InputGradient(const tw::Node& n) : Conv(n), fold_(n, VolumeText(n), "fold_volume") {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *filter = f->in[1], *dy = f->in[2], *dx = f->out[0];
    const Volume v = VolumeOf(DimsOf(dx), DimsOf(filter), DimsOf(dy));
    if (dx->count == 0) return;
    if (dy->count == 0 || filter->count == 0) return copy_.Zero(f, Size(dx->count), At(dx));
    Channels::Call call(channels_, copy_, f);
    const Place slopes = call.In(dy), to = call.Out(dx);
    const Size made = filter->dims[4], width = v.taps() * v.channels, windows = v.windows();
    const Size most = std::clamp<Size>(RowsAtATime(width) / windows, 1, v.n);
    const Temporary columns(copy_.device(), uint64_t(most * windows * width) * bytes_);
    for (Size first = 0; first < v.n; first += most) {
      const Size volumes = std::min(most, v.n - first);
      matmul_.Run(f, {volumes * windows, width, made}, RowMajor(slopes.After(first * windows * made), made),
                  Transposed(RowMajor(At(filter), made)), columns.place(), width);
      fold_.RunTasks(f, volumes * v.points(), width, columns.place(), to, v, first, volumes);
    }
    call.Finish();
  }

 private:
  Kernel fold_;
};

}  // namespace

void register_conv3d(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16"}) {
    p.kernel<Conv3D>("Conv3D(" + t + ", " + t + " -> " + t + ") @OPENCL");
    p.kernel<FilterGradient>("Conv3DBackpropFilterV2(" + t + ", int32, " + t + " -> " + t + ") @OPENCL; host filter_sizes");
    for (const char* sizes : {"int32", "int64"})
      p.kernel<InputGradient>("Conv3DBackpropInputV2(" + std::string(sizes) + ", " + t + ", " + t + " -> " + t +
                              ") @OPENCL; host input_sizes");
  }
}

}  // namespace thalweg::opencl
