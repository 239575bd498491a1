// Conv2D and its gradients as products with the column matrix, of which some rows are made at a
// time. Depthwise convolutions are computed directly.
#include <algorithm>

#include "kernels/images.h"
#include "kernels/matmul.h"
#include "kernels/reduce.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

constexpr Size kColumnElements = 8 << 20;  // elements of the column matrix made at a time

std::string WindowText(const tw::Node& n, const char* part) {
  return ProgramText({{"T", tw::dtype_text(n.type_out(0))}}, {"window.h", part});
}
std::string WindowText(const tw::Node& n) { return ProgramText({{"T", tw::dtype_text(n.type_out(0))}}, {"window.h"}); }

// One product per group of channels. Group g reads channels from g * in on and writes those from g
// * out on.
struct Groups {
  Size count, in, out, all_out;
};

// Calls the device's vendor library for convolutions of one group, if it has one that can do this.
template <class D, class... Args>
bool RunsByLibrary(D& device, const Groups& g, const Args&... args) {
  if constexpr (requires { device.dnn(); })
    return g.count == 1 && ConvolvesByLibrary(device, args...);
  else
    return false;
}

class Conv {
 public:
  explicit Conv(const tw::Node& n)
      : images_(n),
        copy_(n, n.type_out(0)),
        unfold_(n, WindowText(n), "unfold"),
        matmul_(n, n.type_out(0)),
        type_(n.type_out(0)),
        bytes_(ElementBytes(type_)) {}

 protected:
  Window WindowOf(const Dims& images, const Dims& filter, const Dims& results, Groups* g) const {
    if (filter.size() != 4) Invalid("the filter must have rank 4");
    Window w = images_.Of(images, filter[0], filter[1], results);
    if (filter[2] == 0 || w.channels % filter[2] || filter[3] % (w.channels / filter[2]))
      Invalid("the input has " + tw::text(w.channels) + " channels, the filter " + tw::text(filter.data(), 4) + " takes " +
              tw::text(filter[2]) + "; the first must be a multiple of the second, in groups that share the results");
    g->count = w.channels / filter[2];
    g->in = w.channels = filter[2];
    g->all_out = filter[3];
    g->out = g->all_out / g->count;
    return w;
  }

  // Calls body(first, rows, matrix) for runs of rows of the column matrix of the images at x. If
  // the images are their own column matrix, calls it once with all rows.
  template <class F>
  void ForColumns(const tw_frame* f, const Window& w, Place x, F&& body) const {
    const Size width = w.taps() * w.channels;
    const bool plain = w.taps() == 1 && w.stride_height == 1 && w.stride_width == 1 && w.before_height == 0 && w.before_width == 0;
    if (plain && w.out_height == w.height && w.out_width == w.width) return body(Size(0), w.windows(), Matrix{x, w.pitch, 1});
    const Size most = std::max<Size>(1, kColumnElements / std::max<Size>(1, width)), rows = std::min(most, w.windows());
    const Temporary columns(copy_.device(), uint64_t(rows * width) * bytes_);
    for (Size first = 0; first < w.windows(); first += rows) {
      const Size n = std::min(rows, w.windows() - first);
      unfold_.RunTasks(f, n * w.taps(), w.channels + 16, x, columns.place(), w, first, n);
      body(first, n, RowMajor(columns.place(), width));
    }
  }

  Images images_;
  Copy copy_;
  Kernel unfold_;
  MatMul matmul_;
  uint32_t type_, bytes_;
};

class Conv2D : Conv {
 public:
  using Conv::Conv;
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *x = f->in[0], *filter = f->in[1], *y = f->out[0];
    Groups g{};
    const Window w = WindowOf(DimsOf(x), DimsOf(filter), DimsOf(y), &g);
    if (y->count == 0) return;
    if (w.taps() == 0 || x->count == 0) return copy_.Zero(f, Size(y->count), At(y));
    Images::Call call(images_, copy_, f);
    const Place images = call.In(x), to = call.Out(y);
    const bool done = RunsByLibrary(copy_.device(), g, f, ConvolutionPart::kForward, type_, w, g.out, copy_, images, At(filter), to);
    for (Size k = 0; k < g.count && !done; ++k)
      ForColumns(f, w, images.After(k * g.in), [&](Size first, Size rows, Matrix columns) {
        matmul_.Run(f, {rows, g.out, w.taps() * g.in}, columns, RowMajor(At(filter).After(k * g.out), g.all_out),
                    to.After(first * g.all_out + k * g.out), g.all_out);
      });
    call.Finish();
  }
};

class FilterGradient : Conv {
 public:
  explicit FilterGradient(const tw::Node& n) : Conv(n), sum_(n, kSum, n.type_out(0), n.type_out(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *x = f->in[0], *dy = f->in[2], *df = f->out[0];
    Groups g{};
    const Window w = WindowOf(DimsOf(x), DimsOf(df), DimsOf(dy), &g);
    if (df->count == 0) return;
    if (x->count == 0 || dy->count == 0) return copy_.Zero(f, Size(df->count), At(df));
    Images::Call call(images_, copy_, f);
    const Place images = call.In(x), slopes = call.In(dy);
    if (RunsByLibrary(copy_.device(), g, f, ConvolutionPart::kFilter, type_, w, g.out, copy_, images, At(df), slopes)) return;
    for (Size k = 0; k < g.count; ++k)
      ForColumns(f, w, images.After(k * g.in), [&](Size first, Size rows, Matrix columns) {
        const MatrixSizes sizes{w.taps() * g.in, g.out, rows};
        const Matrix slope = RowMajor(slopes.After(first * g.all_out + k * g.out), g.all_out);
        if (g.count == 1 && first == 0 && InParts(f, sizes, columns, slope, At(df))) return;
        matmul_.Run(f, sizes, Transposed(columns), slope, At(df).After(k * g.out), g.all_out, first > 0);
      });
  }

 private:
  // Sums over many rows for few results as one product per part of the rows. Returns false if that
  // is not worth it.
  bool InParts(const tw_frame* f, MatrixSizes s, Matrix columns, Matrix slope, Place to) const {
    Size parts = bytes_ < 4 || s.m * s.n > kFewResults ? 1 : kMostParts;
    while (parts > 1 && (s.depth % parts || s.depth / parts < kRowsOfPart)) parts /= 2;
    if (parts == 1) return false;
    const Size rows = s.depth / parts;
    const Temporary results(copy_.device(), uint64_t(parts * s.m * s.n) * bytes_);
    matmul_.RunBatch(f, {s.m, s.n, rows}, Transposed(columns), slope, results.place(), s.n, false, {parts}, {rows * columns.row_step},
                     {rows * slope.row_step}, {s.m * s.n});
    sum_.Run(f, {parts, s.m * s.n}, {true, false}, results.place(), to);
    return true;
  }
  static constexpr Size kFewResults = 16384, kMostParts = 64, kRowsOfPart = 128;

  Reduce sum_;
};

class InputGradient : Conv {
 public:
  explicit InputGradient(const tw::Node& n) : Conv(n), fold_(n, WindowText(n), "fold") {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *filter = f->in[1], *dy = f->in[2], *dx = f->out[0];
    Groups g{};
    const Window w = WindowOf(DimsOf(dx), DimsOf(filter), DimsOf(dy), &g);
    if (dx->count == 0) return;
    if (dy->count == 0 || filter->count == 0) return copy_.Zero(f, Size(dx->count), At(dx));
    Images::Call call(images_, copy_, f);
    const Place slopes = call.In(dy), to = call.Out(dx);
    if (RunsByLibrary(copy_.device(), g, f, ConvolutionPart::kImages, type_, w, g.out, copy_, to, At(filter), slopes)) return call.Finish();
    const Size width = w.taps() * g.in, per_image = w.out_height * w.out_width;
    const Size images = std::clamp<Size>(kColumnElements / std::max<Size>(1, per_image * width), 1, w.n);
    const Temporary columns(copy_.device(), uint64_t(images * per_image * width) * bytes_);
    for (Size k = 0; k < g.count; ++k)
      for (Size first = 0; first < w.n; first += images) {
        const Size n = std::min(images, w.n - first);
        matmul_.Run(f, {n * per_image, width, g.out}, RowMajor(slopes.After(first * per_image * g.all_out + k * g.out), g.all_out),
                    Transposed(RowMajor(At(filter).After(k * g.out), g.all_out)), columns.place(), width);
        fold_.RunTasks(f, n * w.height * w.width, w.taps() * g.in, columns.place(), to.After(k * g.in), w, first, n);
      }
    call.Finish();
  }

 private:
  Kernel fold_;
};

class Depthwise {
 public:
  Depthwise(const tw::Node& n, const char* function)
      : images_(n), copy_(n, n.type_out(0)), kernel_(n, WindowText(n, "depthwise.h"), function) {}

 protected:
  // Runs the function for a node with these dims. It reads a and b and writes y. a holds images,
  // and so does one of b and y; the other is the filter.
  void Run(const tw_frame* f, const Dims& images, const Dims& filter, const Dims& results, const tw_view* a, const tw_view* b,
           const tw_view* y, bool filter_last, Size work) const {
    if (filter.size() != 4) Invalid("the filter must have rank 4");
    const Window w = images_.Of(images, filter[0], filter[1], results);
    if (filter[2] != w.channels || images_.Last(results)[3] != w.channels * filter[3])
      Invalid("images of " + tw::text(w.channels) + " channels do not fit a filter " + tw::text(filter.data(), 4));
    if (y->count == 0) return;
    if (a->count == 0 || b->count == 0) return copy_.Zero(f, Size(y->count), At(y));
    Images::Call call(images_, copy_, f);
    const Place first = call.In(a), second = filter_last ? call.In(b) : At(b), to = filter_last ? At(y) : call.Out(y);
    kernel_.RunTasks(f, Size(y->count), work, first, second, to, w, filter[3]);
    call.Finish();
  }

  // The work per element: one step for each place of the filter.
  static Size Work(const tw_view* filter) { return Size(filter->count) / std::max<Size>(1, filter->dims[2]) + 1; }

  Images images_;
  Copy copy_;
  Kernel kernel_;
};

struct DepthwiseForward : Depthwise {
  explicit DepthwiseForward(const tw::Node& n) : Depthwise(n, "depthwise") {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    Run(f, DimsOf(f->in[0]), DimsOf(f->in[1]), DimsOf(f->out[0]), f->in[0], f->in[1], f->out[0], false, Work(f->in[1]));
  }
};
struct DepthwiseInput : Depthwise {
  explicit DepthwiseInput(const tw::Node& n) : Depthwise(n, "depthwise_input") {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    Run(f, DimsOf(f->out[0]), DimsOf(f->in[1]), DimsOf(f->in[2]), f->in[2], f->in[1], f->out[0], false, Work(f->in[1]));
  }
};
struct DepthwiseFilter : Depthwise {
  explicit DepthwiseFilter(const tw::Node& n) : Depthwise(n, "depthwise_filter") {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    Run(f, DimsOf(f->in[0]), DimsOf(f->out[0]), DimsOf(f->in[2]), f->in[0], f->in[2], f->out[0], true, Size(f->in[2]->count) + 1);
  }
};

}  // namespace

void register_conv(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16"}) {
    p.kernel<Conv2D>("Conv2D(" + t + ", " + t + " -> " + t + ") @OPENCL");
    p.kernel<FilterGradient>("Conv2DBackpropFilter(" + t + ", int32, " + t + " -> " + t + ") @OPENCL; host filter_sizes");
    p.kernel<InputGradient>("Conv2DBackpropInput(int32, " + t + ", " + t + " -> " + t + ") @OPENCL; host input_sizes");
    p.kernel<DepthwiseForward>("DepthwiseConv2dNative(" + t + ", " + t + " -> " + t + ") @OPENCL");
    p.kernel<DepthwiseFilter>("DepthwiseConv2dNativeBackpropFilter(" + t + ", int32, " + t + " -> " + t + ") @OPENCL; host filter_sizes");
    p.kernel<DepthwiseInput>("DepthwiseConv2dNativeBackpropInput(int32, " + t + ", " + t + " -> " + t + ") @OPENCL; host input_sizes");
  }
}

}  // namespace thalweg::opencl
