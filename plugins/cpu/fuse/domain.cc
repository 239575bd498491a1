#include "fuse/domain.h"

#include <algorithm>

#include "kernels/common/element.h"

namespace thalweg::cpu {
namespace {

// Returns the size along axis `a` of the domain of a shape that is aligned with the domain at the
// last axis.
int64_t Own(const tw_shape& s, const tw_shape& domain, int32_t a) {
  const int32_t at = a - (domain.rank - s.rank);
  return at < 0 ? 1 : s.dims[at];
}

// Equal returns true if axes [begin, end) are those of the domain; Ones, if all of them are 1.
bool Equal(const tw_shape& s, const tw_shape& domain, int32_t begin, int32_t end) {
  for (int32_t a = begin; a < end; ++a)
    if (Own(s, domain, a) != domain.dims[a]) return false;
  return true;
}
bool Ones(const tw_shape& s, const tw_shape& domain, int32_t begin, int32_t end) {
  for (int32_t a = begin; a < end; ++a)
    if (Own(s, domain, a) != 1) return false;
  return true;
}

// Returns the smallest number of inner axes with as many elements as the axes from `first` on.
int32_t Fewest(const tw_shape& domain, int32_t first) {
  while (first < domain.rank && domain.dims[first] == 1) ++first;
  return domain.rank - first;
}

}  // namespace

bool Known(const tw_shape& s) {
  return s.rank >= 0 && std::all_of(s.dims, s.dims + s.rank, [](int64_t d) { return d >= 0; });
}
bool Same(const tw_shape& a, const tw_shape& b) { return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims); }
int64_t CountOf(const tw_shape& s) { return Product(s.dims, 0, s.rank); }

int64_t Domain::count() const { return CountOf(shape); }
int64_t Domain::columns() const { return Product(shape.dims, inner ? shape.rank - inner : 0, shape.rank); }

Lie LieOf(const tw_shape& s, const Domain& d) {
  const tw_shape& all = d.shape;
  const int32_t first = all.rank - d.inner;
  if (s.rank <= all.rank && Equal(s, all, 0, all.rank)) return Lie::kFull;
  if (CountOf(s) == 1) return Lie::kOne;
  if (d.inner == 0 || s.rank > all.rank) return Lie::kNone;
  if (Ones(s, all, 0, first) && Equal(s, all, first, all.rank)) return Lie::kRow;
  if (Equal(s, all, 0, first) && Ones(s, all, first, all.rank)) return Lie::kColumn;
  return Lie::kNone;
}

int32_t InnerFor(const tw_shape& s, const tw_shape& domain) {
  if (s.rank > domain.rank) return 0;
  int32_t first = 0, end = domain.rank;
  while (first < end && Own(s, domain, first) == 1) ++first;
  if (Equal(s, domain, first, domain.rank)) return domain.rank - first;
  while (end > 0 && Own(s, domain, end - 1) == 1) --end;
  return Equal(s, domain, 0, end) ? Fewest(domain, end) : 0;
}

int32_t InnerOfReduction(const tw_view* axes, const tw_shape& domain) {
  bool reduced[kMaxRank] = {};
  for (uint64_t i = 0; i < axes->count; ++i) {
    const int64_t axis = IndexAt(axes, i), at = axis < 0 ? axis + domain.rank : axis;
    if (at < 0 || at >= domain.rank || reduced[at]) return 0;  // the kernel reports this error
    reduced[at] = true;
  }
  int32_t first = domain.rank;
  while (first > 0 && (reduced[first - 1] || domain.dims[first - 1] == 1)) --first;
  for (int32_t a = 0; a < first; ++a)
    if (reduced[a] && domain.dims[a] != 1) return 0;
  return Fewest(domain, first);
}

}  // namespace thalweg::cpu
