// StridedSlice is Python's a[begin:end:stride, ..., newaxis, i]. StridedSliceGrad puts such a part
// back into zeros.
#include <algorithm>
#include <bit>

#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The five masks and the known values of the three vectors. Bit i of the masks describes entry i of
// the vectors.
struct Spec {
  uint64_t begin_mask, end_mask, ellipsis, new_axis, shrink;
  bool has_begin, has_end, has_strides;
  Dims begin, end, strides;
  size_t n;  // entries
};

bool Bit(uint64_t mask, size_t i) { return (mask >> i & 1) != 0; }

// Checks entry i, an index that removes its axis.
void CheckIndex(const Spec& spec, size_t i, int64_t size, size_t axis) {
  if (spec.has_strides && spec.strides[i] <= 0)
    Fail("'strides' is " + tw::text(spec.strides[i]) + " at entry " + std::to_string(i) +
         ", where an index and no range stands; make it 1");
  if (!spec.has_begin || !Known(size)) return;
  const int64_t at = spec.begin[i];
  if (at < -size || at >= size)
    Fail("index " + tw::text(at) + " is outside axis " + std::to_string(axis) + ", which has size " + tw::text(size));
}

// Returns how many elements the range of entry i takes from an axis of size `size`; -1 if unknown.
int64_t RangeSize(const Spec& spec, size_t i, int64_t size) {
  const bool from_start = Bit(spec.begin_mask, i), to_end = Bit(spec.end_mask, i);
  if (!spec.has_strides) return -1;
  const int64_t stride = spec.strides[i];
  if (stride == 0) Fail("'strides' is 0 at entry " + std::to_string(i) + "; a range needs a step");
  if (from_start && to_end && (stride == 1 || stride == -1)) return size;
  if (!Known(size) || (!from_start && !spec.has_begin) || (!to_end && !spec.has_end)) return -1;
  // Positions are clamped to the valid range for that direction, with the end one past the last
  // element.
  const int64_t lowest = stride > 0 ? 0 : -1, highest = stride > 0 ? size : size - 1;
  auto cut = [&](int64_t at) { return std::clamp(at < 0 ? at + size : at, lowest, highest); };
  const int64_t begin = from_start ? (stride > 0 ? lowest : highest) : cut(spec.begin[i]);
  const int64_t end = to_end ? (stride > 0 ? highest : lowest) : cut(spec.end[i]);
  const uint64_t way = stride > 0 ? static_cast<uint64_t>(end - begin) : static_cast<uint64_t>(begin - end);
  const uint64_t step = stride > 0 ? static_cast<uint64_t>(stride) : -static_cast<uint64_t>(stride);
  return (stride > 0 ? end <= begin : end >= begin) ? 0 : static_cast<int64_t>((way - 1) / step + 1);
}

// first: the input that holds 'begin'. Returns false if even the number of entries is unknown.
bool ReadSpec(const tw::Shape& s, uint32_t first, Spec* spec) {
  const char* names[] = {"begin", "end", "strides"};
  int64_t n = -1;
  for (uint32_t k = 0; k < 3; ++k) {
    WantVector(s, first + k, names[k]);
    if (s.known(first + k)) n = MergeSize(s, n, s.dim(first + k, 0), "the lengths of 'begin', 'end' and 'strides'");
  }
  if (!Known(n)) return false;
  if (n > 32) Fail("'begin' has " + tw::text(n) + " entries; the masks describe at most 32");
  auto mask = [&](const char* name) { return static_cast<uint64_t>(s.i(name)) & ((uint64_t{1} << n) - 1); };
  spec->begin_mask = mask("begin_mask");
  spec->end_mask = mask("end_mask");
  spec->ellipsis = mask("ellipsis_mask");
  spec->new_axis = mask("new_axis_mask");
  spec->shrink = mask("shrink_axis_mask");
  if (std::popcount(spec->ellipsis) > 1)
    Fail("'ellipsis_mask' is " + tw::text(s.i("ellipsis_mask")) + "; only one entry may be an ellipsis");
  spec->has_begin = s.value(first, &spec->begin);
  spec->has_end = s.value(first + 1, &spec->end);
  spec->has_strides = s.value(first + 2, &spec->strides);
  spec->n = static_cast<size_t>(n);
  return true;
}

// Returns the shape of the slice that `spec` takes from a tensor of shape `in`.
MaybeDims PartShape(const Spec& spec, const MaybeDims& in) {
  if (!in) return std::nullopt;
  size_t used = 0;  // number of axes that the entries consume
  for (size_t i = 0; i < spec.n; ++i) used += !Bit(spec.ellipsis, i) && !Bit(spec.new_axis, i);
  if (used > in->size())
    Fail("'begin' has entries for " + std::to_string(used) + " axes but the input is " + Text(in) + "; leave some out");
  Dims out;
  size_t axis = 0;
  auto copy_rest = [&] {
    for (size_t k = 0; k < in->size() - used; ++k) out.push_back((*in)[axis++]);
  };
  for (size_t i = 0; i < spec.n; ++i) {
    if (Bit(spec.ellipsis, i)) {
      copy_rest();
    } else if (Bit(spec.new_axis, i)) {
      out.push_back(1);
    } else if (Bit(spec.shrink, i)) {
      CheckIndex(spec, i, (*in)[axis], axis);
      ++axis;
    } else {
      out.push_back(RangeSize(spec, i, (*in)[axis++]));
    }
  }
  if (spec.ellipsis == 0) copy_rest();
  return out;
}

void SliceRule(const tw::Shape& s) {
  Spec spec;
  if (ReadSpec(s, 1, &spec)) Set(s, 0, PartShape(spec, In(s, 0)));
}

void GradRule(const tw::Shape& s) {
  const MaybeDims shape = ShapeValue(s, 0, "shape");
  Spec spec;
  if (ReadSpec(s, 1, &spec)) Merge(s, In(s, 4), PartShape(spec, shape), "the shape of 'dy' and that of the part it belongs to");
  Set(s, 0, shape);
}

struct Masks {
  int64_t begin, end, ellipsis, new_axis, shrink;
  explicit Masks(const tw::Grad& g)
      : begin(g.i("begin_mask")),
        end(g.i("end_mask")),
        ellipsis(g.i("ellipsis_mask")),
        new_axis(g.i("new_axis_mask")),
        shrink(g.i("shrink_axis_mask")) {}
};

tw_edge Emit(const tw::Grad& g, const char* op, const std::vector<tw_edge>& in) {
  const Masks m(g);
  return g.op(op, in,
              {{"begin_mask", m.begin},
               {"end_mask", m.end},
               {"ellipsis_mask", m.ellipsis},
               {"new_axis_mask", m.new_axis},
               {"shrink_axis_mask", m.shrink}});
}

void SliceGradient(const tw::Grad& g) {
  // The backward op has no int16 form.
  const uint32_t type = g.type_in(1) == TW_INT64 ? TW_INT64 : TW_INT32;
  g.dx(0, Emit(g, "StridedSliceGrad",
               {CastTo(g, g.shape(0), type), CastTo(g, g.x(1), type), CastTo(g, g.x(2), type), CastTo(g, g.x(3), type), g.dy()}));
}

void GradGradient(const tw::Grad& g) { g.dx(4, Emit(g, "StridedSlice", {g.dy(), g.x(1), g.x(2), g.x(3)})); }

#define MASKS "begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0; "

}  // namespace

void register_strided_slice(tw::Plugin& p) {
  p.op<SliceGradient, SliceRule>(
      "StridedSlice(input: T, begin: Index, end: Index, strides: Index) -> (output: T); T: type; Index: " OPS_INDEX_SHORT "; " MASKS
      "?data input; doc \"input[begin:end:strides] as in Python; bit i of a mask is about entry i\"");
  p.op<GradGradient, GradRule>(
      "StridedSliceGrad(shape: Index, begin: Index, end: Index, strides: Index, dy: T) -> (output: T); T: type; Index: " OPS_INDEX
      "; " MASKS "doc \"zeros of that shape with dy where StridedSlice would read\"");
}

}  // namespace thalweg::ops
