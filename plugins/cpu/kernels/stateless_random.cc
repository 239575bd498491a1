// StatelessRandomUniformV2, StatelessRandomNormalV2, StatelessTruncatedNormalV2 and those of whole
// numbers: the stream starts at the given key and counter. The same inputs make the same numbers, which are TensorFlow's.
#include "kernels/common/element.h"
#include "kernels/distributions.h"
#include "kernels/key_counter.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class D>
void Random(tw::Frame frame, tw::In<tw::Any>, tw::In<uint64_t> key, tw::In<uint64_t> counter, tw::In<int32_t> alg,
            tw::Out<typename D::Value> output) {
  FillRandom(frame.f, StreamOf(key, counter, alg), D{}, output.data(), int64_t(output.size()));
}

// All numbers of a type.
template <class T>
struct FullInt : Plain<T> {
  static constexpr int64_t kCost = 16;
  void operator()(Philox& stream, T* y) const {
    const Philox::Block x = stream.Next();
    for (size_t i = 0; i < size_t(Plain<T>::kGroup); ++i) {
      if constexpr (sizeof(T) == 8)
        y[i] = T(x[2 * i] | (uint64_t{x[2 * i + 1]} << 32));
      else
        y[i] = T(x[i]);
    }
  }
};

template <class T>
void RandomInt(tw::Frame frame, tw::In<tw::Any>, tw::In<uint64_t> key, tw::In<uint64_t> counter, tw::In<int32_t> alg, tw::In<T> minval,
               tw::In<T> maxval, tw::Out<T> output) {
  if (minval.size() != 1 || maxval.size() != 1)
    throw tw::Error{TW_INTERNAL, "minval " + DimsText(minval.v) + " and maxval " + DimsText(maxval.v) + " must be scalars"};
  if (minval[0] >= maxval[0])
    Invalid("minval is " + std::to_string(minval[0]) + " and maxval " + std::to_string(maxval[0]) + "; minval must be below maxval");
  UniformInt<T> distribution{};
  using Unsigned = typename UniformInt<T>::Unsigned;
  distribution.low = minval[0];
  distribution.range = Unsigned(Unsigned(maxval[0]) - Unsigned(minval[0]));
  FillRandom(frame.f, StreamOf(key, counter, alg), distribution, output.data(), int64_t(output.size()));
}

template <class T>
void RegisterInt(tw::Plugin& p) {
  const std::string t = tw::dtype<T>;
  for (const char* shape : {"int32", "int64"}) {
    p.kernel<RandomInt<T>>("StatelessRandomUniformIntV2(" + std::string(shape) + ", uint64, uint64, int32, " + t + ", " + t + " -> " + t +
                           ") @CPU");
  }
}

// Registers both types of the shape input, whose values have been used already, to allocate the
// output.
template <class D>
void RegisterType(tw::Plugin& p, const std::string& op) {
  for (const char* shape : {"int32", "int64"})
    p.kernel<Random<D>>(op + "(" + shape + ", uint64, uint64, int32 -> " + tw::dtype<typename D::Value> + ") @CPU");
}

template <template <class> class D>
void Register(tw::Plugin& p, const std::string& op) {
  RegisterType<D<float>>(p, op);
  RegisterType<D<double>>(p, op);
  RegisterType<D<half>>(p, op);
  RegisterType<D<bfloat16>>(p, op);
}

}  // namespace

void register_stateless_random(tw::Plugin& p) {
  Register<Uniform>(p, "StatelessRandomUniformV2");
  Register<Normal>(p, "StatelessRandomNormalV2");
  Register<TruncatedNormal>(p, "StatelessTruncatedNormalV2");
  RegisterInt<int32_t>(p);
  RegisterInt<int64_t>(p);
  RegisterInt<uint32_t>(p);
  RegisterInt<uint64_t>(p);
  RegisterType<FullInt<int32_t>>(p, "StatelessRandomUniformFullIntV2");
  RegisterType<FullInt<int64_t>>(p, "StatelessRandomUniformFullIntV2");
  RegisterType<FullInt<uint32_t>>(p, "StatelessRandomUniformFullIntV2");
  RegisterType<FullInt<uint64_t>>(p, "StatelessRandomUniformFullIntV2");
}

}  // namespace thalweg::cpu
