// Fills a tensor with samples of several distributions, one for each element of a tensor of
// parameters. The samples of one distribution stand along the leading axes.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_PER_PARAMETER_H_
#define THALWEG_PLUGINS_CPU_KERNELS_PER_PARAMETER_H_

#include <algorithm>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/distributions.h"

namespace thalweg::cpu {

// Returns numbers of a distribution one by one. Each group of them is used from its end, as TensorFlow
// does for samples that take a varying number of random numbers.
template <class D>
class LastFirst {
 public:
  typename D::Value operator()(Philox& stream) {
    if (left_ == 0) {
      D{}(stream, group_);
      left_ = D::kGroup;
    }
    return group_[--left_];
  }

 private:
  typename D::Value group_[D::kGroup];
  int64_t left_ = 0;
};

// Sets every element of `output`. Sampler(double) computes what all samples of one parameter share;
// its operator()(stream) returns one sample, which `to` converts. The streams of samples are 256
// blocks apart; samples of one parameter follow each other.
template <class Sampler, class T, class U, class To>
void FillPerParameter(tw::Frame frame, const Philox& start, const tw::In<T>& parameters, const tw::Out<U>& output, To&& to) {
  const int64_t count = int64_t(parameters.size()), size = int64_t(output.size());
  if (size == 0) return;
  if (count == 0 || size % count != 0)
    throw tw::Error{TW_INTERNAL, "the output " + DimsText(output.v()) + " does not hold samples for each of " + DimsText(parameters.v)};
  const int64_t samples = size / count;
  ParallelFor(frame.f, size, Sampler::kCost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t parameter = i / samples;
      const Sampler sampler(static_cast<double>(parameters[size_t(parameter)]));
      for (const int64_t stop = std::min(end, (parameter + 1) * samples); i < stop; ++i) {
        Philox stream = start.After(uint64_t(i) * kBlocksPerElement);
        output[size_t(i % samples * count + parameter)] = to(sampler(stream));
      }
    }
  });
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_PER_PARAMETER_H_
