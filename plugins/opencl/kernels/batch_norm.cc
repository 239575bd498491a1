// FusedBatchNorm, V2, V3 and their gradients, with channels last or first: reductions over all axes
// except the channels, and element-wise steps between them. The variance is the mean square after
// subtraction of the mean.
#include <cstdio>
#include <numeric>
#include <optional>

#include "kernels/copy.h"
#include "kernels/elementwise.h"
#include "kernels/reduce.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

constexpr uint32_t kFloat = TW_FLOAT;

std::string Literal(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9ef", v);
  return text;
}

// A tensor seen as [outer, channels, inner].
struct Shape {
  Dims dims;
  Size per_channel() const { return dims[0] * dims[2]; }
  Operand All(Place at) const { return {at, DenseSteps(dims)}; }
  Operand PerChannel(Place at) const { return {at, {0, 1, 0}}; }
};

// Calls the device's vendor library, if it has one that can do this. The library uses 1 /
// sqrt(variance + epsilon) in place of the variance.
template <class D>
constexpr bool HasLibrary() {
  return requires(D& d) { d.dnn(); };
}
template <class D, class... Args>
bool NormalisesBy(D& device, const Args&... args) {
  if constexpr (HasLibrary<D>())
    return NormalisesByLibrary(device, args...);
  else
    return false;
}
template <class D, class... Args>
bool GradientsBy(D& device, const Args&... args) {
  if constexpr (HasLibrary<D>())
    return NormGradientsByLibrary(device, args...);
  else
    return false;
}

class BatchNorm {
 public:
  explicit BatchNorm(const tw::Node& n)
      : first_(n.s("data_format")[1] == 'C'),
        training_(n.b("is_training")),
        least_(float(n.f("epsilon"))),
        epsilon_("+ " + Literal(n.f("epsilon"))),
        type_(n.type_in(0)) {}

 protected:
  // Returns the dims as [n, channels, rest], in the node's own order.
  Dims Axes(const tw_view* v) const {
    const Size channels = v->dims[first_ ? 1 : v->rank - 1];
    return {v->dims[0], channels, Size(v->count) / std::max<Size>(1, v->dims[0] * channels)};
  }
  Shape ShapeOf(const tw_view* v) const {
    if (v->rank < 2) Invalid("the image " + tw::text(v->dims, v->rank) + " must have rank 4 or 5");
    const int32_t axis = first_ ? 1 : v->rank - 1;
    const auto product = [&](int32_t begin, int32_t end) {
      return std::accumulate(v->dims + begin, v->dims + end, Size(1), std::multiplies<>());
    };
    return {{product(0, axis), v->dims[axis], product(axis + 1, v->rank)}};
  }
  static void CheckVector(const tw_view* v, const Shape& s, const char* name) {
    if (v->rank != 1 || v->dims[0] != s.dims[1])
      Invalid(std::string(name) + " " + tw::text(v->dims, v->rank) + " must have one entry for each of the " + tw::text(s.dims[1]) +
              " channels");
  }

  bool first_, training_;
  float least_;  // epsilon
  std::string epsilon_;
  uint32_t type_;
};

std::vector<bool> ButChannels() { return {true, false, true}; }

class Forward : BatchNorm {
 public:
  explicit Forward(const tw::Node& n)
      : BatchNorm(n),
        factor_(n.find("exponential_avg_factor") ? n.f("exponential_avg_factor") : 1),
        copy_(n, kFloat),
        mean_(n, kMean, n.type_in(0), kFloat),
        mean_square_(n, kMean, kFloat, kFloat),
        square_(n, {n.type_in(0), kFloat}, {kFloat}, "", "y0 = (x0 - x1) * (x0 - x1);"),
        normalise_(n, {n.type_in(0), kFloat, kFloat, kFloat, kFloat}, {n.type_in(0)}, "",
                   "y0 = (x0 - x3) * (x1 / sqrt(x4 " + epsilon_ + ")) + x2;"),
        mix_(n, {kFloat, kFloat, kFloat}, {kFloat}, "",
             factor_ == 1 ? "y0 = x0 * x2;" : "y0 = " + Literal(1 - factor_) + " * x1 + " + Literal(factor_) + " * (x0 * x2);") {
    if constexpr (HasLibrary<Device>())
      variance_.emplace(n, std::vector<uint32_t>{kFloat, kFloat}, std::vector<uint32_t>{kFloat}, "",
                        "y0 = fmax(1 / (x0 * x0) - x1, 0.0f);");
  }

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const Shape s = ShapeOf(f->in[0]);
    const char* names[] = {"", "scale", "offset", "mean", "variance"};
    for (uint32_t k = 1; k < (!training_ || factor_ != 1 ? 5u : 3u); ++k) CheckVector(f->in[k], s, names[k]);
    const Size channels = s.dims[1];
    if (training_ && f->in[0]->count == 0) return Empty(f, channels);
    const Place x = At(f->in[0]), mean = At(f->out[3]), variance = At(f->out[4]);
    const bool done = training_ && ByLibrary(f, x, mean, variance);
    if (done) {
      // The library computed everything except the running statistics.
    } else if (training_) {
      mean_.Run(f, s.dims, ButChannels(), x, mean);
      const Temporary squares(copy_.device(), f->in[0]->count * sizeof(float));
      square_.Run(f, s.dims, {s.All(x), s.PerChannel(mean)}, {squares.place()});
      mean_square_.Run(f, s.dims, ButChannels(), squares.place(), variance);
    } else {
      copy_.Dense(f, channels, At(f->in[3]), mean);
      copy_.Dense(f, channels, At(f->in[4]), variance);
    }
    if (!done)
      normalise_.Run(f, s.dims,
                     {s.All(x), s.PerChannel(At(f->in[1])), s.PerChannel(At(f->in[2])), s.PerChannel(mean), s.PerChannel(variance)},
                     {At(f->out[0])});
    Running(f, s, 1, mean, 3);
    Running(f, s, 2, variance, 4);
  }

 private:
  bool ByLibrary(const tw_frame* f, const Place& x, const Place& mean, const Place& variance) const {
    if (!variance_) return false;
    const Dims dims = Axes(f->in[0]);
    const Temporary inverse(copy_.device(), uint64_t(dims[1]) * sizeof(float)), least(copy_.device(), std::vector<float>{least_});
    if (!NormalisesBy(copy_.device(), f, type_, dims, first_, least_, x, At(f->in[1]), At(f->in[2]), mean, inverse.place(), At(f->out[0])))
      return false;
    variance_->Run(f, {dims[1]}, {{inverse.place(), {1}}, {least.place(), {0}}}, {variance});
    return true;
  }
  // Updates the running statistics with those of this batch, the variance unbiased.
  void Running(const tw_frame* f, const Shape& s, uint32_t out, Place used, uint32_t old) const {
    const Size channels = s.dims[1], count = s.per_channel();
    if (!training_) return copy_.Dense(f, channels, used, At(f->out[out]));
    const double unbias = out == 2 ? double(count) / double(std::max<Size>(count - 1, 1)) : 1;
    const Temporary by(copy_.device(), std::vector<float>{float(unbias)});
    const Place before = factor_ == 1 ? used : At(f->in[old]);
    mix_.Run(f, {channels}, {{used, {1}}, {before, {1}}, {by.place(), {0}}}, {At(f->out[out])});
  }
  // An empty batch has no mean and no variance: they are NaN.
  void Empty(const tw_frame* f, Size channels) const {
    const Temporary nan(copy_.device(), std::vector<float>{std::numeric_limits<float>::quiet_NaN()});
    for (uint32_t k = 1; k < 3; ++k) copy_.Fill(f, channels, nan.place(), At(f->out[k]));
    for (uint32_t k = 3; k < 5; ++k) copy_.Zero(f, channels, At(f->out[k]));
  }

  double factor_;
  Copy copy_;
  Reduce mean_, mean_square_;
  Elementwise square_, normalise_, mix_;
  std::optional<Elementwise> variance_;  // from the library's 1 / sqrt(variance + epsilon)
};

class Backward : BatchNorm {
 public:
  explicit Backward(const tw::Node& n)
      : BatchNorm(n),
        copy_(n, kFloat),
        sum_(n, kSum, n.type_in(0), kFloat),
        sum_products_(n, kSum, kFloat, kFloat),
        products_(n, {n.type_in(0), n.type_in(0), kFloat}, {kFloat}, "", "y0 = x0 * (x1 - x2);"),
        scale_(n, {kFloat, kFloat}, {kFloat}, "", "y0 = x0 / sqrt(x1 " + epsilon_ + ");"),
        // Inputs: dy, x, scale, mean, variance, sum(dy), sum(dy (x - mean)), 1 / count.
        slope_(n, {n.type_in(0), n.type_in(0), kFloat, kFloat, kFloat, kFloat, kFloat, kFloat}, {n.type_in(0)}, "",
               training_ ? "y0 = x2 / sqrt(x4 " + epsilon_ + ") * (x0 - x5 * x7 - (x1 - x3) * (x6 * x7 / (x4 " + epsilon_ + ")));"
                         : "y0 = x0 * (x2 / sqrt(x4 " + epsilon_ + "));") {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    if (DimsOf(f->in[0]) != DimsOf(f->in[1])) Invalid("y_backprop and x must have the same shape");
    const Shape s = ShapeOf(f->in[1]);
    CheckVector(f->in[2], s, "scale");
    CheckVector(f->in[3], s, "reserve_space_1");
    CheckVector(f->in[4], s, "reserve_space_2");
    const Size channels = s.dims[1];
    const Place dy = At(f->in[0]), x = At(f->in[1]), scale = At(f->in[2]), mean = At(f->in[3]), variance = At(f->in[4]);
    if (f->in[1]->count == 0) {
      for (uint32_t k = 1; k < 3; ++k) copy_.Zero(f, channels, At(f->out[k]));
      return;
    }
    if (training_ && ByLibrary(f, dy, x, scale, mean, variance)) return;
    const Place sum = At(f->out[2]);
    sum_.Run(f, s.dims, ButChannels(), dy, sum);
    const Temporary products(copy_.device(), f->in[0]->count * sizeof(float)), product(copy_.device(), uint64_t(channels) * sizeof(float)),
        share(copy_.device(), std::vector<float>{float(1.0 / double(s.per_channel()))});
    products_.Run(f, s.dims, {s.All(dy), s.All(x), s.PerChannel(mean)}, {products.place()});
    sum_products_.Run(f, s.dims, ButChannels(), products.place(), product.place());
    scale_.Run(f, {channels}, {{product.place(), {1}}, {variance, {1}}}, {At(f->out[1])});
    slope_.Run(f, s.dims,
               {s.All(dy),
                s.All(x),
                s.PerChannel(scale),
                s.PerChannel(mean),
                s.PerChannel(variance),
                s.PerChannel(sum),
                s.PerChannel(product.place()),
                {share.place(), {0, 0, 0}}},
               {At(f->out[0])});
  }

 private:
  bool ByLibrary(const tw_frame* f, const Place& dy, const Place& x, const Place& scale, const Place& mean, const Place& variance) const {
    if (!HasLibrary<Device>()) return false;
    const Dims dims = Axes(f->in[1]);
    const Temporary one(copy_.device(), std::vector<float>{1}), inverse(copy_.device(), uint64_t(dims[1]) * sizeof(float));
    scale_.Run(f, {dims[1]}, {{one.place(), {0}}, {variance, {1}}}, {inverse.place()});
    return GradientsBy(copy_.device(), f, type_, dims, first_, x, mean, inverse.place(), dy, scale, At(f->out[1]), At(f->out[2]),
                       At(f->out[0]));
  }

  Copy copy_;
  Reduce sum_, sum_products_;
  Elementwise products_, scale_, slope_;
};

}  // namespace

void register_batch_norm(tw::Plugin& p) {
  p.kernel<Forward>("FusedBatchNorm(float, float, float, float, float) @OPENCL");
  p.kernel<Backward>("FusedBatchNormGrad(float, float, float, float, float) @OPENCL");
  for (const std::string t : {"float", "half", "bfloat16"}) {
    p.kernel<Forward>("FusedBatchNormV2(" + t + ", float, float, float, float) @OPENCL");
    p.kernel<Forward>("FusedBatchNormV3(" + t + ", float, float, float, float) @OPENCL");
    p.kernel<Backward>("FusedBatchNormGradV2(" + t + ", " + t + ", float, float, float) @OPENCL");
    p.kernel<Backward>("FusedBatchNormGradV3(" + t + ", " + t + ", float, float, float, float) @OPENCL");
  }
}

}  // namespace thalweg::opencl
