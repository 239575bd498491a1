// StringNGrams, ReduceJoin and UnsortedSegmentJoin.
#include <algorithm>
#include <string>
#include <vector>

#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/ragged.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class NGrams {
 public:
  explicit NGrams(const tw::Node& n)
      : separator_(n.s("separator")),
        left_(n.s("left_pad")),
        right_(n.s("right_pad")),
        widths_(n.ints("ngram_widths")),
        padding_(n.i("pad_width")),
        keep_short_(n.b("preserve_short_sequences")) {}

  void operator()(tw::Frame f, tw::In<tw_string> data, tw::In<tw::Any> splits, tw::Out<tw_string> grams,
                  tw::Out<tw::Any> out_splits) const {
    const int64_t entries = int64_t(splits.size());
    if (data.rank() != 1) Invalid("data " + DimsText(data.v) + " must be a vector");
    if (splits.rank() != 1 || entries > 0 || data.size() > 0) CheckSplits(splits.v, int64_t(data.size()), "data_splits");
    Allocate(out_splits, &entries, 1);
    int64_t n = 0;
    for (int64_t row = 0; row < entries; ++row) {
      if (row > 0 && __builtin_add_overflow(n, CountOf(Length(splits, row - 1)), &n)) Invalid("there are too many n-grams");
      CheckCountable(splits.v->dtype, n);
      PutIndex(out_splits.v(), uint64_t(row), n);
    }
    Allocate(grams, &n, 1);
    tw::TempString text(f);
    uint64_t to = 0;
    for (int64_t row = 0; row + 1 < entries; ++row) {
      const int64_t length = Length(splits, row), first = IndexAt(splits.v, uint64_t(row));
      const uint64_t before = to;
      for (int64_t width : widths_) {
        const int64_t pad = Padding(width), count = Count(length, width);
        for (int64_t k = 0; k < count; ++k) grams.set(to++, Gram(data, first, length, k - pad, width, &text));
      }
      if (keep_short_ && to == before && length > 0) {
        if (padding_ < 0) Invalid("preserve_short_sequences needs a pad_width of at least 0");
        grams.set(to++, Gram(data, first, length, -padding_, length + 2 * padding_, &text));
      }
    }
  }

 private:
  static int64_t Length(const tw::In<tw::Any>& splits, int64_t row) {
    return IndexAt(splits.v, uint64_t(row) + 1) - IndexAt(splits.v, uint64_t(row));
  }
  int64_t Padding(int64_t width) const { return std::min(padding_ < 0 ? width - 1 : padding_, width - 1); }
  int64_t Count(int64_t length, int64_t width) const { return std::max<int64_t>(0, length + 2 * Padding(width) - width + 1); }
  int64_t CountOf(int64_t length) const {
    int64_t n = 0;
    for (int64_t width : widths_) n += Count(length, width);
    return keep_short_ && n == 0 && length > 0 ? 1 : n;
  }

  // Joins places `from` to `from` + width - 1 of a row; places outside it are padding.
  std::string_view Gram(const tw::In<tw_string>& data, int64_t first, int64_t length, int64_t from, int64_t width,
                        tw::TempString* text) const {
    text->clear();
    for (int64_t at = from; at < from + width; ++at) {
      if (at > from) *text += separator_;
      *text += at < 0 ? std::string_view(left_) : at >= length ? std::string_view(right_) : View(data[uint64_t(first + at)]);
    }
    return *text;
  }

  std::string separator_, left_, right_;
  std::vector<int64_t> widths_;
  int64_t padding_;
  bool keep_short_;
};

class ReduceJoin {
 public:
  explicit ReduceJoin(const tw::Node& n) : separator_(n.s("separator")), keep_(n.b("keep_dims")) {}

  void operator()(tw::Frame f, tw::In<tw_string> inputs, tw::In<int32_t> reduction_indices, tw::Out<tw_string> output) const {
    const int rank = inputs.rank();
    Ints axes;
    bool reduced[kMaxRank] = {};
    for (uint64_t i = 0; i < reduction_indices.size(); ++i) {
      const int axis = Axis(reduction_indices[i], rank, "reduction_indices");
      if (reduced[axis]) Invalid("reduction_indices names axis " + std::to_string(axis) + " twice");
      reduced[axis] = true;
      axes.push(axis);
    }
    Ints dims, kept;
    for (int axis = 0; axis < rank; ++axis) {
      if (!reduced[axis]) kept.push(axis);
      if (!reduced[axis] || keep_) dims.push(reduced[axis] ? 1 : inputs.dim(axis));
    }
    Allocate(output, dims.at, dims.n);
    const Ints strides = DenseStrides(inputs.dims(), rank);
    int64_t count = 1;
    for (int k = 0; k < axes.n; ++k) count *= inputs.dim(int(axes[k]));
    tw::TempString text(f);
    for (uint64_t o = 0; o < output.size(); ++o) {
      const int64_t from = Offset(int64_t(o), kept, false, inputs, strides);
      text.clear();
      for (int64_t k = 0; k < count; ++k) {
        if (k > 0) text += separator_;
        text += View(inputs[uint64_t(from + Offset(k, axes, true, inputs, strides))]);
      }
      output.set(o, text);
    }
  }

 private:
  // Returns the offset of place `k` in the box of these axes. first_fastest: which of the axes runs
  // fastest. The axes of a reduction are counted off in their order; kept axes are row-major.
  static int64_t Offset(int64_t k, const Ints& axes, bool first_fastest, const tw::In<tw_string>& in, const Ints& strides) {
    int64_t offset = 0;
    for (int i = 0; i < axes.n; ++i) {
      const int axis = int(axes[first_fastest ? i : axes.n - 1 - i]);
      offset += k % in.dim(axis) * strides[axis];
      k /= in.dim(axis);
    }
    return offset;
  }

  std::string separator_;
  bool keep_;
};

class SegmentJoin {
 public:
  explicit SegmentJoin(const tw::Node& n) : separator_(n.s("separator")) {}

  void operator()(tw::Frame f, tw::In<tw_string> inputs, tw::In<tw::Any> ids, tw::In<tw::Any> num_segments,
                  tw::Out<tw_string> output) const {
    const int64_t segments = IndexAt(num_segments.v, 0), n = int64_t(ids.size());
    if (segments < 0) Invalid("num_segments is " + std::to_string(segments) + "; it must not be negative");
    if (ids.rank() > inputs.rank() || !std::equal(ids.dims(), ids.dims() + ids.rank(), inputs.dims()))
      Invalid("segment_ids " + DimsText(ids.v) + " are not the first axes of inputs " + DimsText(inputs.v));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t id = IndexAt(ids.v, uint64_t(i));
      if (id < 0 || id >= segments)
        Invalid("segment_ids" + PositionText(ids.v, uint64_t(i)) + " is " + std::to_string(id) + "; it must be in [0, " +
                std::to_string(segments) + ")");
    }
    Ints dims;
    dims.push(segments);
    for (int32_t axis = ids.rank(); axis < inputs.rank(); ++axis) dims.push(inputs.dim(axis));
    Allocate(output, dims.at, dims.n);
    const int64_t inner = Product(inputs.dims(), ids.rank(), inputs.rank());
    // The numbers of ids, by segment, in order.
    tw::TempVector<int64_t> order(size_t(n), f);
    for (int64_t i = 0; i < n; ++i) order[size_t(i)] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return IndexAt(ids.v, uint64_t(a)) < IndexAt(ids.v, uint64_t(b)); });
    tw::TempString text(f);
    for (size_t k = 0; k < order.size();) {
      const int64_t id = IndexAt(ids.v, uint64_t(order[k]));
      size_t end = k;
      while (end < order.size() && IndexAt(ids.v, uint64_t(order[end])) == id) ++end;
      for (int64_t j = 0; j < inner; ++j) {
        text.clear();
        for (size_t i = k; i < end; ++i) {
          if (i > k) text += separator_;
          text += View(inputs[uint64_t(order[i] * inner + j)]);
        }
        output.set(uint64_t(id * inner + j), text);
      }
      k = end;
    }
  }

 private:
  std::string separator_;
};

}  // namespace

void register_string_groups(tw::Plugin& p) {
  p.kernel<NGrams>("StringNGrams @CPU");
  p.kernel<ReduceJoin>("ReduceJoin @CPU");
  p.kernel<SegmentJoin>("UnsortedSegmentJoin @CPU");
}

}  // namespace thalweg::cpu
