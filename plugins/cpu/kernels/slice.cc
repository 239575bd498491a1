// Slice, StridedSlice and its gradient: boxes cut out of a tensor, or put into a tensor of zeros.
#include <algorithm>

#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void Slice(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> begin, tw::In<tw::Any> size, tw::Out<tw::Any> output) {
  const int rank = input.rank();
  if (begin.size() != uint64_t(rank) || size.size() != uint64_t(rank)) {
    throw tw::Error{TW_INTERNAL, "begin has " + std::to_string(begin.size()) + " and size " + std::to_string(size.size()) +
                                     " entries for input of shape " + DimsText(input.v)};
  }
  const Ints from = DenseStrides(input.dims(), rank), to = DenseStrides(output.dims(), rank);
  int64_t at = 0;
  Box box;
  for (int i = 0; i < rank; ++i) {
    const int64_t dim = input.dim(i), b = IndexAt(begin.v, uint64_t(i));
    int64_t n = IndexAt(size.v, uint64_t(i));
    if (n == -1 && b >= 0 && b <= dim) n = dim - b;
    if (b < 0 || n < 0 || b > dim || n > dim - b) {
      throw tw::Error{TW_INTERNAL, "axis " + std::to_string(i) + ": begin " + std::to_string(b) + " and size " + std::to_string(n) +
                                       " leave the input of shape " + DimsText(input.v)};
    }
    at += b * from[i];
    box.Add(n, from[i], to[i]);
  }
  CutBox(f.f, box, f.f->in_at[0], at, output);
}

// The begin, step and number of elements of a strided slice along one axis.
struct Stride {
  int64_t begin, step, count;
};

// The bit masks of StridedSlice, one bit per entry of begin, end and strides.
struct Masks {
  uint64_t begin, end, ellipsis, new_axis, shrink;
  explicit Masks(const tw::Node& n)
      : begin(uint64_t(n.i("begin_mask"))),
        end(uint64_t(n.i("end_mask"))),
        ellipsis(uint64_t(n.i("ellipsis_mask"))),
        new_axis(uint64_t(n.i("new_axis_mask"))),
        shrink(uint64_t(n.i("shrink_axis_mask"))) {
    if (ellipsis & (ellipsis - 1)) Invalid("ellipsis_mask " + std::to_string(ellipsis) + " asks for more than one ellipsis");
  }
};

// x[i]: one element; its axis is dropped.
Stride OneIndex(int64_t i, int64_t step, int64_t dim, int axis) {
  if (step <= 0) Invalid("axis " + std::to_string(axis) + ": a single index needs a stride above 0, not " + std::to_string(step));
  if (i < -dim || i >= dim) {
    Invalid("axis " + std::to_string(axis) + ": index " + std::to_string(i) + " is not in [" + std::to_string(-dim) + ", " +
            std::to_string(dim) + ")");
  }
  return {i < 0 ? i + dim : i, 1, 1};
}

// x[begin:end:step] with Python's meaning. A masked bound reaches as far as the step leads.
Stride OneRange(int64_t begin, bool no_begin, int64_t end, bool no_end, int64_t step, int64_t dim, int axis) {
  if (step == 0) throw tw::Error{TW_INTERNAL, "axis " + std::to_string(axis) + ": the stride is 0"};
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
  auto bound = [&](int64_t x) { return std::clamp(x < 0 ? (x < -dim ? low : x + dim) : x, low, high); };
  const int64_t b = no_begin ? (step > 0 ? low : high) : bound(begin), e = no_end ? (step > 0 ? high : low) : bound(end);
  const int64_t span = step > 0 ? e - b : b - e;
  if (span <= 0) return {0, 1, 0};
  // The unsigned negation is also right for the most negative step.
  const uint64_t stride = step > 0 ? uint64_t(step) : uint64_t(0) - uint64_t(step);
  return {b, step, int64_t((uint64_t(span) + stride - 1) / stride)};
}

// Computes the slice along every axis of a tensor with these dims.
void Strides(const Masks& m, const Ints& begin, const Ints& end, const Ints& step, const int64_t* dims, int rank, Stride* out) {
  const int n = begin.n;
  if (end.n != n || step.n != n) {
    throw tw::Error{TW_INTERNAL, "begin, end and strides have " + std::to_string(n) + ", " + std::to_string(end.n) + " and " +
                                     std::to_string(step.n) + " entries"};
  }
  auto bit = [](uint64_t mask, int i) { return i < 64 && (mask >> i & 1); };
  int wanted = 0;  // the axes that the entries cover
  for (int i = 0; i < n; ++i) wanted += !bit(m.ellipsis, i) && !bit(m.new_axis, i);
  if (wanted > rank)
    throw tw::Error{TW_INTERNAL,
                    std::to_string(wanted) + " slices for a tensor of shape " + tw::text(dims, rank) + ", which has fewer axes"};
  int axis = 0;
  auto whole = [&](int axes) {
    for (; axes > 0; --axes, ++axis) out[axis] = {0, 1, dims[axis]};
  };
  for (int i = 0; i < n; ++i) {
    if (bit(m.ellipsis, i)) {
      whole(rank - wanted);
    } else if (!bit(m.new_axis, i)) {
      out[axis] = bit(m.shrink, i) ? OneIndex(begin[i], step[i], dims[axis], axis)
                                   : OneRange(begin[i], bit(m.begin, i), end[i], bit(m.end, i), step[i], dims[axis], axis);
      ++axis;
    }
  }
  whole(rank - axis);
}

// The selected elements: dense on one side and strided on the other.
struct Picked {
  Ints dense, strided;
  int64_t at = 0, count = 1;
  Stride s[kMaxRank];
  Picked(const Masks& m, const tw_view* begin, const tw_view* end, const tw_view* step, const int64_t* dims, int rank) {
    Strides(m, ReadInts(begin, "begin"), ReadInts(end, "end"), ReadInts(step, "strides"), dims, rank, s);
    strided = DenseStrides(dims, rank);
    dense.n = rank;
    for (int i = rank; i-- > 0;) {
      dense[i] = count;
      count *= s[i].count;
      at += s[i].begin * strided[i];
      // With one element no step is taken, and the step's product with the stride could overflow.
      strided[i] = s[i].count > 1 ? strided[i] * s[i].step : 0;
    }
  }
  void CheckCount(const tw_view* v, const char* what) const {
    if (int64_t(v->count) != count)
      throw tw::Error{TW_INTERNAL, "the slice has " + std::to_string(count) + " elements but " + what + " is " + DimsText(v)};
  }
};

class StridedSlice {
 public:
  explicit StridedSlice(const tw::Node& n) : masks_(n) {}
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> begin, tw::In<tw::Any> end, tw::In<tw::Any> strides,
                  tw::Out<tw::Any> output) const {
    const Picked p(masks_, begin.v, end.v, strides.v, input.dims(), input.rank());
    p.CheckCount(output.v(), "the planned output");
    Box box;
    for (int i = 0; i < input.rank(); ++i) box.Add(p.s[i].count, p.strided[i], p.dense[i]);
    CutBox(f.f, box, f.f->in_at[0], p.at, output);
  }

 private:
  Masks masks_;
};

class StridedSliceGrad {
 public:
  explicit StridedSliceGrad(const tw::Node& n) : masks_(n) {}
  void operator()(tw::Frame f, tw::In<tw::Any> shape, tw::In<tw::Any> begin, tw::In<tw::Any> end, tw::In<tw::Any> strides,
                  tw::In<tw::Any> dy, tw::Out<tw::Any> output) const {
    const Ints dims = ReadInts(shape.v, "shape");
    Allocate(output, dims.at, dims.n);
    const Picked p(masks_, begin.v, end.v, strides.v, dims.at, dims.n);
    p.CheckCount(dy.v, "dy");
    FillZero(f.f, output.v());
    Box box;
    for (int i = 0; i < dims.n; ++i) box.Add(p.s[i].count, p.dense[i], p.strided[i]);
    CopyBox(f.f, box, dy.v, 0, output.v(), p.at);
  }

 private:
  Masks masks_;
};

}  // namespace

void register_slice(tw::Plugin& p) {
  p.kernel<Slice>("Slice @CPU");
  p.kernel<StridedSlice>("StridedSlice @CPU");
  p.kernel<StridedSliceGrad>("StridedSliceGrad @CPU");
}

}  // namespace thalweg::cpu
