// RandomUniform, RandomStandardNormal, TruncatedNormal, RandomUniformInt: TensorFlow's streams for
// the same seeds. Every execution reserves 256 blocks for each element of its output, however many
// it uses.
#include "kernels/common/element.h"
#include "kernels/distributions.h"
#include "kernels/random_stream.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class D>
void Fill(const tw::Frame& frame, const RandomStream& stream, const D& distribution, typename D::Value* y, uint64_t size) {
  FillRandom(frame.f, stream.Take(size * kBlocksPerElement), distribution, y, int64_t(size));
}

template <class D>
class Random {
 public:
  explicit Random(const tw::Node& n) : stream_(n) {}
  void operator()(tw::Frame frame, tw::In<tw::Any>, tw::Out<typename D::Value> output) const {
    Fill(frame, stream_, D{}, output.data(), output.size());
  }

 private:
  RandomStream stream_;
};

template <class T>
class RandomInt {
 public:
  explicit RandomInt(const tw::Node& n) : stream_(n) {}
  void operator()(tw::Frame frame, tw::In<tw::Any>, tw::In<T> minval, tw::In<T> maxval, tw::Out<T> output) const {
    if (minval.size() != 1 || maxval.size() != 1)
      throw tw::Error{TW_INTERNAL, "minval " + DimsText(minval.v) + " and maxval " + DimsText(maxval.v) + " must be scalars"};
    const T low = minval[0], end = maxval[0];
    // The shape rule knows the bounds only if they are constants.
    if (low >= end)
      Invalid("'minval' is " + tw::text(int64_t(low)) + " and 'maxval' " + tw::text(int64_t(end)) + "; minval must be below maxval");
    UniformInt<T> d;
    d.low = low;
    d.range = typename UniformInt<T>::Unsigned(end) - typename UniformInt<T>::Unsigned(low);
    Fill(frame, stream_, d, output.data(), output.size());
  }

 private:
  RandomStream stream_;
};

// Registers both types of the shape input, whose values have been used already, to allocate the
// output.
template <class K>
void Register(tw::Plugin& p, const std::string& op, const std::string& more_inputs, const std::string& type) {
  for (const char* shape : {"int32", "int64"}) p.kernel<K>(op + "(" + shape + more_inputs + " -> " + type + ") @CPU; nondeterministic");
}

template <template <class> class D>
void RegisterFloats(tw::Plugin& p, const std::string& op) {
  Register<Random<D<float>>>(p, op, "", "float");
  Register<Random<D<double>>>(p, op, "", "double");
  Register<Random<D<half>>>(p, op, "", "half");
  Register<Random<D<bfloat16>>>(p, op, "", "bfloat16");
}

}  // namespace

void register_random(tw::Plugin& p) {
  RegisterFloats<Uniform>(p, "RandomUniform");
  RegisterFloats<Normal>(p, "RandomStandardNormal");
  RegisterFloats<TruncatedNormal>(p, "TruncatedNormal");
  Register<RandomInt<int32_t>>(p, "RandomUniformInt", ", int32, int32", "int32");
  Register<RandomInt<int64_t>>(p, "RandomUniformInt", ", int64, int64", "int64");
}

}  // namespace thalweg::cpu
