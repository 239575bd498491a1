// RaggedRange, RaggedGather, RaggedTensorToSparse and RaggedTensorToTensor.
#include "kernels/ragged.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/arithmetic.h"
#include "kernels/common/slices.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// ---- Ranges ----

// Returns how many numbers start + k * delta lie before the limit.
template <class T>
int64_t RangeLength(T start, T limit, T delta, int64_t row) {
  const std::string at = "deltas" + ("[" + std::to_string(row)) + "]";
  if constexpr (std::is_integral_v<T>) {
    if (delta == 0) Invalid(at + " is 0; a step must not be 0");
    if (delta > 0 ? limit <= start : limit >= start) return 0;
    // The distance of two int64 fits in an uint64.
    const uint64_t span = delta > 0 ? uint64_t(limit) - uint64_t(start) : uint64_t(start) - uint64_t(limit);
    const uint64_t step = delta > 0 ? uint64_t(delta) : uint64_t(0) - uint64_t(delta);
    const uint64_t n = (span - 1) / step + 1;
    if (n > uint64_t(INT64_MAX)) Invalid("row " + std::to_string(row) + " has " + std::to_string(n) + " numbers, too many");
    return int64_t(n);
  } else {
    const auto from = Wide<T>(start), to = Wide<T>(limit), by = Wide<T>(delta);
    if (by == 0) Invalid(at + " is 0; a step must not be 0");
    const auto n = std::ceil((to - from) / by);
    if (std::isnan(n)) Invalid("row " + std::to_string(row) + " of the ranges has an end or a step that is no number");
    if (n > 9.2e18) Invalid("row " + std::to_string(row) + " of the ranges is too long");
    return n > 0 ? int64_t(n) : 0;
  }
}

template <class T>
void Ranges(tw::Frame, tw::In<T> starts, tw::In<T> limits, tw::In<T> deltas, tw::Out<tw::Any> splits, tw::Out<T> values) {
  const tw::In<T>* const inputs[] = {&starts, &limits, &deltas};
  int64_t rows = 1;
  for (const auto* in : inputs) {
    if (in->rank() > 1) Invalid("starts, limits and deltas must be scalars or vectors; one is " + DimsText(in->v));
    if (in->rank() == 1) rows = in->dim(0);
  }
  for (const auto* in : inputs)
    if (in->rank() == 1 && in->dim(0) != rows)
      Invalid("starts " + DimsText(starts.v) + ", limits " + DimsText(limits.v) + " and deltas " + DimsText(deltas.v) +
              " must be scalars or vectors of one size");
  const auto at = [](const tw::In<T>& in, int64_t row) { return in[in.rank() == 1 ? uint64_t(row) : 0]; };
  const int64_t entries = rows + 1;
  Allocate(splits, &entries, 1);
  int64_t n = 0;
  PutIndex(splits.v(), 0, 0);
  for (int64_t row = 0; row < rows; ++row) {
    if (__builtin_add_overflow(n, RangeLength<T>(at(starts, row), at(limits, row), at(deltas, row), row), &n)) Invalid("too many numbers");
    CheckCountable(splits.v()->dtype, n);
    PutIndex(splits.v(), uint64_t(row) + 1, n);
  }
  Allocate(values, &n, 1);
  for (int64_t row = 0, k = 0; row < rows; ++row) {
    T value = at(starts, row);
    for (const int64_t end = IndexAt(splits.v(), uint64_t(row) + 1); k < end; ++k) {
      values[uint64_t(k)] = value;
      value = Plus(value, at(deltas, row));
    }
  }
}

// ---- Gathering rows ----

void RaggedGather(tw::Frame f, tw::Many<tw::Any> splits, tw::In<tw::Any> values, tw::In<tw::Any> indices, tw::ManyOut<tw::Any> out_splits,
                  tw::Out<tw::Any> out_values) {
  const uint32_t params = splits.size(), added = uint32_t(std::max(0, indices.rank() - 1));
  if (values.rank() < 1) Invalid("params_dense_values " + DimsText(values.v) + " must have at least one axis");
  if (int64_t(out_splits.size()) != int64_t(params) + indices.rank() - 1)
    Invalid("indices " + DimsText(indices.v) + " do not fit OUTPUT_RAGGED_RANK " + std::to_string(out_splits.size()));
  for (uint32_t k = 0; k < params; ++k) {
    const int64_t below = k + 1 < params ? int64_t(splits[k + 1].size()) - 1 : values.dim(0);
    CheckSplits(splits[k].v, below, "params_nested_splits " + std::to_string(k));
  }
  CheckIndices(indices.v, 0, int64_t(splits[0].size()) - 1, "indices");
  // The axes of indices, but for the last, are rows of equal lengths.
  int64_t above = 1;
  for (uint32_t k = 0; k < added; ++k) {
    above *= indices.dim(int32_t(k));
    const int64_t entries = above + 1, length = indices.dim(int32_t(k) + 1);
    Allocate(out_splits[k], &entries, 1);
    CheckCountable(out_splits[k].v()->dtype, above * length);
    for (int64_t row = 0; row <= above; ++row) PutIndex(out_splits[k].v(), uint64_t(row), row * length);
  }
  // Ranges of rows, level by level: rows `from` to `to` of the level are kept, in this order.
  struct Piece {
    int64_t from, to;
  };
  tw::TempVector<Piece> pieces(f), next(f);
  for (uint64_t i = 0; i < indices.size(); ++i) pieces.push_back({IndexAt(indices.v, i), IndexAt(indices.v, i) + 1});
  for (uint32_t k = 0; k < params; ++k) {
    int64_t rows = 0, total = 0;
    for (const Piece& p : pieces) rows += p.to - p.from;
    next.clear();
    // A scalar index selects one row of the first splits, which then is no axis of the result.
    const bool kept = indices.rank() > 0 || k > 0;
    const uint32_t o = added + k - (indices.rank() > 0 ? 0 : 1);
    if (kept) {
      const int64_t entries = rows + 1;
      Allocate(out_splits[o], &entries, 1);
      PutIndex(out_splits[o].v(), 0, 0);
    }
    int64_t row = 0;
    for (const Piece& p : pieces) {
      const int64_t begin = IndexAt(splits[k].v, uint64_t(p.from)), end = IndexAt(splits[k].v, uint64_t(p.to));
      for (int64_t r = p.from; kept && r < p.to; ++r) {
        const int64_t at = total + IndexAt(splits[k].v, uint64_t(r) + 1) - begin;
        CheckCountable(out_splits[o].v()->dtype, at);
        PutIndex(out_splits[o].v(), uint64_t(++row), at);
      }
      total += end - begin;
      next.push_back({begin, end});
    }
    std::swap(pieces, next);
  }
  int64_t n = 0;
  for (const Piece& p : pieces) n += p.to - p.from;
  Ints dims;
  dims.push(n);
  for (int32_t axis = 1; axis < values.rank(); ++axis) dims.push(values.dim(axis));
  Allocate(out_values, dims.at, dims.n);
  const int64_t inner = Product(values.dims(), 1, values.rank());
  CheckMovable(values.v->dtype);
  int64_t to = 0;
  for (const Piece& p : pieces) {
    CopyRun(f.f, values.v, p.from * inner, out_values.v(), to * inner, (p.to - p.from) * inner);
    to += p.to - p.from;
  }
}

// ---- Sparse ----

void ToSparse(tw::Frame f, tw::Many<tw::Any> splits, tw::In<tw::Any> values, tw::Out<int64_t> indices, tw::Out<tw::Any> out_values,
              tw::Out<int64_t> shape) {
  const uint32_t levels = splits.size();
  if (values.rank() < 1) Invalid("rt_dense_values " + DimsText(values.v) + " must have at least one axis");
  const int64_t n = int64_t(values.size()), rank = int64_t(levels) + values.rank();
  const int64_t inner = Product(values.dims(), 1, values.rank());
  Ints dims;
  dims.push(int64_t(splits[0].size()) - 1);
  for (uint32_t k = 0; k < levels; ++k) {
    const int64_t below = k + 1 < levels ? int64_t(splits[k + 1].size()) - 1 : values.dim(0);
    CheckSplits(splits[k].v, below, "rt_nested_splits " + std::to_string(k));
    int64_t longest = 0;
    for (uint64_t i = 1; i < splits[k].size(); ++i) longest = std::max(longest, IndexAt(splits[k].v, i) - IndexAt(splits[k].v, i - 1));
    dims.push(longest);
  }
  for (int32_t axis = 1; axis < values.rank(); ++axis) dims.push(values.dim(axis));
  const int64_t pairs[] = {n, rank};
  Allocate(indices, pairs, 2);
  Allocate(out_values, &n, 1);
  Allocate(shape, &rank, 1);
  std::copy_n(dims.at, dims.n, shape.data());
  CheckMovable(values.v->dtype);
  CopyRun(f.f, values.v, 0, out_values.v(), 0, n);
  // row[k]: the row of splits k that holds the value.
  Ints row;
  for (uint32_t k = 0; k < levels; ++k) row.push(0);
  int64_t* to = indices.data();
  for (int64_t i = 0; i < n; ++i, to += rank) {
    int64_t at = i / inner, rest = i % inner;
    for (uint32_t k = levels; k-- > 0;) {
      while (IndexAt(splits[k].v, uint64_t(row[int(k)]) + 1) <= at) ++row[int(k)];
      to[k + 1] = at - IndexAt(splits[k].v, uint64_t(row[int(k)]));
      at = row[int(k)];
    }
    to[0] = at;
    for (int32_t axis = values.rank() - 1; axis > 0; --axis) {
      to[int32_t(levels) + axis] = rest % values.dim(axis);
      rest /= values.dim(axis);
    }
  }
}

// ---- Dense ----

class ToDense {
 public:
  explicit ToDense(const tw::Node& n) {
    const tw_attr& types = n.at("row_partition_types");
    const auto* names = static_cast<const tw_string*>(types.data);
    for (uint32_t k = 0; k < types.count; ++k) {
      const std::string_view name(names[k].data, names[k].size);
      if (name == "FIRST_DIM_SIZE") sized_ = true;
      splits_.push_back(name == "ROW_SPLITS");
    }
  }

  void operator()(tw::Frame f, tw::In<tw::Any> shape, tw::In<tw::Any> values, tw::In<tw::Any> default_value, tw::Many<tw::Any> partitions,
                  tw::Out<tw::Any> result) const {
    const uint32_t first = sized_ ? 1 : 0;
    if (partitions.size() != splits_.size() || partitions.size() <= first)
      Invalid("there are " + std::to_string(partitions.size()) + " row partitions for " + std::to_string(splits_.size()) + " types");
    if (values.rank() < 1) Invalid("values " + DimsText(values.v) + " must have at least one axis");
    const int64_t rows = sized_ ? Size(partitions[0].v) : int64_t(partitions[0].size()) - 1;
    const int32_t axes = int32_t(partitions.size() - first) + 1, rank = axes + values.rank() - 1;
    Ints dims = Wanted(shape.v, rank);
    if (dims[0] < 0) dims[0] = rows;
    // places[i]: the number of the place of element i of this level, or -1 if it is cut off.
    tw::TempVector<int64_t> places(f), next(f);
    if (rows < 0) Invalid("row splits are empty; they need at least one entry");
    constexpr auto kMostRows = int64_t(PTRDIFF_MAX / sizeof(int64_t));
    if (rows > kMostRows)
      Invalid("row_partition_tensors say that there are " + std::to_string(rows) + " rows; more than " + std::to_string(kMostRows) +
              " have no room in memory");
    places.reserve(size_t(rows));
    for (int64_t i = 0; i < rows; ++i) places.push_back(i < dims[0] ? i : -1);
    for (uint32_t k = first; k < partitions.size(); ++k) {
      const int64_t elements = k + 1 < partitions.size() && splits_[k + 1] ? int64_t(partitions[k + 1].size()) - 1
                               : k + 1 < partitions.size()                 ? -1
                                                                           : values.dim(0);
      const int axis = int(k - first) + 1;
      next.clear();
      if (splits_[k])
        BySplits(partitions[k].v, elements, axis, places, &next, &dims);
      else
        ByRows(partitions[k].v, elements, axis, places, &next, &dims);
      std::swap(places, next);
    }
    for (int axis = axes; axis < rank; ++axis) {
      const int64_t size = values.dim(axis - axes + 1);
      if (dims[axis] >= 0 && dims[axis] != size)
        Invalid("shape has the entry " + std::to_string(dims[axis]) + " for axis " + std::to_string(axis) + ", but values is " +
                DimsText(values.v));
      dims[axis] = size;
    }
    Allocate(result, dims.at, dims.n);
    Fill(f.f, default_value.v, values.v, result.v());
    const int64_t inner = Product(values.dims(), 1, values.rank());
    CheckMovable(values.v->dtype);
    for (uint64_t i = 0; inner > 0 && i < places.size(); ++i)
      if (places[i] >= 0) CopyRun(f.f, values.v, int64_t(i) * inner, result.v(), places[i] * inner, inner);
  }

 private:
  static int64_t Size(const tw_view* v) {
    const int64_t size = IndexAt(v, 0);
    if (v->count != 1 || size < 0) Invalid("the size of the first axis, " + std::to_string(size) + ", must be a scalar of at least 0");
    return size;
  }

  static Ints Wanted(const tw_view* shape, int32_t rank) {
    Ints dims;
    if (shape->rank == 0 && IndexAt(shape, 0) != -1)
      Invalid("shape is the scalar " + std::to_string(IndexAt(shape, 0)) + "; it must be a vector, or -1");
    if (shape->rank > 0 && int64_t(shape->count) != rank)
      Invalid("shape has " + std::to_string(shape->count) + " entries, but the result has " + std::to_string(rank) + " axes");
    for (int32_t k = 0; k < rank; ++k) {
      dims.push(shape->rank == 0 ? -1 : IndexAt(shape, uint64_t(k)));
      if (dims[k] < -1) Invalid("shape has the entry " + std::to_string(dims[k]) + "; it must be a size, or -1 for one that fits");
    }
    return dims;
  }

  // The place of element j of a row at `row`, in rows of `size` places. The result is not used if the
  // product overflows, because it then has more elements than the host allocates.
  static int64_t Place(int64_t row, int64_t j, int64_t size) {
    return row < 0 || j >= size ? -1 : int64_t(uint64_t(row) * uint64_t(size) + uint64_t(j));
  }

  static void BySplits(const tw_view* splits, int64_t elements, int axis, const tw::TempVector<int64_t>& rows,
                       tw::TempVector<int64_t>* places, Ints* dims) {
    const int64_t last = splits->count ? IndexAt(splits, splits->count - 1) : 0;
    CheckSplits(splits, elements < 0 ? last : elements, "row splits " + std::to_string(axis - 1));
    if (int64_t(splits->count) - 1 != int64_t(rows.size()))
      Invalid("row splits " + std::to_string(axis - 1) + " describe " + std::to_string(int64_t(splits->count) - 1) + " rows, not " +
              std::to_string(rows.size()));
    int64_t& size = (*dims)[axis];
    if (size < 0) {
      size = 0;
      for (uint64_t i = 1; i < splits->count; ++i) size = std::max(size, IndexAt(splits, i) - IndexAt(splits, i - 1));
    }
    for (uint64_t row = 0; row < rows.size(); ++row) {
      const int64_t n = IndexAt(splits, row + 1) - IndexAt(splits, row);
      for (int64_t j = 0; j < n; ++j) places->push_back(Place(rows[row], j, size));
    }
  }

  static void ByRows(const tw_view* ids, int64_t elements, int axis, const tw::TempVector<int64_t>& rows, tw::TempVector<int64_t>* places,
                     Ints* dims) {
    if (ids->rank != 1) Invalid("row ids " + DimsText(ids) + " must be a vector");
    if (elements >= 0 && int64_t(ids->count) != elements)
      Invalid("there are " + std::to_string(ids->count) + " row ids for " + std::to_string(elements) + " elements");
    int64_t longest = 0, run = 0;
    for (uint64_t i = 0; i < ids->count; ++i) {
      const int64_t id = IndexAt(ids, i);
      if (id < 0 || id >= int64_t(rows.size()) || (i > 0 && id < IndexAt(ids, i - 1)))
        Invalid("row id " + std::to_string(i) + " is " + std::to_string(id) + "; row ids never fall and are in [0, " +
                std::to_string(rows.size()) + ")");
      run = i > 0 && id == IndexAt(ids, i - 1) ? run + 1 : 1;
      longest = std::max(longest, run);
    }
    int64_t& size = (*dims)[axis];
    if (size < 0) size = longest;
    for (uint64_t i = 0, j = 0; i < ids->count; ++i) {
      const int64_t id = IndexAt(ids, i);
      j = i > 0 && id == IndexAt(ids, i - 1) ? j + 1 : 0;
      places->push_back(Place(rows[size_t(id)], int64_t(j), size));
    }
  }

  // Sets every element of the result to the default, which broadcasts to the shape of a value.
  static void Fill(const tw_frame* f, const tw_view* value, const tw_view* values, const tw_view* result) {
    if (value->count == 1) return FillRun(f, value, result, 0, int64_t(result->count));
    const int32_t inner = values->rank - 1, lead = inner - value->rank;
    if (lead < 0) Invalid("default_value " + DimsText(value) + " has more axes than a value, of values " + DimsText(values));
    Box box;
    const int64_t each = Product(values->dims, 1, values->rank);
    box.Add(each ? int64_t(result->count) / each : 0, 0, each);
    const Ints strides = DenseStrides(value->dims, value->rank);
    for (int32_t axis = 0; axis < inner; ++axis) {
      const int64_t size = values->dims[axis + 1], of = axis < lead ? 1 : value->dims[axis - lead];
      if (of != size && of != 1)
        Invalid("default_value " + DimsText(value) + " does not broadcast to a value, of values " + DimsText(values));
      box.Add(size, of == 1 ? 0 : strides[axis - lead], Product(values->dims, axis + 2, values->rank));
    }
    if (result->count) CopyBox(f, box, value, 0, result, 0);
  }

  bool sized_ = false;
  std::vector<bool> splits_;  // whether a partition is splits; else row ids, or the size of the first axis
};

}  // namespace

void register_ragged(tw::Plugin& p) {
  for (const char* splits : {"int32", "int64"}) {
    const auto spec = [&](const char* t) {
      return std::string("RaggedRange(") + t + ", " + t + ", " + t + " -> " + splits + ", " + t + ") @CPU";
    };
    p.kernel<Ranges<float>>(spec("float"));
    p.kernel<Ranges<double>>(spec("double"));
    p.kernel<Ranges<bfloat16>>(spec("bfloat16"));
    p.kernel<Ranges<int32_t>>(spec("int32"));
    p.kernel<Ranges<int64_t>>(spec("int64"));
  }
  p.kernel<RaggedGather>("RaggedGather @CPU");
  p.kernel<ToSparse>("RaggedTensorToSparse @CPU");
  p.kernel<ToDense>("RaggedTensorToTensor @CPU");
}

}  // namespace thalweg::cpu
