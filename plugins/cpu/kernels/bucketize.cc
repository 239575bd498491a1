// Bucketize: the number of boundaries, in rising order, that are not above an element. Integers are
// compared exactly. NaN is above all boundaries.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The boundaries are rounded to float, as graph files store them, so a graph in memory and its file
// behave alike.
std::vector<double> Boundaries(const tw::Node& n) {
  const tw_attr& list = n.at("boundaries");
  auto* first = static_cast<const double*>(list.data);
  std::vector<double> boundaries;
  for (uint32_t i = 0; i < list.count; ++i) boundaries.push_back(float(first[i]));
  return boundaries;
}

// For an integer x, x >= boundary means x >= the boundary rounded up. A boundary outside the type's
// range is below or above all its numbers.
template <class T>
bool Reaches(T x, double boundary) {
  if constexpr (std::is_integral_v<T>) {
    const double least = std::ceil(boundary), end = std::ldexp(1., int(sizeof(T)) * 8 - 1);
    return least < end && (least < -end || x >= T(least));
  } else {
    return !(double(x) < boundary);
  }
}

template <class T>
class Bucketize {
 public:
  explicit Bucketize(const tw::Node& n) : boundaries_(Boundaries(n)) {}
  void operator()(tw::Frame f, tw::In<T> input, tw::Out<int32_t> output) const {
    ParallelFor(f.f, int64_t(input.size()), 20, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T x = input[uint64_t(i)];
        auto reached = [x](double boundary) { return Reaches(x, boundary); };
        output[uint64_t(i)] = int32_t(std::partition_point(boundaries_.begin(), boundaries_.end(), reached) - boundaries_.begin());
      }
    });
  }

 private:
  std::vector<double> boundaries_;
};

}  // namespace

void register_bucketize(tw::Plugin& p) {
  p.kernel<Bucketize<int32_t>, Bucketize<int64_t>, Bucketize<float>, Bucketize<double>>("Bucketize @CPU");
}

}  // namespace thalweg::cpu
