// FusedBatchNorm and its gradients, channels last or first. Strips of a few rows are summed in
// float, and the sums of strips in double over chunks. The number of chunks depends only on shapes,
// so results have the same bits on any number of threads. The variance is the mean square of the
// differences from the mean. Half and bfloat16 images are widened strip by strip.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/batch_norm.h"
#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"
#include "kernels/slots.h"
#include "kernels/widen.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kColumns = 64;  // columns of a strip; vectors of that many entries stay in registers or in the first-level cache
constexpr int64_t kRows = 32;
constexpr int64_t kStrip = kColumns * kRows;

// A tensor as [outer, channels, inner]. With channels last, inner is 1.
struct Layout {
  int64_t outer = 1, channels = 0, inner = 1;
  int64_t per_channel() const { return outer * inner; }
  // The channels of the block that one task takes, and the number of blocks.
  int64_t block() const { return inner == 1 ? kColumns : 1; }
  int64_t blocks() const { return (channels + block() - 1) / block(); }
};

struct Settings {
  float epsilon, factor;
  bool channels_first, training;
  explicit Settings(const tw::Attrs& n)
      : epsilon(float(n.f("epsilon"))),
        factor(n.find("exponential_avg_factor") ? float(n.f("exponential_avg_factor")) : 1),
        channels_first(n.s("data_format")[1] == 'C'),
        training(n.b("is_training")) {}

  Layout LayoutOf(const tw_view* v) const {
    if (v->rank < 2) Invalid("the image " + DimsText(v) + " must have rank 4 or 5");
    const int32_t axis = channels_first ? 1 : v->rank - 1;
    return {Product(v->dims, 0, axis), v->dims[axis], Product(v->dims, axis + 1, v->rank)};
  }
};

struct Tables {
  const BatchNormTable* norm;
  const VectorTable* vector;
  explicit Tables(const tw_host* host) {
    const Isa isa = DetectIsa(host);
    norm = &TW_CPU_FOR_ISA(isa, BatchNorm);
    vector = &TW_CPU_FOR_ISA(isa, Vectors);
  }
};

// The bytes per channel of a call's vectors: ten of floats, and three of sums.
constexpr uint64_t kPerChannel = 10 * sizeof(float) + 3 * sizeof(double);

// Returns a vector input as floats.
template <class U>
std::vector<float> Floats(const tw::In<U>& v, int64_t channels, const char* name) {
  if (v.rank() != 1 || v.dim(0) != channels)
    Invalid(std::string(name) + " " + DimsText(v.v) + " must have one entry for each of the " + tw::text(channels) + " channels");
  return std::vector<float>(v.data(), v.data() + channels);
}

// A piece of the tensor, and the channels of its columns: from `channel` on, or one channel for all
// columns.
struct Strip {
  NormStrip shape;
  int64_t first, channel;
  bool one_channel;
  // Returns a vector's entries for the columns. buffer: room for kColumns entries.
  const float* Of(const std::vector<float>& vector, float* buffer) const {
    if (!one_channel) return vector.data() + channel;
    std::fill_n(buffer, shape.columns, vector[size_t(channel)]);
    return buffer;
  }
};

// Calls body(strip) for all strips of a block of channels in the outer range [begin, end).
template <class F>
void ForStrips(const Layout& l, int64_t begin, int64_t end, int64_t block, F&& body) {
  const int64_t channel = block * l.block();
  if (l.inner == 1) {
    const int64_t columns = std::min(kColumns, l.channels - channel);
    for (int64_t o = begin; o < end; o += kRows)
      body(Strip{{l.channels, std::min(kRows, end - o), columns}, o * l.channels + channel, channel, false});
    return;
  }
  for (int64_t o = begin; o < end; ++o) {
    const int64_t plane = (o * l.channels + channel) * l.inner, whole = l.inner / kColumns * kColumns;
    for (int64_t i = 0; i < whole; i += kStrip)
      body(Strip{{kColumns, std::min(kStrip, whole - i) / kColumns, kColumns}, plane + i, channel, true});
    if (whole < l.inner) body(Strip{{kColumns, 1, l.inner - whole}, plane + whole, channel, true});
  }
}

// Returns the elements of a strip as floats, in place or widened into `buffer`, and sets their
// step.
template <class T>
const float* Load(const VectorTable& v, const T* data, const Strip& s, NormStrip* shape, float* buffer) {
  if constexpr (kIsSmallFloat<T>) {
    shape->step = s.shape.columns;
    for (int64_t r = 0; r < s.shape.rows; ++r) Widen(v, data + s.first + r * s.shape.step, buffer + r * s.shape.columns, s.shape.columns);
    return buffer;
  } else {
    return data + s.first;
  }
}
// Target returns the destination of a strip's results before Store is called.
template <class T>
float* Target(T* data, const Strip& s, float* buffer) {
  if constexpr (kIsSmallFloat<T>)
    return buffer;
  else
    return data + s.first;
}
template <class T>
void Store(const VectorTable& v, const float* buffer, const Strip& s, T* data) {
  if constexpr (kIsSmallFloat<T>)
    for (int64_t r = 0; r < s.shape.rows; ++r) Narrow(v, buffer + r * s.shape.columns, data + s.first + r * s.shape.step, s.shape.columns);
}

// totals[c] = the sum over channel c of the values that add(strip, sums) adds to the sums of a
// strip's columns.
template <class F>
std::vector<double> Totals(const tw_frame* f, const Layout& l, F&& add) {
  const int64_t chunks =
      std::clamp<int64_t>(l.outer * l.inner * std::min(l.channels, l.block()) / kGrain, 1, std::min<int64_t>(l.outer, 64));
  const tw::Charge charge(f, uint64_t(chunks * l.channels) * sizeof(double));
  std::vector<double> partial(size_t(chunks * l.channels));
  ParallelFor(f, chunks * l.blocks(), Cost(l.outer / chunks, l.inner, l.block()), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t chunk = task / l.blocks(), block = task % l.blocks();
      ForStrips(l, chunk * l.outer / chunks, (chunk + 1) * l.outer / chunks, block, [&](const Strip& s) {
        float sums[kColumns] = {};
        add(s, sums);
        double* to = partial.data() + chunk * l.channels + s.channel;
        for (int64_t c = 0; c < s.shape.columns; ++c) to[s.one_channel ? 0 : c] += double(sums[c]);
      });
    }
  });
  for (int64_t chunk = 1; chunk < chunks; ++chunk)
    for (int64_t c = 0; c < l.channels; ++c) partial[size_t(c)] += partial[size_t(chunk * l.channels + c)];
  return {partial.begin(), partial.begin() + l.channels};
}

// Calls body(strip) for all strips, in parallel.
template <class F>
void ForAll(const tw_frame* f, const Layout& l, F&& body) {
  const int64_t together = l.inner == 1 ? kRows : 1, groups = (l.outer + together - 1) / together;
  ParallelFor(f, groups * l.blocks(), Cost(together, l.block(), l.inner, 2), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task / l.blocks() * together;
      ForStrips(l, first, std::min(first + together, l.outer), task % l.blocks(), body);
    }
  });
}

template <class T>
std::vector<double> SumOf(const tw_frame* f, const Tables& t, const Layout& l, const T* x) {
  return Totals(f, l, [&](const Strip& s, float* sums) {
    float wide[kStrip];
    NormStrip shape = s.shape;
    const float* from = Load(*t.vector, x, s, &shape, wide);
    t.norm->sum(shape, from, sums);
  });
}

struct Statistics {
  std::vector<float> mean, variance;  // the biased variance
};

template <class T>
Statistics StatisticsOf(const tw_frame* f, const Tables& t, const Layout& l, const T* x) {
  const double count = double(l.per_channel());
  const std::vector<double> sum = SumOf(f, t, l, x);
  Statistics r;
  for (double total : sum) r.mean.push_back(float(total / count));
  const std::vector<double> squares = Totals(f, l, [&](const Strip& s, float* sums) {
    float wide[kStrip], mean[kColumns];
    NormStrip shape = s.shape;
    const float* from = Load(*t.vector, x, s, &shape, wide);
    t.norm->squares(shape, from, s.Of(r.mean, mean), sums);
  });
  for (int64_t c = 0; c < l.channels; ++c) {
    const double rounding = sum[size_t(c)] / count - double(r.mean[size_t(c)]);  // the rounding error of the mean as a float
    r.variance.push_back(float(std::max(squares[size_t(c)] / count - rounding * rounding, 0.0)));
  }
  return r;
}

template <class T>
void Normalise(const tw_frame* f, const Tables& t, const Layout& l, const T* x, const std::vector<float>& mean,
               const std::vector<float>& scale, const std::vector<float>& offset, T* y) {
  ForAll(f, l, [&](const Strip& s) {
    float wide[kStrip], m[kColumns], a[kColumns], b[kColumns];
    NormStrip shape = s.shape;
    const float* from = Load(*t.vector, x, s, &shape, wide);
    float* to = Target(y, s, wide);
    t.norm->normalise(shape, from, s.Of(mean, m), s.Of(scale, a), s.Of(offset, b), to);
    Store(*t.vector, to, s, y);
  });
}

template <class U>
void Put(const std::vector<float>& from, const tw::Out<U>& to) {
  for (size_t c = 0; c < from.size(); ++c) to.data()[c] = U(from[c]);
}

template <class T, class U>
class BatchNormalisation {
 public:
  explicit BatchNormalisation(const tw::Node& n) : tables_(n.host()), settings_(n) {}

  void Run(const tw_frame* f, const tw::In<T>& x, const tw::In<U>& scale, const tw::In<U>& offset, const tw::In<U>& mean,
           const tw::In<U>& variance, const tw::Out<T>& y, const tw::Out<U>& batch_mean, const tw::Out<U>& batch_variance,
           const tw::Out<U>& used_mean, const tw::Out<U>& used_variance) const {
    const Layout l = settings_.LayoutOf(x.v);
    const tw::Charge charge(f, uint64_t(l.channels) * kPerChannel);
    std::vector<float> by = Floats(scale, l.channels, "scale");
    const std::vector<float> offsets = Floats(offset, l.channels, "offset");
    const bool given = !settings_.training || settings_.factor != 1;
    Statistics old;
    if (given) old = {Floats(mean, l.channels, "mean"), Floats(variance, l.channels, "variance")};
    if (settings_.training && x.size() == 0) return Empty(l, batch_mean, batch_variance, used_mean, used_variance);
    const Statistics used = settings_.training ? StatisticsOf(f, tables_, l, x.data()) : old;
    for (size_t c = 0; c < by.size(); ++c) by[c] /= std::sqrt(used.variance[c] + settings_.epsilon);
    if (x.size() > 0) Normalise(f, tables_, l, x.data(), used.mean, by, offsets, y.data());
    Put(used.mean, used_mean);
    Put(used.variance, used_variance);
    const Statistics out = settings_.training ? Mixed(used, old, l.per_channel()) : used;
    Put(out.mean, batch_mean);
    Put(out.variance, batch_variance);
  }

 private:
  // An empty batch has no mean and no variance.
  static void Empty(const Layout& l, const tw::Out<U>& batch_mean, const tw::Out<U>& batch_variance, const tw::Out<U>& used_mean,
                    const tw::Out<U>& used_variance) {
    const std::vector<float> nan(size_t(l.channels), std::numeric_limits<float>::quiet_NaN()), zero(size_t(l.channels), 0.f);
    Put(nan, batch_mean);
    Put(nan, batch_variance);
    Put(zero, used_mean);
    Put(zero, used_variance);
  }

  // Returns the running statistics after this batch, whose variance is made unbiased.
  Statistics Mixed(const Statistics& batch, const Statistics& old, int64_t count) const {
    Statistics out = batch;
    const float unbias = float(double(count) / double(std::max<int64_t>(count - 1, 1))), f = settings_.factor;
    for (size_t c = 0; c < out.mean.size(); ++c) {
      out.variance[c] *= unbias;
      if (f == 1) continue;
      out.mean[c] = (1 - f) * old.mean[c] + f * out.mean[c];
      out.variance[c] = (1 - f) * old.variance[c] + f * out.variance[c];
    }
    return out;
  }

  Tables tables_;
  Settings settings_;
};

template <class T, class U>
struct Forward : BatchNormalisation<T, U> {
  using BatchNormalisation<T, U>::BatchNormalisation;
  void operator()(tw::Frame frame, tw::In<T> x, tw::In<U> scale, tw::In<U> offset, tw::In<U> mean, tw::In<U> variance, tw::Out<T> y,
                  tw::Out<U> batch_mean, tw::Out<U> batch_variance, tw::Out<U> used_mean, tw::Out<U> used_variance) const {
    this->Run(frame.f, x, scale, offset, mean, variance, y, batch_mean, batch_variance, used_mean, used_variance);
  }
};
// The sixth result is empty.
template <class T, class U>
struct ForwardV3 : BatchNormalisation<T, U> {
  using BatchNormalisation<T, U>::BatchNormalisation;
  void operator()(tw::Frame frame, tw::In<T> x, tw::In<U> scale, tw::In<U> offset, tw::In<U> mean, tw::In<U> variance, tw::Out<T> y,
                  tw::Out<U> batch_mean, tw::Out<U> batch_variance, tw::Out<U> used_mean, tw::Out<U> used_variance, tw::Out<U>) const {
    this->Run(frame.f, x, scale, offset, mean, variance, y, batch_mean, batch_variance, used_mean, used_variance);
  }
};

template <class T>
class BatchNormGradient {
 public:
  explicit BatchNormGradient(const tw::Node& n) : tables_(n.host()), settings_(n) {}

  void Run(const tw_frame* f, const tw::In<T>& dy, const tw::In<T>& x, const tw::In<float>& scale, const tw::In<float>& mean,
           const tw::In<float>& variance, const tw::Out<T>& dx, const tw::Out<float>& dscale, const tw::Out<float>& doffset) const {
    if (!SameDims(dy.v, x.v)) Invalid("y_backprop " + DimsText(dy.v) + " and x " + DimsText(x.v) + " must have the same shape");
    const Layout l = settings_.LayoutOf(x.v);
    const tw::Charge charge(f, uint64_t(l.channels) * kPerChannel);
    const std::vector<float> means = Floats(mean, l.channels, "reserve_space_1"), spreads = Floats(variance, l.channels, "reserve_space_2");
    std::vector<float> by = Floats(scale, l.channels, "scale"), shift(by.size()), slope(by.size());
    if (x.size() == 0) {
      Put(shift, dscale);
      return Put(shift, doffset);
    }
    const std::vector<double> sum = SumOf(f, tables_, l, dy.data()), product = Products(f, l, dy.data(), x.data(), means);
    const double count = double(l.per_channel());
    for (size_t c = 0; c < by.size(); ++c) {
      const double rate = 1 / std::sqrt(double(spreads[c]) + double(settings_.epsilon));
      doffset.data()[c] = float(sum[c]);
      dscale.data()[c] = float(product[c] * rate);
      shift[c] = float(sum[c] / count);
      slope[c] = float(product[c] * rate * rate / count);
      by[c] = float(double(by[c]) * rate);
    }
    const std::vector<float> zero(by.size());
    if (settings_.training)
      Differentiate(f, l, dy.data(), x.data(), means, shift, slope, by, dx.data());
    else
      Normalise(f, tables_, l, dy.data(), zero, by, zero, dx.data());
  }

 private:
  std::vector<double> Products(const tw_frame* f, const Layout& l, const T* dy, const T* x, const std::vector<float>& mean) const {
    return Totals(f, l, [&](const Strip& s, float* sums) {
      float wide_dy[kStrip], wide_x[kStrip], m[kColumns];
      NormStrip shape = s.shape;
      const float* from_dy = Load(*tables_.vector, dy, s, &shape, wide_dy);
      const float* from_x = Load(*tables_.vector, x, s, &shape, wide_x);
      tables_.norm->products(shape, from_dy, from_x, s.Of(mean, m), sums);
    });
  }

  void Differentiate(const tw_frame* f, const Layout& l, const T* dy, const T* x, const std::vector<float>& mean,
                     const std::vector<float>& shift, const std::vector<float>& slope, const std::vector<float>& scale, T* dx) const {
    ForAll(f, l, [&](const Strip& s) {
      float wide_dy[kStrip], wide_x[kStrip], m[kColumns], a[kColumns], b[kColumns], by[kColumns];
      NormStrip shape = s.shape;
      const float* from_dy = Load(*tables_.vector, dy, s, &shape, wide_dy);
      const float* from_x = Load(*tables_.vector, x, s, &shape, wide_x);
      float* to = Target(dx, s, wide_x);
      tables_.norm->gradient(shape, from_dy, from_x, s.Of(mean, m), s.Of(shift, a), s.Of(slope, b), s.Of(scale, by), to);
      Store(*tables_.vector, to, s, dx);
    });
  }

  Tables tables_;
  Settings settings_;
};

// The last two results are empty.
template <class T>
struct Backward : BatchNormGradient<T> {
  using BatchNormGradient<T>::BatchNormGradient;
  void operator()(tw::Frame frame, tw::In<T> dy, tw::In<T> x, tw::In<float> scale, tw::In<float> mean, tw::In<float> variance,
                  tw::Out<T> dx, tw::Out<float> dscale, tw::Out<float> doffset, tw::Out<float>, tw::Out<float>) const {
    this->Run(frame.f, dy, x, scale, mean, variance, dx, dscale, doffset);
  }
};
template <class T>
struct BackwardV3 : BatchNormGradient<T> {
  using BatchNormGradient<T>::BatchNormGradient;
  void operator()(tw::Frame frame, tw::In<T> dy, tw::In<T> x, tw::In<float> scale, tw::In<float> mean, tw::In<float> variance,
                  tw::In<float>, tw::Out<T> dx, tw::Out<float> dscale, tw::Out<float> doffset, tw::Out<float>, tw::Out<float>) const {
    this->Run(frame.f, dy, x, scale, mean, variance, dx, dscale, doffset);
  }
};

}  // namespace

void register_fused_batch_norm(tw::Plugin& p) {
  p.kernel<Forward<float, float>>("FusedBatchNorm @CPU");
  p.kernel<Forward<float, float>, Forward<half, float>, Forward<bfloat16, float>>("FusedBatchNormV2 @CPU");
  p.kernel<ForwardV3<float, float>, ForwardV3<half, float>, ForwardV3<bfloat16, float>>("FusedBatchNormV3 @CPU");
  p.kernel<ForwardV3<float, bfloat16>, ForwardV3<half, bfloat16>, ForwardV3<bfloat16, bfloat16>>("FusedBatchNormV3 @CPU");
  p.kernel<Backward<float>>("FusedBatchNormGrad @CPU");
  p.kernel<Backward<float>, Backward<half>, Backward<bfloat16>>("FusedBatchNormGradV2 @CPU");
  p.kernel<BackwardV3<float>, BackwardV3<half>, BackwardV3<bfloat16>>("FusedBatchNormGradV3 @CPU");
}

}  // namespace thalweg::cpu
