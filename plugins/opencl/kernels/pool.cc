// MaxPool, AvgPool, MaxPoolV2 and their gradients, including second derivatives of MaxPool.
#include "kernels/images.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

std::string PoolText(const tw::Node& n) { return ProgramText({{"T", tw::dtype_text(n.type_out(0))}}, {"window.h", "pool.h"}); }

// Calls the device's vendor library, if it has one that can do this.
template <class D, class... Args>
bool RunsByLibrary(D& device, const Args&... args) {
  if constexpr (requires { device.dnn(); })
    return PoolsByLibrary(device, args...);
  else
    return false;
}

class Pool {
 public:
  Pool(const tw::Node& n, const char* function)
      : sizes_come_(std::string_view(n.node->op, n.node->op_len).ends_with("V2")),
        images_(n),
        copy_(n, n.type_out(0)),
        kernel_(n, PoolText(n), function),
        type_(n.type_out(0)) {}

 protected:
  Window Of(const tw_frame* f, const tw_view* images, const tw_view* results) const {
    const Images sized = sizes_come_ ? images_.With(f->in[f->n_in - 2], f->in[f->n_in - 1]) : images_;
    const Window w = sized.Of(DimsOf(images), sized.ksize(0), sized.ksize(1), DimsOf(results));
    if (images_.Last(DimsOf(results))[3] != w.channels) Invalid("images and results must have the same channels");
    return w;
  }

  // Columns returns the number of channels per task; Tasks returns the number of tasks for `places`
  // places.
  Size Columns(const Window& w) const { return std::min<Size>(w.channels, copy_.device().blocked() ? 64 : 1); }
  Size Tasks(const Window& w, Size places) const {
    const Size columns = std::max<Size>(1, Columns(w));
    return places * ((w.channels + columns - 1) / columns);
  }

  bool sizes_come_;  // ksize and strides are the last two inputs
  Images images_;
  Copy copy_;
  Kernel kernel_;
  uint32_t type_;
};

struct MaxPool : Pool {
  explicit MaxPool(const tw::Node& n) : Pool(n, "max_pool") {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const Window w = Of(frame.f, x, y);
    Images::Call call(images_, copy_, frame.f);
    const Place from = call.In(x), to = call.Out(y);
    if (RunsByLibrary(copy_.device(), frame.f, PoolPart::kLargest, type_, w, from, to)) return call.Finish();
    Place unused = to;  // for the index of the largest element; an offset into `to` may not fit it
    unused.first = 0;
    kernel_.RunTasks(frame.f, Tasks(w, w.windows()), 2 * w.taps() * Columns(w), from, to, unused, w, Size(0));
    call.Finish();
  }
};

class MaxPoolGrad : Pool {
 public:
  explicit MaxPoolGrad(const tw::Node& n) : Pool(n, "max_pool"), grad_(n, PoolText(n), "max_pool_grad") {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *dy = frame.f->in[2], *dx = frame.f->out[0];
    const Window w = Of(frame.f, x, dy);
    if (dx->count == 0) return;
    Images::Call call(images_, copy_, frame.f);
    const Place images = call.In(x), slopes = call.In(dy), to = call.Out(dx);
    const Temporary places(copy_.device(), dy->count * sizeof(int64_t));
    kernel_.RunTasks(frame.f, Tasks(w, w.windows()), 2 * w.taps() * Columns(w), images, places.place(), places.place(), w, Size(1));
    grad_.RunTasks(frame.f, Tasks(w, w.places()), 2 * w.taps() * Columns(w), places.place(), slopes, to, w);
    call.Finish();
  }

 private:
  Kernel grad_;
};

class MaxPoolGradGrad : Pool {
 public:
  explicit MaxPoolGradGrad(const tw::Node& n) : Pool(n, "max_pool"), pick_(n, PoolText(n), "max_pool_pick") {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *dx = frame.f->in[2], *y = frame.f->out[0];
    const Window w = Of(frame.f, x, y);
    if (y->count == 0) return;
    Images::Call call(images_, copy_, frame.f);
    const Place images = call.In(x), slopes = call.In(dx), to = call.Out(y);
    const Temporary places(copy_.device(), y->count * sizeof(int64_t));
    kernel_.RunTasks(frame.f, Tasks(w, w.windows()), 2 * w.taps() * Columns(w), images, places.place(), places.place(), w, Size(1));
    pick_.RunTasks(frame.f, Size(y->count), Size(4), places.place(), slopes, to, w);
    call.Finish();
  }

 private:
  Kernel pick_;
};

struct AvgPool : Pool {
  explicit AvgPool(const tw::Node& n) : Pool(n, "avg_pool") {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const Window w = Of(frame.f, x, y);
    Images::Call call(images_, copy_, frame.f);
    const Place from = call.In(x), to = call.Out(y);
    if (!RunsByLibrary(copy_.device(), frame.f, PoolPart::kMean, type_, w, from, to))
      kernel_.RunTasks(frame.f, Tasks(w, w.windows()), 2 * w.taps() * Columns(w), from, to, w);
    call.Finish();
  }
};

struct AvgPoolGrad : Pool {
  explicit AvgPoolGrad(const tw::Node& n) : Pool(n, "avg_pool_grad") {}
  void operator()(tw::Frame frame) const {
    const tw_view *dy = frame.f->in[1], *dx = frame.f->out[0];
    const Window w = Of(frame.f, dx, dy);
    Images::Call call(images_, copy_, frame.f);
    const Place from = call.In(dy), to = call.Out(dx);
    if (!RunsByLibrary(copy_.device(), frame.f, PoolPart::kMeanImages, type_, w, to, from))
      kernel_.RunTasks(frame.f, Tasks(w, w.places()), 4 * w.taps() * Columns(w), from, to, w);
    call.Finish();
  }
};

}  // namespace

void register_pool(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16"}) {
    p.kernel<MaxPool>("MaxPool(" + t + " -> " + t + ") @OPENCL");
    p.kernel<MaxPoolGrad>("MaxPoolGrad(" + t + ", " + t + ", " + t + " -> " + t + ") @OPENCL");
    p.kernel<MaxPoolGradGrad>("MaxPoolGradGrad(" + t + ", " + t + ", " + t + " -> " + t + ") @OPENCL");
    p.kernel<MaxPool>("MaxPoolV2(" + t + ", int32, int32 -> " + t + ") @OPENCL; host ksize strides");
    p.kernel<MaxPoolGrad>("MaxPoolGradV2(" + t + ", " + t + ", " + t + ", int32, int32 -> " + t + ") @OPENCL; host ksize strides");
    p.kernel<MaxPoolGradGrad>("MaxPoolGradGradV2(" + t + ", " + t + ", " + t + ", int32, int32 -> " + t + ") @OPENCL; host ksize strides");
    p.kernel<AvgPool>("AvgPool(" + t + " -> " + t + ") @OPENCL");
    p.kernel<AvgPoolGrad>("AvgPoolGrad(int32, " + t + " -> " + t + ") @OPENCL; host orig_input_shape");
  }
}

}  // namespace thalweg::opencl
