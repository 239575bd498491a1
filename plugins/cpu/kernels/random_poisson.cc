// RandomPoissonV2, StatelessRandomPoisson: TensorFlow's samples for the same seeds. Rates below 10
// multiply uniform numbers (Knuth: "The art of computer programming", volume 2); others use
// transformed rejection (Hormann: "The transformed rejection method for generating Poisson random
// variables", 1993). All steps are in double.
#include <math.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/key_counter.h"
#include "kernels/per_parameter.h"
#include "kernels/random_stream.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The C library's lgamma stores the sign in a variable that all threads share.
double LogGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

class Poisson {
 public:
  static constexpr int64_t kCost = 400;

  explicit Poisson(double rate) : rate_(rate) {
    if (rate < 10) {
      least_product_ = std::exp(-rate);
      return;
    }
    log_rate_ = std::log(rate);
    b_ = 0.931 + 2.53 * std::sqrt(rate);
    a_ = -0.059 + 0.02483 * b_;
    inverse_acceptance_ = 1.1239 + 1.1328 / (b_ - 3.4);
  }

  double operator()(Philox& stream) const {
    if (!(rate_ >= 0)) return NAN;
    if (std::isinf(rate_)) return rate_;
    return rate_ < 10 ? Multiply(stream) : Reject(stream);
  }

 private:
  double Multiply(Philox& stream) const {
    LastFirst<Uniform<double>> uniform;
    double count = 0;
    for (double product = uniform(stream); product > least_product_; product *= uniform(stream)) ++count;
    return count;
  }

  double Reject(Philox& stream) const {
    LastFirst<Uniform<double>> uniform;
    while (true) {
      const double u = uniform(stream) - 0.5, v = uniform(stream), from_end = 0.5 - std::abs(u);
      const double k = std::floor((2 * a_ / from_end + b_) * u + rate_ + 0.43);
      if (from_end >= 0.07 && v <= 0.9277 - 3.6224 / (b_ - 2)) return k;
      if (k < 0 || (from_end < 0.013 && v > from_end)) continue;
      const double s = std::log(v * inverse_acceptance_ / (a_ / (from_end * from_end) + b_));
      if (s <= -rate_ + k * log_rate_ - LogGamma(k + 1)) return k;
    }
  }

  double rate_, least_product_ = 0, log_rate_ = 0, b_ = 0, a_ = 0, inverse_acceptance_ = 0;
};

// Counts beyond the range of an integer type become its largest number. No count is negative.
template <class U>
U Count(double count) {
  if constexpr (std::is_integral_v<U>) {
    if (std::isnan(count)) Invalid("a rate is negative or NaN, and has no samples of a whole type; rates must be 0 or more");
    return count >= double(std::numeric_limits<U>::max()) ? std::numeric_limits<U>::max() : U(count);
  } else {
    return U(count);
  }
}

template <class R, class U>
void Fill(tw::Frame frame, const Philox& start, const tw::In<R>& rate, const tw::Out<U>& output) {
  FillPerParameter<Poisson>(frame, start, rate, output, Count<U>);
}

template <class R, class U>
class RandomPoisson {
 public:
  explicit RandomPoisson(const tw::Node& n) : stream_(n) {}
  void operator()(tw::Frame frame, tw::In<tw::Any>, tw::In<R> rate, tw::Out<U> output) const {
    Fill(frame, stream_.Take(output.size() * kBlocksPerElement), rate, output);
  }

 private:
  RandomStream stream_;
};

template <class R, class U>
void BySeed(tw::Frame frame, tw::In<tw::Any>, tw::In<tw::Any> seed, tw::In<R> lam, tw::Out<U> output) {
  Fill(frame, StreamOf(seed), lam, output);
}

template <class U, class... R>
void RegisterResult(tw::Plugin& p) {
  p.kernel<RandomPoisson<R, U>...>("RandomPoissonV2 @CPU; nondeterministic");
  p.kernel<BySeed<R, U>...>("StatelessRandomPoisson @CPU");
}

template <class... U>
void Register(tw::Plugin& p) {
  (RegisterResult<U, half, float, double, int32_t, int64_t>(p), ...);
}

}  // namespace

void register_random_poisson(tw::Plugin& p) { Register<half, float, double, int32_t, int64_t>(p); }

}  // namespace thalweg::cpu
