// Parts of values: slices with constant and with computed places, and updates of them.
#include <algorithm>
#include <iterator>

#include "common.h"
#include "place.h"

namespace thalweg::stablehlo {
namespace {

void Slice(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const std::vector<int64_t> begin = op.ints("start_indices"), end = op.ints("limit_indices"), strides = op.ints("strides");
  const size_t rank = static_cast<size_t>(RankOf(op, x));
  if (begin.size() != rank || end.size() != rank || strides.size() != rank) {
    op.fail("start_indices, limit_indices and strides must have an entry for each of " + std::to_string(rank) + " axes");
  }
  for (size_t i = 0; i < rank; ++i) {
    if (begin[i] < 0 || end[i] < begin[i] || strides[i] < 1) {
      op.fail("axis " + std::to_string(i) + " is sliced from " + std::to_string(begin[i]) + " to " + std::to_string(end[i]) + " by " +
              std::to_string(strides[i]) + "; the start must be >= 0, the end >= the start and the stride >= 1");
    }
  }
  if (std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 1; })) {
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < rank; ++i) sizes.push_back(end[i] - begin[i]);
    if (x.static_shape() && sizes == x.dims()) return op.out(x);
    return op.out(t.op("Slice", {x, t.ints(begin), t.ints(sizes)}));
  }
  op.out(t.op("StridedSlice", {x, t.ints(begin), t.ints(end), t.ints(strides)}));
}

void RealDynamicSlice(Translation& t, Op& op) {
  const auto whole = [&](size_t i) { return t.cast(op.in(i), TW_INT64); };
  op.out(t.shaped(t.op("StridedSlice", {op.in(0), whole(1), whole(2), whole(3)}), op.out_shape()));
}

// Start indices as int64 scalars, moved so that the slice lies inside.
std::vector<Value> Starts(Translation& t, const Op& op, size_t first, const std::vector<Value>& sizes, const std::vector<Value>& part) {
  CheckParts(op, sizes, part);
  std::vector<Value> starts;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const Value& given = op.in(first + axis);
    const Value most = Minus(t, sizes[axis], part[axis]);
    if (most.constant() && most.constant()->integer(0) == 0) {
      starts.push_back(Known(t, 0));
      continue;
    }
    const Value start = given.known() && given.dtype() != TW_UINT64 ? Known(t, given.integers().at(0)) : Places(t, given);
    starts.push_back(Sized(t, "Minimum", Sized(t, "Maximum", start, Known(t, 0)), most));
  }
  return starts;
}

void DynamicSlice(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const std::vector<int64_t> wanted = op.ints("slice_sizes");
  std::vector<Value> part;
  for (const int64_t size : wanted) part.push_back(Known(t, size));
  const std::vector<Value> sizes = SizesOf(t, x);
  if (sizes.size() != part.size()) op.fail("slice_sizes must have an entry for each of " + std::to_string(sizes.size()) + " axes");
  if (sizes.empty()) return op.out(x);
  op.out(t.op("Slice", {x, Vector(t, Starts(t, op, 1, sizes, part)), t.ints(wanted)}));
}

// Whole trailing axes are replaced as blocks; the places of the blocks are counted in row-major order.
void DynamicUpdateSlice(Translation& t, Op& op) {
  const Value &x = op.in(0), &update = op.in(1);
  const std::vector<Value> sizes = SizesOf(t, x), part = SizesOf(t, update);
  if (sizes.size() != part.size()) op.fail("the update must have as many axes as the operand");
  if (sizes.empty()) return op.out(update);
  const std::vector<Value> starts = Starts(t, op, 2, sizes, part);
  const int rank = static_cast<int>(sizes.size());
  int counted = rank;  // axes that are not part of a block
  while (counted > 0 && NumberOf(sizes[static_cast<size_t>(counted) - 1]) >= 0 &&
         NumberOf(sizes[static_cast<size_t>(counted) - 1]) == NumberOf(part[static_cast<size_t>(counted) - 1])) {
    --counted;
  }
  if (counted == 0) return op.out(update);
  std::vector<Value> at;
  for (int axis = 0; axis < counted; ++axis) {
    const size_t i = static_cast<size_t>(axis);
    at.push_back(t.op("AddV2", {CountAlong(t, part[i], counted, axis), starts[i]}));
  }
  const std::vector<Value> outer(sizes.begin(), sizes.begin() + counted);
  const Value places =
      t.reshape(BroadcastTo(t, Place(t, at, outer), std::vector<Value>(part.begin(), part.begin() + counted)), Dims{-1, 1});
  const size_t split = static_cast<size_t>(counted);
  const Value block = Product(t, sizes, split, sizes.size());
  const Value rows = ReshapeTo(t, x, {Product(t, sizes, 0, split), block});
  const Value news = ReshapeTo(t, update, {Product(t, part, 0, split), block});
  op.out(ReshapeTo(t, t.op("TensorScatterUpdate", {rows, places, news}), sizes));
}

constexpr Entry kSlice[] = {
    {"stablehlo.dynamic_slice", &DynamicSlice},
    {"stablehlo.dynamic_update_slice", &DynamicUpdateSlice},
    {"stablehlo.real_dynamic_slice", &RealDynamicSlice},
    {"stablehlo.slice", &Slice},
};

}  // namespace

Value Place(Translation& t, const std::vector<Value>& at, const std::vector<Value>& sizes) {
  Value place = at[0];
  for (size_t i = 1; i < at.size(); ++i) place = t.op("AddV2", {t.op("Mul", {place, sizes[i]}), at[i]});
  return place;
}

Family slice_translators() { return {std::begin(kSlice), std::end(kSlice)}; }

}  // namespace thalweg::stablehlo
