// SparseSoftmax: the elements of a row stand one after the other; each row is computed in double and
// rounded once.
#include <cmath>
#include <limits>

#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/sparse_input.h"

namespace thalweg::cpu {
namespace {

// Returns the number of the element behind the row that begins with element `first`. Refuses a row
// that comes before the row ahead of it.
int64_t EndOfRow(const SparseInput& in, int64_t first) {
  int64_t end = first + 1;
  while (end < in.count() && ComparePlaces(in.place(first), in.place(end), in.rank() - 1) == 0) ++end;
  if (end < in.count() && ComparePlaces(in.place(first), in.place(end), in.rank() - 1) > 0)
    Invalid(in.Text(end) + " comes after " + in.Text(first) + ", which is in a later row; put them in order with SparseReorder");
  return end;
}

template <class T>
void SparseSoftmax(tw::Frame, tw::In<int64_t> indices, tw::In<T> values, tw::In<int64_t> shape, tw::Out<T> output) {
  const SparseInput in(indices, values.v, shape, {"sp_indices", "sp_values", "sp_shape"});
  if (in.rank() < 2) Invalid("the sparse tensor has " + std::to_string(in.rank()) + " axes; rows need at least 2");
  const int64_t n = in.count();
  Allocate(output, &n, 1);
  for (int64_t first = 0, end = 0; first < n; first = end) {
    end = EndOfRow(in, first);
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = first; k < end; ++k) largest = std::fmax(largest, double(values[uint64_t(k)]));
    for (int64_t k = first; k < end; ++k) sum += std::exp(double(values[uint64_t(k)]) - largest);
    for (int64_t k = first; k < end; ++k) output[uint64_t(k)] = T(std::exp(double(values[uint64_t(k)]) - largest) / sum);
  }
}

}  // namespace

void register_sparse_softmax(tw::Plugin& p) {
  p.kernel<SparseSoftmax<float>, SparseSoftmax<double>, SparseSoftmax<half>>("SparseSoftmax @CPU");
}

}  // namespace thalweg::cpu
