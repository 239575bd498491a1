// NthElement: the element of each row that would be at a given position if the row were sorted. NaN
// counts as larger than all numbers.
#include <algorithm>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
bool Less(T a, T b) {
  const Wide<T> x(a), y(b);
  return x < y || (x == x && y != y);
}

template <class T>
class NthElement {
 public:
  explicit NthElement(const tw::Node& n) : reverse_(n.b("reverse")) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<int32_t> n, tw::Out<T> values) const {
    if (input.rank() < 1 || n.size() != 1)
      Invalid("input " + DimsText(input.v) + " must have rows and n " + DimsText(n.v) + " be a scalar");
    const int64_t row = input.dim(-1), place = n[0];
    if (place < 0 || place >= row)
      Invalid("n is " + tw::text(place) + "; the rows of input " + DimsText(input.v) + " have places in [0, " + tw::text(row) + ")");
    const int64_t at = reverse_ ? row - 1 - place : place;
    ParallelFor(frame.f, int64_t(values.size()), Cost(row, 8), [&](int64_t begin, int64_t end) {
      tw::TempVector<T> copy(static_cast<size_t>(row), frame);
      for (int64_t k = begin; k < end; ++k) {
        std::copy_n(input.data() + k * row, row, copy.begin());
        std::nth_element(copy.begin(), copy.begin() + at, copy.end(), Less<T>);
        values[uint64_t(k)] = copy[size_t(at)];
      }
    });
  }

 private:
  bool reverse_;
};

}  // namespace

void register_nth_element(tw::Plugin& p) {
  p.kernel<NthElement<float>, NthElement<double>, NthElement<half>, NthElement<bfloat16>>("NthElement @CPU");
  p.kernel<NthElement<int8_t>, NthElement<int16_t>, NthElement<int32_t>, NthElement<int64_t>>("NthElement @CPU");
  p.kernel<NthElement<uint8_t>, NthElement<uint16_t>, NthElement<uint32_t>, NthElement<uint64_t>>("NthElement @CPU");
}

}  // namespace thalweg::cpu
