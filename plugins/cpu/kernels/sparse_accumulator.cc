// Sparse conditional accumulators: gradients that are rows of a larger tensor. Rows with the same
// index are added up.
#include <algorithm>
#include <map>

#include "kernels/accumulator.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

struct Gradient {
  const tw_view *indices, *values, *shape;
  bool known_shape;
};

std::vector<int64_t> RowDims(const tw_view* values) { return {values->dims + 1, values->dims + values->rank}; }
std::string Text(const std::vector<int64_t>& dims) { return tw::text(dims.data(), int32_t(dims.size())); }

// Throws unless the parts of the gradient belong together and fit an accumulator of these options.
void CheckGradient(const AccumulatorOptions& o, const Gradient& g) {
  if (g.indices->rank != 1) Invalid("gradient_indices must be a vector, but has shape " + DimsText(g.indices));
  if (g.values->rank < 1) Invalid("gradient_values is a scalar; it has a row for each index");
  if (g.values->dims[0] != g.indices->dims[0]) {
    Invalid("gradient_values has " + std::to_string(g.values->dims[0]) + " rows, but there are " + std::to_string(g.indices->dims[0]) +
            " indices");
  }
  if (g.shape->rank != 1) Invalid("gradient_shape must be a vector, but has shape " + DimsText(g.shape));
  const int32_t rank = g.values->rank;
  if (o.ranked && int32_t(o.dims.size()) != rank) {
    Invalid("gradient_values has rank " + std::to_string(rank) + ", but the accumulator has shape " + Text(o.dims));
  }
  const int64_t* given = reinterpret_cast<const int64_t*>(Bytes(g.shape));
  if (g.known_shape && g.shape->dims[0] != rank) {
    Invalid("gradient_shape has " + std::to_string(g.shape->dims[0]) + " sizes, but gradient_values has rank " + std::to_string(rank));
  }
  for (int32_t k = 0; k < rank; ++k) {
    const int64_t want = o.ranked ? o.dims[size_t(k)] : -1;
    const int64_t is = k > 0 ? g.values->dims[k] : g.known_shape ? given[0] : -1;
    if (want >= 0 && is >= 0 && want != is) {
      Invalid("size " + std::to_string(k) + " of the gradient is " + std::to_string(is) + ", but the accumulator has shape " +
              Text(o.dims));
    }
    if (k > 0 && g.known_shape && given[k] != is) {
      Invalid("gradient_shape says that size " + std::to_string(k) + " is " + std::to_string(given[k]) + ", but gradient_values has " +
              std::to_string(is));
    }
  }
  const int64_t rows = o.ranked && o.dims[0] >= 0 ? o.dims[0] : g.known_shape && given[0] >= 0 ? given[0] : INT64_MAX;
  for (uint64_t i = 0; i < g.indices->count; ++i) {
    const int64_t index = IndexAt(g.indices, i);
    if (index < 0 || index >= rows) {
      Invalid("index " + std::to_string(index) + " at " + std::to_string(i) + " is not a row" +
              (rows == INT64_MAX ? std::string() : " of " + std::to_string(rows)));
    }
  }
}

// Returns a gradient's rows; rows with the same index are added up.
template <class T>
std::map<int64_t, GradientSum> Rows(tw::Charge* charge, tw::In<int64_t> indices, tw::In<T> values, uint64_t each, bool mean) {
  std::map<int64_t, GradientSum> rows;
  for (uint64_t i = 0; i < indices.size(); ++i) {
    if (!rows.count(indices[i])) charge->add(Accumulator::RowBytes(each * sizeof(T)));
    rows[indices[i]].Add(values.data() + i * each, each, false);
  }
  for (auto& row : rows) {
    row.second.count = 1;
    row.second.same = mean;
  }
  return rows;
}

template <class T>
class Apply {
 public:
  explicit Apply(const tw::Node& n) : known_shape_(n.b("has_known_shape")) {}
  void operator()(tw::Frame f, tw::Var<tw::Any> handle, tw::In<int64_t> local_step, tw::In<int64_t> indices, tw::In<T> values,
                  tw::In<int64_t> shape) const {
    Accumulator& a = AccumulatorAt(handle);
    a.Check(values.v->dtype, true);
    if (local_step[0] < a.step) return;
    CheckGradient(a.options, {indices.v, values.v, shape.v, known_shape_});
    std::vector<int64_t> dims = RowDims(values.v);
    if (a.count > 0 && dims != a.dims)
      Invalid("rows of the gradient have shape " + Text(dims) + ", but those that are there have " + Text(a.dims));
    a.dims = std::move(dims);
    tw::Charge charge(f);
    const uint64_t each = indices.size() ? values.size() / indices.size() : 0;  // the elements of a row
    std::map<int64_t, GradientSum> rows = Rows<T>(&charge, indices, values, each, a.options.mean);
    uint64_t fresh = 0;
    for (const auto& [index, row] : rows) fresh += !a.rows.count(index);
    a.held.add(f, fresh * Accumulator::RowBytes(each * sizeof(T)));
    for (const auto& [index, row] : rows) {
      const auto there = a.rows.find(index);
      if (there != a.rows.end())
        there->second.Add(reinterpret_cast<const T*>(row.values.data()), row.values.size() / sizeof(T), a.options.mean);
    }
    a.rows.merge(rows);
    ++a.count;
  }

 private:
  const bool known_shape_;
};

template <class T>
void Take(tw::Frame f, tw::Var<tw::Any> handle, tw::In<int32_t> num_required, tw::Out<int64_t> indices, tw::Out<T> values,
          tw::Out<int64_t> shape) {
  Accumulator& a = AccumulatorAt(handle);
  a.Check(values.v()->dtype, true);
  if (!HasEnough(f, a, num_required)) return;
  std::vector<int64_t> dims = a.dims;
  dims.insert(dims.begin(), int64_t(a.rows.size()));
  const int64_t rank = int64_t(dims.size());
  Allocate(indices, dims.data(), 1);
  Allocate(values, dims.data(), int(rank));
  Allocate(shape, &rank, 1);
  uint64_t i = 0;
  T* at = values.data();
  for (const auto& [index, row] : a.rows) {
    indices[i++] = index;
    row.Get(a.options.mean, at);
    at += row.values.size() / sizeof(T);
  }
  std::copy(dims.begin(), dims.end(), shape.data());
  shape[0] = a.options.ranked && !a.options.dims.empty() ? a.options.dims[0] : -1;
  a.Begin();
  f.complete();
}

}  // namespace

void register_sparse_accumulator(tw::Plugin& p) {
  p.kernel<AccumulatorHandle<true>>("ResourceSparseConditionalAccumulator @CPU");
  p.kernel<Apply<half>, Apply<bfloat16>, Apply<float>, Apply<double>>("ResourceSparseAccumulatorApplyGradient @CPU; update handle");
  p.kernel<Take<half>, Take<bfloat16>, Take<float>, Take<double>>(
      "ResourceSparseAccumulatorTakeGradient @CPU; async; update handle; nondeterministic");
}

}  // namespace thalweg::cpu
