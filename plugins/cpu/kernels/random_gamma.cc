// RandomGamma, StatelessRandomGammaV2, StatelessRandomGammaV3: TensorFlow's samples for the same
// seeds, computed in double (Marsaglia, Tsang: "A simple method for generating gamma variables", ACM
// TOMS 26, 2000). RandomGammaGrad: Eigen's derivative of a sample.
#include <cmath>

#include <unsupported/Eigen/SpecialFunctions>

#include "kernels/key_counter.h"
#include "kernels/map.h"
#include "kernels/per_parameter.h"
#include "kernels/random_stream.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

// An alpha below 1 is sampled as alpha + 1; the sample is then scaled by a uniform number to the
// power 1 / alpha.
class Gamma {
 public:
  static constexpr int64_t kCost = 400;

  explicit Gamma(double alpha)
      : alpha_(alpha), below_1_(alpha < 1), d_(alpha + (below_1_ ? 2.0 / 3 : -1.0 / 3)), c_(1.0 / 3 / std::sqrt(d_)) {}

  double operator()(Philox& stream) const {
    // TensorFlow's loop never ends for some alphas below 0.
    if (!(alpha_ >= 0)) return NAN;
    LastFirst<Uniform<double>> uniform;
    if (alpha_ == 1) return -std::log1p(-uniform(stream));
    LastFirst<Normal<double>> normal;
    while (true) {
      const double x = normal(stream);
      double v = 1 + c_ * x;
      if (v <= 0) continue;
      v = v * v * v;
      if (!Accepts(uniform(stream), x, v)) continue;
      return below_1_ ? d_ * v * std::pow(uniform(stream), 1 / alpha_) : d_ * v;
    }
  }

 private:
  // The first condition implies the second. It spares two logarithms for most samples.
  bool Accepts(double u, double x, double v) const {
    return u < 1 - 0.0331 * (x * x) * (x * x) || std::log(u) < 0.5 * x * x + d_ * (1 - v + std::log(v));
  }

  double alpha_;
  bool below_1_;
  double d_, c_;
};

template <class T>
void Fill(tw::Frame frame, const Philox& start, const tw::In<T>& alpha, const tw::Out<T>& output) {
  FillPerParameter<Gamma>(frame, start, alpha, output, [](double sample) { return T(sample); });
}

template <class T>
class RandomGamma {
 public:
  explicit RandomGamma(const tw::Node& n) : stream_(n) {}
  void operator()(tw::Frame frame, tw::In<tw::Any>, tw::In<T> alpha, tw::Out<T> output) const {
    Fill(frame, stream_.Take(output.size() * kBlocksPerElement), alpha, output);
  }

 private:
  RandomStream stream_;
};

template <class T>
void BySeed(tw::Frame frame, tw::In<tw::Any>, tw::In<tw::Any> seed, tw::In<T> alpha, tw::Out<T> output) {
  Fill(frame, StreamOf(seed), alpha, output);
}

template <class T>
void ByKey(tw::Frame frame, tw::In<tw::Any>, tw::In<uint64_t> key, tw::In<uint64_t> counter, tw::In<int32_t> alg, tw::In<T> alpha,
           tw::Out<T> output) {
  Fill(frame, StreamOf(key, counter, alg), alpha, output);
}

template <class T>
T Slope(T alpha, T sample) {
  return T(Eigen::numext::gamma_sample_der_alpha(double(alpha), double(sample)));
}

}  // namespace

void register_random_gamma(tw::Plugin& p) {
  p.kernel<RandomGamma<half>, RandomGamma<float>, RandomGamma<double>>("RandomGamma @CPU; nondeterministic");
  p.kernel<BySeed<half>, BySeed<float>, BySeed<double>>("StatelessRandomGammaV2 @CPU");
  p.kernel<ByKey<half>, ByKey<float>, ByKey<double>>("StatelessRandomGammaV3 @CPU");
  constexpr uint32_t kSlopeCost = 2000;
  AddKernel<RunBinary>(p, "RandomGammaGrad(float, float -> float) @CPU; inplace output=alpha; inplace output=sample",
                       kZip<Slope<float>, float, float, kSlopeCost>);
  AddKernel<RunBinary>(p, "RandomGammaGrad(double, double -> double) @CPU; inplace output=alpha; inplace output=sample",
                       kZip<Slope<double>, double, double, kSlopeCost>);
}

}  // namespace thalweg::cpu
