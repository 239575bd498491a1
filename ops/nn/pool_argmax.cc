// MaxPoolWithArgmax returns the largest element of each window and its place; its backward ops move
// gradients by these places.
#include "ops/common/types.h"
#include "ops/common/window.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

Dims Pooled(const tw::Shape& s, const MaybeDims& images) {
  const Windows windows(s);
  const Dims ksize = s.ints("ksize");
  const std::string is = "'ksize' is " + Text(ksize);
  if (ksize.size() != 4) Fail(is + "; it needs four entries, one per axis");
  if (ksize[0] != 1 || ksize[3] != 1) Fail(is + "; the entries for batch and channels must be 1");
  Dims out = images.value_or(Dims(4, -1));
  for (size_t k = 0; k < 2; ++k) {
    if (ksize[k + 1] < 1 || ksize[k + 1] > INT32_MAX) Fail(is + "; every entry must be at least 1 and fit in 31 bits");
    out[k + 1] = windows.OutSize(s, k, out[k + 1], ksize[k + 1]);
  }
  return out;
}

void Rule(const tw::Shape& s) {
  WantRank(s, 0, 4, "input");
  const Dims out = Pooled(s, In(s, 0));
  s.out(0, out);
  s.out(1, out);
}

// kAgain: the gradient has the shape of the images, and the result that of the pooled images.
template <bool kAgain>
void GradRule(const tw::Shape& s) {
  WantRank(s, 0, 4, "input");
  const MaybeDims images = kAgain ? Merge(s, In(s, 0), In(s, 1), "the shapes of 'input' and 'grad'") : In(s, 0);
  MaybeDims pooled = Merge(s, In(s, 2), Pooled(s, images), "the shape of 'argmax' and that of the pooled images");
  if (!kAgain) pooled = Merge(s, In(s, 1), pooled, "the shape of the gradient and that of the pooled images");
  Set(s, 0, kAgain ? pooled : images);
}

tw_edge Emit(const tw::Grad& g, const char* op, const std::vector<tw_edge>& in) {
  const WindowAttrs w(g);
  return g.op(
      op, in,
      {{"ksize", w.ksize}, {"strides", w.strides}, {"padding", w.padding}, {"include_batch_in_index", g.b("include_batch_in_index")}});
}
void Gradient(const tw::Grad& g) { g.dx(0, Emit(g, "MaxPoolGradWithArgmax", {g.x(0), g.dy(), g.y(1)})); }
void BackwardGradient(const tw::Grad& g) { g.dx(1, Emit(g, "MaxPoolGradGradWithArgmax", {g.x(0), g.dy(), g.x(2)})); }
void AgainGradient(const tw::Grad& g) { g.dx(1, Emit(g, "MaxPoolGradWithArgmax", {g.x(0), g.dy(), g.x(2)})); }

#define WINDOWS "ksize: list(int) >= 4; strides: list(int) >= 4; "
#define PADDING "padding: {\"SAME\", \"VALID\"}; include_batch_in_index: bool = false; "
#define PLACES "Targmax: " OPS_INDEX "; T: " OPS_REALS "; "

}  // namespace

void register_pool_argmax(tw::Plugin& p) {
  p.op<Gradient, Rule>("MaxPoolWithArgmax(input: T) -> (output: T, argmax: Targmax); " WINDOWS "Targmax: " OPS_INDEX " = int64; " PADDING
                       "T: " OPS_REALS "; ?data input; doc \"the largest element of each window, and its place in the image\"");
  p.op<BackwardGradient, GradRule<false>>(
      "MaxPoolGradWithArgmax(input: T, grad: T, argmax: Targmax) -> (output: T); " WINDOWS PADDING PLACES
      "shape_only input; doc \"gradient of MaxPoolWithArgmax: adds each number at its place in the "
      "images\"");
  p.op<AgainGradient, GradRule<true>>(
      "MaxPoolGradGradWithArgmax(input: T, grad: T, argmax: Targmax) -> (output: T); " WINDOWS PADDING PLACES
      "shape_only input; doc \"gradient of MaxPoolGradWithArgmax: picks the numbers at these places\"");
}

}  // namespace thalweg::ops
