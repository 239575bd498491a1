// StatelessRandomUniformV2, StatelessRandomNormalV2, StatelessTruncatedNormalV2: the stream starts
// at the given key and counter. The same inputs make the same numbers, which are TensorFlow's.
#include "kernels/common/element.h"
#include "kernels/distributions.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The values of the op's input `alg`. If the runtime may choose (kAny), it takes Philox.
enum Algorithm { kPhilox = 1, kThreefry = 2, kAny = 3 };

Philox StreamOf(const tw::In<uint64_t>& key, const tw::In<uint64_t>& counter, const tw::In<int32_t>& alg) {
  if (key.rank() != 1 || key.size() != 1) throw tw::Error{TW_INTERNAL, "key " + DimsText(key.v) + " must be a vector of one number"};
  if (counter.rank() != 1 || counter.size() < 2)
    throw tw::Error{TW_INTERNAL, "counter " + DimsText(counter.v) + " must be a vector of two numbers at least"};
  if (alg.size() != 1) throw tw::Error{TW_INTERNAL, "alg " + DimsText(alg.v) + " must be a scalar"};
  if (alg[0] == kThreefry) throw tw::Error{TW_UNIMPLEMENTED, "alg 2 (Threefry) is not offered; use 1 (Philox) or 3 (any)"};
  if (alg[0] != kPhilox && alg[0] != kAny) Invalid("alg is " + tw::text(alg[0]) + "; known: 1 (Philox), 3 (any)");
  return Philox(key[0], counter[1]).After(counter[0]);
}

template <class D>
void Random(tw::Frame frame, tw::In<tw::Any>, tw::In<uint64_t> key, tw::In<uint64_t> counter, tw::In<int32_t> alg,
            tw::Out<typename D::Value> output) {
  FillRandom(frame.f, StreamOf(key, counter, alg), D{}, output.data(), int64_t(output.size()));
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
}

}  // namespace thalweg::cpu
