// SparseConcat, SparseSplit, SparseSlice and its gradient: places are renumbered, values are moved by
// the size of their type.
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/common/slices.h"
#include "kernels/register.h"
#include "kernels/sparse_input.h"

namespace thalweg::cpu {
namespace {

// ---- SparseConcat ----

class SparseConcat {
 public:
  explicit SparseConcat(const tw::Node& n) : axis_(n.i("concat_dim")) {}

  void operator()(tw::Frame f, tw::Many<int64_t> indices, tw::Many<tw::Any> values, tw::Many<int64_t> shapes, tw::Out<int64_t> out_indices,
                  tw::Out<tw::Any> out_values, tw::Out<int64_t> out_shape) const {
    if (values.size() != indices.size() || shapes.size() != indices.size() || indices.size() == 0)
      Invalid("there are " + std::to_string(indices.size()) + " indices, " + std::to_string(values.size()) + " values and " +
              std::to_string(shapes.size()) + " shapes; every sparse tensor has one of each");
    std::vector<SparseInput> in;
    in.reserve(indices.size());
    int64_t total = 0;
    for (uint32_t k = 0; k < indices.size(); ++k) {
      std::string which(1, ' ');
      which += std::to_string(k);
      in.emplace_back(indices[k], values[k].v, shapes[k], SparseNames{"indices" + which, "values" + which, "shapes" + which});
      total += in[k].count();
    }
    const int rank = in[0].rank(), axis = Axis(axis_, rank, "concat_dim");
    const tw::TempVector<int64_t> begins = Begins(f, in, axis);

    const tw::TempVector<int64_t> places = Places(f, in, axis, begins, total);
    const PlaceRows rows{places.data(), total, rank};
    const tw::TempVector<int64_t> order = Order(f, rows);
    const int64_t dims[] = {total, rank}, sizes = rank;
    Allocate(out_indices, dims, 2);
    Allocate(out_values, &total, 1);
    Allocate(out_shape, &sizes, 1);
    std::copy_n(in[0].sizes(), rank, out_shape.data());
    out_shape[uint64_t(axis)] = begins.back();
    tw::TempVector<int64_t> to(size_t(total), 0, f);  // the new number of each element
    for (int64_t k = 0; k < total; ++k) {
      std::copy_n(rows[order[size_t(k)]], rank, out_indices.data() + k * rank);
      to[size_t(order[size_t(k)])] = k;
    }
    int64_t base = 0;
    for (uint32_t k = 0; k < values.size(); ++k) {
      PutSlices(f.f, values[k].v, out_values.v(), in[k].count(), 1, [&](int64_t i) { return to[size_t(base + i)]; });
      base += in[k].count();
    }
  }

 private:
  // Returns where each tensor begins along the axis, and the total size. Refuses sizes that differ
  // along another axis.
  static tw::TempVector<int64_t> Begins(tw::Frame f, const std::vector<SparseInput>& in, int axis) {
    tw::TempVector<int64_t> begins(1, 0, f);
    for (const SparseInput& x : in) {
      if (x.rank() != in[0].rank())
        Invalid(x.names().shape + " is " + x.SizesText() + " and " + in[0].names().shape + " is " + in[0].SizesText() +
                "; sparse tensors that are joined must have equally many axes");
      for (int i = 0; i < x.rank(); ++i)
        if (i != axis && x.size(i) != in[0].size(i))
          Invalid(x.names().shape + " is " + x.SizesText() + " and " + in[0].names().shape + " is " + in[0].SizesText() +
                  "; only the sizes along axis " + std::to_string(axis) + ", concat_dim, may differ");
      int64_t end;
      if (__builtin_add_overflow(begins.back(), x.size(axis), &end))
        Invalid("the sizes along axis " + std::to_string(axis) + " add up to more than 2^63-1");
      begins.push_back(end);
    }
    return begins;
  }

  // Returns the places of all elements in the result.
  static tw::TempVector<int64_t> Places(tw::Frame f, const std::vector<SparseInput>& in, int axis, const tw::TempVector<int64_t>& begins,
                                        int64_t total) {
    const int64_t rank = in[0].rank();
    tw::TempVector<int64_t> places(size_t(total * rank), 0, f);
    int64_t* to = places.data();
    for (size_t k = 0; k < in.size(); ++k)
      for (int64_t i = 0; i < in[k].count(); ++i, to += rank) {
        std::copy_n(in[k].place(i), rank, to);
        to[axis] += begins[k];
      }
    return places;
  }

  // Returns the numbers of the places in sorted order; equal places keep theirs.
  static tw::TempVector<int64_t> Order(tw::Frame f, const PlaceRows& rows) {
    tw::TempVector<int64_t> order(size_t(rows.count), 0, f);
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](int64_t a, int64_t b) { return ComparePlaces(rows[a], rows[b], rows.rank) < 0; };
    if (std::is_sorted(order.begin(), order.end(), before)) return order;
    const tw::Charge charge(f, order.size() * sizeof(int64_t));  // the memory of a stable sort
    std::stable_sort(order.begin(), order.end(), before);
    return order;
  }

  const int64_t axis_;
};

// ---- SparseSplit ----

// Cuts an axis into parts, of which the first may be longer by one.
class AxisParts {
 public:
  AxisParts(int64_t size, int64_t parts) : base_(size / parts), longer_(size % parts) {}
  int64_t size(int64_t part) const { return base_ + (part < longer_ ? 1 : 0); }
  int64_t begin(int64_t part) const { return part * base_ + std::min(part, longer_); }
  int64_t PartOf(int64_t at) const {
    const int64_t of_longer = longer_ * (base_ + 1);
    return at < of_longer ? at / (base_ + 1) : longer_ + (at - of_longer) / base_;
  }

 private:
  int64_t base_, longer_;
};

void SparseSplit(tw::Frame f, tw::In<int64_t> split_dim, tw::In<int64_t> indices, tw::In<tw::Any> values, tw::In<int64_t> shape,
                 tw::ManyOut<int64_t> out_indices, tw::ManyOut<tw::Any> out_values, tw::ManyOut<int64_t> out_shapes) {
  const SparseInput in(indices, values.v, shape, {"indices", "values", "shape"});
  if (split_dim.size() != 1) Invalid("split_dim " + DimsText(split_dim.v) + " must be a scalar");
  const int rank = in.rank(), axis = Axis(split_dim[0], rank, "split_dim");
  const int64_t n_parts = out_indices.size();
  if (n_parts > in.size(axis))
    Invalid("num_split is " + std::to_string(n_parts) + ", but axis " + std::to_string(axis) + " of shape " + in.SizesText() +
            " has only " + std::to_string(in.size(axis)) + " places");
  const AxisParts parts(in.size(axis), n_parts);

  // Elements by part; those of one part keep their order.
  tw::TempVector<int64_t> ends(size_t(n_parts) + 1, 0, f), order(size_t(in.count()), 0, f);
  for (int64_t k = 0; k < in.count(); ++k) ++ends[size_t(parts.PartOf(in.place(k)[axis])) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  tw::TempVector<int64_t> next = ends;
  for (int64_t k = 0; k < in.count(); ++k) order[size_t(next[size_t(parts.PartOf(in.place(k)[axis]))]++)] = k;

  for (int64_t part = 0; part < n_parts; ++part) {
    const auto o = uint32_t(part);
    const int64_t first = ends[size_t(part)], n = ends[size_t(part) + 1] - first, sizes = rank;
    const int64_t dims[] = {n, rank};
    Allocate(out_indices[o], dims, 2);
    Allocate(out_values[o], &n, 1);
    Allocate(out_shapes[o], &sizes, 1);
    std::copy_n(in.sizes(), rank, out_shapes[o].data());
    out_shapes[o][uint64_t(axis)] = parts.size(part);
    int64_t* to = out_indices[o].data();
    for (int64_t k = 0; k < n; ++k, to += rank) {
      std::copy_n(in.place(order[size_t(first + k)]), rank, to);
      to[axis] -= parts.begin(part);
    }
    CopySlices(f.f, values.v, out_values[o].v(), n, 1, [&](int64_t k) { return order[size_t(first + k)]; });
  }
}

// ---- SparseSlice ----

// Returns start or size: an entry for each axis, none negative.
Ints SliceEntries(const tw::In<int64_t>& v, const char* name, int rank) {
  if (v.rank() != 1 || v.dim(0) != rank)
    Invalid(std::string(name) + " " + DimsText(v.v) + " must have an entry for each of the " + std::to_string(rank) + " axes");
  const Ints entries = ReadInts(v.v, name);
  for (int i = 0; i < rank; ++i)
    if (entries[i] < 0)
      Invalid(std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(entries[i]) + "; it must not be negative");
  return entries;
}

void SparseSlice(tw::Frame f, tw::In<int64_t> indices, tw::In<tw::Any> values, tw::In<int64_t> shape, tw::In<int64_t> start,
                 tw::In<int64_t> size, tw::Out<int64_t> out_indices, tw::Out<tw::Any> out_values, tw::Out<int64_t> out_shape) {
  const SparseInput in(indices, values.v, shape, {"indices", "values", "shape"});
  const int rank = in.rank();
  const Ints from = SliceEntries(start, "start", rank), sizes = SliceEntries(size, "size", rank);
  tw::TempVector<int64_t> order(f);
  for (int64_t k = 0; k < in.count(); ++k) {
    bool inside = true;
    for (int i = 0; i < rank; ++i) {
      const int64_t at = in.place(k)[i];
      inside &= at >= from[i] && at - from[i] < sizes[i];
    }
    if (inside) order.push_back(k);
  }
  const int64_t n = int64_t(order.size()), n_sizes = rank;
  const int64_t dims[] = {n, rank};
  Allocate(out_indices, dims, 2);
  Allocate(out_values, &n, 1);
  Allocate(out_shape, &n_sizes, 1);
  for (int i = 0; i < rank; ++i) out_shape[uint64_t(i)] = in.size(i) > from[i] ? std::min(sizes[i], in.size(i) - from[i]) : 0;
  int64_t* to = out_indices.data();
  for (int64_t k : order)
    for (int i = 0; i < rank; ++i) *to++ = in.place(k)[i] - from[i];
  CopySlices(f.f, values.v, out_values.v(), n, 1, [&](int64_t k) { return order[size_t(k)]; });
}

void SparseSliceGrad(tw::Frame f, tw::In<tw::Any> grads, tw::In<int64_t> input_indices, tw::In<int64_t> input_start,
                     tw::In<int64_t> output_indices, tw::Out<tw::Any> val_grad) {
  const PlaceRows in = UncheckedPlaces(input_indices, "input_indices"), out = UncheckedPlaces(output_indices, "output_indices");
  if (in.rank != out.rank)
    Invalid("input_indices " + DimsText(input_indices.v) + " and output_indices " + DimsText(output_indices.v) +
            " must have equally many columns");
  if (grads.rank() != 1 || grads.dim(0) != out.count)
    Invalid("backprop_val_grad " + DimsText(grads.v) + " must be a vector of " + std::to_string(out.count) +
            ", the rows of output_indices");
  const Ints from = SliceEntries(input_start, "input_start", in.rank);
  Allocate(val_grad, &in.count, 1);
  FillZero(f.f, val_grad.v());
  int64_t k = 0;
  BySize(ElementBytes(grads.v->dtype), [&](auto element) {
    using E = decltype(element);
    for (int64_t i = 0; i < in.count && k < out.count; ++i) {
      bool same = true;
      for (int a = 0; a < in.rank; ++a) same &= in[i][a] >= from[a] && in[i][a] - from[a] == out[k][a];
      if (!same) continue;
      std::memcpy(val_grad.data() + i * int64_t(sizeof(E)), grads.data() + k * int64_t(sizeof(E)), sizeof(E));
      ++k;
    }
  });
  if (k < out.count)
    Invalid(PlaceText("output_indices", k, out[k], out.rank) + " is the place of no element of the slice, or stands in another order");
}

}  // namespace

void register_sparse_slice(tw::Plugin& p) {
  p.kernel<SparseConcat>("SparseConcat @CPU");
  p.kernel<SparseSplit>("SparseSplit @CPU");
  p.kernel<SparseSlice>("SparseSlice @CPU");
  p.kernel<SparseSliceGrad>("SparseSliceGrad @CPU");
}

}  // namespace thalweg::cpu
