// MaxPool, AvgPool and their gradients.
#include "kernels/images.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

std::string PoolText(const tw::Node& n) { return ProgramText({{"T", tw::dtype_text(n.type_out(0))}}, {"window.h", "pool.h"}); }

class Pool {
 public:
  Pool(const tw::Node& n, const char* function) : images_(n), copy_(n, n.type_out(0)), kernel_(n, PoolText(n), function) {}

 protected:
  Window Of(const tw_view* images, const tw_view* results) const {
    const Window w = images_.Of(DimsOf(images), images_.ksize(0), images_.ksize(1), DimsOf(results));
    if (images_.Last(DimsOf(results))[3] != w.channels) Invalid("images and results must have the same channels");
    return w;
  }

  Images images_;
  Copy copy_;
  Kernel kernel_;
};

struct MaxPool : Pool {
  explicit MaxPool(const tw::Node& n) : Pool(n, "max_pool") {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const Window w = Of(x, y);
    Images::Call call(images_, copy_, frame.f);
    const Place from = call.In(x), to = call.Out(y);
    kernel_.RunTasks(frame.f, Size(y->count), 2 * w.taps(), from, to, to, w, Size(0));
    call.Finish();
  }
};

class MaxPoolGrad : Pool {
 public:
  explicit MaxPoolGrad(const tw::Node& n) : Pool(n, "max_pool"), grad_(n, PoolText(n), "max_pool_grad") {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *dy = frame.f->in[2], *dx = frame.f->out[0];
    const Window w = Of(x, dy);
    if (dx->count == 0) return;
    Images::Call call(images_, copy_, frame.f);
    const Place images = call.In(x), slopes = call.In(dy), to = call.Out(dx);
    const Temporary places(copy_.device(), dy->count * sizeof(int64_t));
    kernel_.RunTasks(frame.f, Size(dy->count), 2 * w.taps(), images, places.place(), places.place(), w, Size(1));
    grad_.RunTasks(frame.f, Size(dx->count), 2 * w.taps(), places.place(), slopes, to, w);
    call.Finish();
  }

 private:
  Kernel grad_;
};

struct AvgPool : Pool {
  explicit AvgPool(const tw::Node& n) : Pool(n, "avg_pool") {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const Window w = Of(x, y);
    Images::Call call(images_, copy_, frame.f);
    const Place from = call.In(x), to = call.Out(y);
    kernel_.RunTasks(frame.f, Size(y->count), 2 * w.taps(), from, to, w);
    call.Finish();
  }
};

struct AvgPoolGrad : Pool {
  explicit AvgPoolGrad(const tw::Node& n) : Pool(n, "avg_pool_grad") {}
  void operator()(tw::Frame frame) const {
    const tw_view *dy = frame.f->in[1], *dx = frame.f->out[0];
    const Window w = Of(dx, dy);
    Images::Call call(images_, copy_, frame.f);
    const Place from = call.In(dy), to = call.Out(dx);
    kernel_.RunTasks(frame.f, Size(dx->count), 4 * w.taps(), from, to, w);
    call.Finish();
  }
};

}  // namespace

void register_pool(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16"}) {
    p.kernel<MaxPool>("MaxPool(" + t + " -> " + t + ") @OPENCL");
    p.kernel<MaxPoolGrad>("MaxPoolGrad(" + t + ", " + t + ", " + t + " -> " + t + ") @OPENCL");
    p.kernel<AvgPool>("AvgPool(" + t + " -> " + t + ") @OPENCL");
    p.kernel<AvgPoolGrad>("AvgPoolGrad(int32, " + t + " -> " + t + ") @OPENCL; host orig_input_shape");
  }
}

}  // namespace thalweg::opencl
