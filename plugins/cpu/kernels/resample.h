// Images whose pixels are weighted sums of the pixels of another image, with weights for rows and
// for columns: output = rows * image * columns'. The gradient is the same with transposed weights.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_RESAMPLE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_RESAMPLE_H_

#include <algorithm>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"

namespace thalweg::cpu {

// A sparse matrix [out, in]: entries [begin[o], begin[o + 1]) belong to result o.
class AxisWeights {
 public:
  struct Entry {
    int64_t in;
    float weight;
  };
  AxisWeights(const tw_frame* f, int64_t in) : f_(f), in_(in), begin_(f), entries_(f) { begin_.push_back(0); }

  // Adds an entry to the last result.
  void Add(int64_t in, float weight) { entries_.push_back({in, weight}); }
  // Ends a result.
  void Close() { begin_.push_back(int64_t(entries_.size())); }

  int64_t in() const { return in_; }
  int64_t out() const { return int64_t(begin_.size()) - 1; }
  const Entry* begin(int64_t o) const { return entries_.data() + begin_[size_t(o)]; }
  const Entry* end(int64_t o) const { return entries_.data() + begin_[size_t(o) + 1]; }
  int64_t size() const { return int64_t(entries_.size()); }

  AxisWeights Transposed() const {
    AxisWeights t(f_, out());
    t.begin_.assign(size_t(in_) + 1, 0);
    t.entries_.resize(entries_.size());
    for (const Entry& e : entries_) ++t.begin_[size_t(e.in) + 1];
    for (int64_t i = 0; i < in_; ++i) t.begin_[size_t(i) + 1] += t.begin_[size_t(i)];
    tw::TempVector<int64_t> next(f_);
    next.assign(t.begin_.begin(), t.begin_.end());
    for (int64_t o = 0; o < out(); ++o)
      for (const Entry* e = begin(o); e != end(o); ++e) t.entries_[size_t(next[size_t(e->in)]++)] = {o, e->weight};
    return t;
  }

 private:
  const tw_frame* f_;
  int64_t in_;
  tw::TempVector<int64_t> begin_;
  tw::TempVector<Entry> entries_;
};

// Converts n elements of a tensor of real numbers, starting at `at`, to Number (float or double) and
// back.
template <class T, class Number>
void ToNumbers(const char* from, int64_t at, int64_t n, Number* to) {
  const T* x = reinterpret_cast<const T*>(from) + at;
  for (int64_t i = 0; i < n; ++i) to[i] = Number(x[i]);
}
template <class Number>
void ReadNumbers(const tw_view* v, int64_t at, int64_t n, Number* to) {
  switch (v->dtype) {
    case TW_FLOAT: return ToNumbers<float>(Bytes(v), at, n, to);
    case TW_DOUBLE: return ToNumbers<double>(Bytes(v), at, n, to);
    case TW_HALF: return ToNumbers<half>(Bytes(v), at, n, to);
    case TW_BFLOAT16: return ToNumbers<bfloat16>(Bytes(v), at, n, to);
    case TW_INT8: return ToNumbers<int8_t>(Bytes(v), at, n, to);
    case TW_UINT8: return ToNumbers<uint8_t>(Bytes(v), at, n, to);
    case TW_INT16: return ToNumbers<int16_t>(Bytes(v), at, n, to);
    case TW_UINT16: return ToNumbers<uint16_t>(Bytes(v), at, n, to);
    case TW_INT32: return ToNumbers<int32_t>(Bytes(v), at, n, to);
    default: return ToNumbers<int64_t>(Bytes(v), at, n, to);
  }
}
template <class T, class Number>
void FromNumbers(char* to, int64_t at, int64_t n, const Number* from) {
  T* x = reinterpret_cast<T*>(to) + at;
  for (int64_t i = 0; i < n; ++i) x[i] = T(from[i]);
}
template <class Number>
void WriteNumbers(const tw_view* v, int64_t at, int64_t n, const Number* from) {
  switch (v->dtype) {
    case TW_FLOAT: return FromNumbers<float>(Bytes(v), at, n, from);
    case TW_DOUBLE: return FromNumbers<double>(Bytes(v), at, n, from);
    case TW_HALF: return FromNumbers<half>(Bytes(v), at, n, from);
    default: return FromNumbers<bfloat16>(Bytes(v), at, n, from);
  }
}

// Makes each image of `to` from that of `from`; both are [batch, height, width, channels]. Sum: the
// type to compute in.
template <class Sum>
void ResampleIn(const tw_frame* f, const tw_view* from, const AxisWeights& rows, const AxisWeights& columns, const tw_view* to) {
  if (from->rank != 4 || to->rank != 4 || from->dims[0] != to->dims[0] || from->dims[3] != to->dims[3] || from->dims[1] != rows.in() ||
      from->dims[2] != columns.in() || to->dims[1] != rows.out() || to->dims[2] != columns.out())
    Invalid("images " + DimsText(from) + " and " + DimsText(to) + " do not fit together");
  if (to->count == 0) return;
  const int64_t height = rows.in(), channels = to->dims[3], row = columns.in() * channels, out_row = columns.out() * channels;
  const int64_t share = rows.size() / rows.out() + 1;
  ParallelFor(f, to->dims[0] * rows.out(), Cost(row, share) + Cost(columns.size(), channels), [&](int64_t begin, int64_t end) {
    const TempArray<Sum> line(f, size_t(row)), sum(f, size_t(row)), made(f, size_t(out_row));
    for (int64_t r = begin; r < end; ++r) {
      const int64_t image = r / rows.out(), o = r % rows.out();
      std::fill_n(sum.get(), row, Sum(0));
      for (const AxisWeights::Entry* e = rows.begin(o); e != rows.end(o); ++e) {
        ReadNumbers(from, (image * height + e->in) * row, row, line.get());
        for (int64_t i = 0; i < row; ++i) sum[size_t(i)] += Sum(e->weight) * line[size_t(i)];
      }
      Sum* result = made.get();
      for (int64_t x = 0; x < columns.out(); ++x, result += channels) {
        std::fill_n(result, channels, Sum(0));
        for (const AxisWeights::Entry* e = columns.begin(x); e != columns.end(x); ++e) {
          const Sum* pixel = sum.get() + e->in * channels;
          for (int64_t c = 0; c < channels; ++c) result[c] += Sum(e->weight) * pixel[c];
        }
      }
      WriteNumbers(to, r * out_row, out_row, made.get());
    }
  });
}

// The same in double for results of double, else in float.
inline void Resample(const tw_frame* f, const tw_view* from, const AxisWeights& rows, const AxisWeights& columns, const tw_view* to) {
  if (to->dtype == TW_DOUBLE)
    ResampleIn<double>(f, from, rows, columns, to);
  else
    ResampleIn<float>(f, from, rows, columns, to);
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_RESAMPLE_H_
