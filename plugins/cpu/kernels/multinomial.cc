// Multinomial and StatelessMultinomial: draw classes by their logarithmic weights, equal to TensorFlow's draws for the same
// seeds. Running sums of the weights are kept in double. Each sample takes a random number of 53
// bits, row after row from one stream. Logits that are not finite have no weight.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/common/temp.h"
#include "kernels/distributions.h"
#include "kernels/key_counter.h"
#include "kernels/random_stream.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
bool IsFinite(T x) {
  if constexpr (kIsFloat<T>)
    return std::isfinite(double(x));
  else
    return true;
}

// Computes the running sums of the weights of one row, relative to the heaviest; the last sum is
// the total.
template <class T>
void RunningWeights(const T* logits, int64_t classes, double* sums) {
  double most = -HUGE_VAL, total = 0;
  for (int64_t c = 0; c < classes; ++c)
    if (IsFinite(logits[c])) most = std::max(most, double(logits[c]));
  for (int64_t c = 0; c < classes; ++c) {
    if (IsFinite(logits[c])) total += std::exp(double(logits[c]) - most);
    sums[c] = total;
  }
}

// The random bits of a call: the next part of a node's stream, or a stream that the inputs determine.
struct Source {
  const RandomStream* node;
  Philox own;
  Philox Take(uint64_t blocks) const { return node ? node->Take(blocks) : own; }
};

// Draws samples first, first + 1, ... of the stream; two samples share a block.
template <class Result>
[[gnu::noinline]] void Draw(const Philox& start, const double* sums, int64_t classes, int64_t first, int64_t samples, Result* to) {
  Philox stream = start.After(uint64_t(first / 2));
  Philox::Block bits = stream.Next();
  for (int64_t k = 0; k < samples; ++k) {
    const size_t half_block = size_t(first + k) % 2 * 2;
    if (k > 0 && half_block == 0) bits = stream.Next();
    const double place = ToDouble(bits[half_block], bits[half_block + 1]) * sums[classes - 1];
    to[k] = Result(std::upper_bound(sums, sums + classes, place) - sums);
  }
}

void CheckShapes(const tw_view* logits, const tw_view* num_samples) {
  if (logits->rank != 2 || num_samples->count != 1)
    throw tw::Error{TW_INTERNAL,
                    "logits " + DimsText(logits) + " must be [batch, classes] and num_samples " + DimsText(num_samples) + " a scalar"};
}

template <class T>
void CheckWeights(const tw::In<T>& logits) {
  const int64_t classes = logits.dim(1);
  for (int64_t row = 0; row < logits.dim(0); ++row)
    if (std::none_of(logits.data() + row * classes, logits.data() + (row + 1) * classes, IsFinite<T>))
      Invalid("row " + tw::text(row) + " of logits has no finite number, so no class can be drawn");
}

// The draws use at most as many blocks of the source as they take. `output` is of int32 or int64.
template <class T>
[[gnu::noinline]] void Draws(tw::Frame frame, tw::In<T> logits, tw::In<int32_t> num_samples, tw::Out<tw::Any> output,
                             const Source& source) {
  CheckShapes(logits.v, num_samples.v);
  const int64_t batch = logits.dim(0), classes = logits.dim(1), samples = output.dim(1);
  if (output.size() == 0) return;
  if (classes == 0) Invalid("logits " + DimsText(logits.v) + " have no classes to draw from");
  CheckWeights(logits);
  // Reserves the same blocks as TensorFlow: samples rounded up to whole blocks, two numbers each,
  // 256 times.
  const Philox start = source.Take(uint64_t(batch) * uint64_t((samples + 3) / 4 * 4) * 2 * kBlocksPerElement);
  const bool narrow = output.v()->dtype == TW_INT32;
  const int64_t pieces = std::min<int64_t>(batch, 64);
  const TempArray<double> room(frame, size_t(pieces * classes));
  ParallelFor(frame.f, pieces, Cost(batch / pieces, classes + 2 * samples, 20), [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      double* sums = room.data() + piece * classes;
      for (int64_t row = piece * batch / pieces; row < (piece + 1) * batch / pieces; ++row) {
        const int64_t first = row * samples;
        RunningWeights(logits.data() + row * classes, classes, sums);
        if (narrow)
          Draw(start, sums, classes, first, samples, reinterpret_cast<int32_t*>(output.data()) + first);
        else
          Draw(start, sums, classes, first, samples, reinterpret_cast<int64_t*>(output.data()) + first);
      }
    }
  });
}

template <class T, class Result>
class Multinomial {
 public:
  explicit Multinomial(const tw::Node& n) : stream_(n) {}
  void operator()(tw::Frame f, tw::In<T> logits, tw::In<int32_t> num_samples, tw::Out<Result> output) const {
    Draws<T>(f, logits, num_samples, {output.f, output.o}, {&stream_, Philox(0, 0)});
  }

 private:
  RandomStream stream_;
};

[[gnu::noinline]] Source FromSeed(const tw::In<tw::Any>& seed) { return {nullptr, StreamOf(seed)}; }

template <class T, class Result>
void Stateless(tw::Frame f, tw::In<T> logits, tw::In<int32_t> num_samples, tw::In<tw::Any> seed, tw::Out<Result> output) {
  Draws<T>(f, logits, num_samples, {output.f, output.o}, FromSeed(seed));
}

template <class... T>
void Register(tw::Plugin& p) {
  p.kernel<Multinomial<T, int32_t>...>("Multinomial @CPU; nondeterministic");
  p.kernel<Multinomial<T, int64_t>...>("Multinomial @CPU; nondeterministic");
  p.kernel<Stateless<T, int32_t>...>("StatelessMultinomial @CPU");
  p.kernel<Stateless<T, int64_t>...>("StatelessMultinomial @CPU");
}

}  // namespace

void register_multinomial(tw::Plugin& p) {
  Register<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p);
}

}  // namespace thalweg::cpu
