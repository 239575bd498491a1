// ResourceScatterAdd, -Sub and -Update change rows of a variable in place under its lock, in the
// order of the indices. The indices are checked before anything is changed. Sums of half and
// bfloat16 are stored in the variable, so they are rounded after each row.
#include <algorithm>

#include "kernels/common/slices.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Throws INVALID_ARGUMENT unless indices name rows of the variable and updates has a row for each,
// or is one element for all. Returns the number of elements of a row.
int64_t CheckRows(const tw_view* variable, const tw_view* indices, const tw_view* updates) {
  if (variable->rank < 1) Invalid("resource is a scalar, which has no rows");
  if (variable->dtype != updates->dtype)
    Invalid("the variable is " + TypeText(variable->dtype) + ", updates are " + TypeText(updates->dtype));
  CheckIndices(indices, 0, variable->dims[0], "indices");
  const int64_t inner = Product(variable->dims, 1, variable->rank);
  if (updates->rank == 0) return inner;
  if (updates->rank != indices->rank + variable->rank - 1 || !std::equal(indices->dims, indices->dims + indices->rank, updates->dims) ||
      !std::equal(variable->dims + 1, variable->dims + variable->rank, updates->dims + indices->rank)) {
    Invalid("updates of shape " + DimsText(updates) + " for indices of shape " + DimsText(indices) + " into the variable of shape " +
            DimsText(variable));
  }
  return inner;
}

template <class T, bool kAdd>
void ScatterSum(tw::Frame f, tw::Var<T> resource, tw::In<tw::Any> indices, tw::In<T> updates) {
  const int64_t inner = CheckRows(resource.v, indices.v, updates.v);
  auto target = [&](int64_t row) { return IndexAt(indices.v, uint64_t(row)) * inner; };
  auto sum = [](T a, T b) {
    const Wide<T> x(a), y(b);
    return T(kAdd ? Plus(x, y) : Minus(x, y));
  };
  const int64_t rows = int64_t(indices.size());
  if (updates.rank() != 0) return CombineRows(f.f, resource.data(), int64_t(resource.size()), updates.data(), rows, inner, target, sum);
  const T all = updates[0];
  for (int64_t row = 0; row < rows; ++row)
    for (T *at = resource.data() + target(row), *end = at + inner; at < end; ++at) *at = sum(*at, all);
}

void ScatterUpdate(tw::Frame f, tw::Var<tw::Any> resource, tw::In<tw::Any> indices, tw::In<tw::Any> updates) {
  const int64_t inner = CheckRows(resource.v, indices.v, updates.v), rows = int64_t(indices.size());
  const auto target = [&](int64_t row) { return IndexAt(indices.v, uint64_t(row)) * inner; };
  if (updates.rank() != 0) return PutSlices(f.f, updates.v, resource.v, rows, inner, target);
  for (int64_t row = 0; row < rows; ++row) FillRun(f.f, updates.v, resource.v, target(row), inner);
}

template <class... T>
void AddTypes(tw::Plugin& p) {
  p.kernel<ScatterSum<T, true>...>("ResourceScatterAdd @CPU; update resource");
  p.kernel<ScatterSum<T, false>...>("ResourceScatterSub @CPU; update resource");
}

}  // namespace

void register_resource_scatter(tw::Plugin& p) {
  // The resource does not state its element type, so the specs differ by `updates`.
  AddTypes<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, complex64, complex128>(
      p);
  p.kernel<ScatterUpdate>("ResourceScatterUpdate @CPU; update resource");
}

}  // namespace thalweg::cpu
