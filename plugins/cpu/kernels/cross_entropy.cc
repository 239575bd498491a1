// SoftmaxCrossEntropyWithLogits and SparseSoftmaxCrossEntropyWithLogits. One pass over the rows
// computes the loss of each row and its gradient with respect to the features, softmax(features) -
// labels.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"
#include "kernels/row_sums.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kElementCost = 24;  // in units of ParallelFor

// exps[r, c] becomes exp(exps[r, c]), sums[r] its sum along the row, and log_sums[r] the logarithm
// of sums[r]. REQUIRES: rows <= kRowBlock.
void ExpRows(const RowTables& t, float* exps, float* sums, float* log_sums, int64_t rows, int64_t columns) {
  t.elementwise->unary_float.exp.loop(exps, exps, rows * columns);
  t.vector->row_sums(exps, sums, rows, columns);
  t.elementwise->unary_float.log.loop(sums, log_sums, rows);
}

int64_t RowsTogether(int64_t columns) { return std::max<int64_t>(1, kRowBlock / columns); }

// A matrix whose axes may be repeated: element (r, c) is at data[r * row + c * column].
template <class T>
struct Spread {
  const T* data;
  int64_t row, column;
  T operator()(int64_t r, int64_t c) const { return data[r * row + c * column]; }
  bool dense(int64_t columns) const { return row == columns && column == 1; }
};

// Returns v as a [rows, columns] matrix; axes of size 1 repeat.
template <class T>
Spread<T> SpreadTo(const tw::In<T>& v, int64_t rows, int64_t columns, const char* name) {
  if (v.rank() != 2 || (v.dim(0) != rows && v.dim(0) != 1) || (v.dim(1) != columns && v.dim(1) != 1))
    Invalid(std::string(name) + " " + DimsText(v.v) + " must be a matrix that broadcasts to [" + tw::text(rows) + ", " + tw::text(columns) +
            "]");
  return {v.data(), v.dim(0) == 1 && rows != 1 ? 0 : v.dim(1), v.dim(1) == 1 && columns != 1 ? 0 : 1};
}

void EntropyRows(const RowTables& t, const float* features, const float* labels, float* loss, float* backprop, int64_t rows,
                 int64_t columns) {
  float weights[kRowBlock], dots[kRowBlock], sums[kRowBlock], log_sums[kRowBlock];
  t.vector->shift_rows(features, backprop, rows, columns);
  t.vector->label_sums(backprop, labels, weights, dots, rows, columns);
  ExpRows(t, backprop, sums, log_sums, rows, columns);
  for (int64_t r = 0; r < rows; ++r) loss[r] = weights[r] * log_sums[r] - dots[r];
  t.vector->softmax_less_labels(backprop, sums, labels, backprop, rows, columns);
}

// Computes rows [begin, end). row: memory for one row, used if axes are repeated.
void Entropy(const RowTables& t, Spread<float> features, Spread<float> labels, float* loss, float* backprop, int64_t begin, int64_t end,
             int64_t columns, float* row) {
  const bool dense = features.dense(columns) && labels.dense(columns);
  const int64_t together = dense ? RowsTogether(columns) : 1;
  for (int64_t r = begin; r < end; r += together) {
    const int64_t rows = std::min(together, end - r);
    float* to = backprop + r * columns;
    const float *from = features.data + r * features.row, *want = labels.data + r * labels.row;
    if (!dense) {  // rare: write the repeated elements out
      for (int64_t c = 0; c < columns; ++c) to[c] = features(r, c);
      for (int64_t c = 0; c < columns; ++c) row[c] = labels(r, c);
      from = to;
      want = row;
    }
    EntropyRows(t, from, want, loss + r, to, rows, columns);
  }
}

// Computes the largest element of a row and the sum of exponentials relative to it.
template <class T>
void RowFacts(Spread<T> features, int64_t r, int64_t columns, Wide<T>* most, Wide<T>* sum) {
  *most = Wide<T>(features(r, 0));
  for (int64_t c = 1; c < columns; ++c) *most = std::max(*most, Wide<T>(features(r, c)));
  *sum = 0;
  for (int64_t c = 0; c < columns; ++c) *sum += std::exp(Wide<T>(features(r, c)) - *most);
}

template <class T>
void Entropy(const RowTables&, Spread<T> features, Spread<T> labels, T* loss, T* backprop, int64_t begin, int64_t end, int64_t columns,
             T* /*row*/) {
  for (int64_t r = begin; r < end; ++r) {
    Wide<T> most, sum, total = 0;
    RowFacts(features, r, columns, &most, &sum);
    const Wide<T> log_sum = std::log(sum);
    for (int64_t c = 0; c < columns; ++c) {
      const Wide<T> label = Wide<T>(labels(r, c)), shifted = Wide<T>(features(r, c)) - most;
      if (label != 0) total += label * (log_sum - shifted);
      backprop[r * columns + c] = T(std::exp(shifted) / sum - label);
    }
    loss[r] = T(total);
  }
}

template <class T>
class CrossEntropy {
 public:
  explicit CrossEntropy(const tw::Node& n) : tables_(RowTablesFor(n.host())) {}

  void operator()(tw::Frame frame, tw::In<T> features, tw::In<T> labels, tw::Out<T> loss, tw::Out<T> backprop) const {
    if (backprop.rank() != 2) Invalid("features " + DimsText(features.v) + " must be a matrix");
    const int64_t rows = backprop.dim(0), columns = backprop.dim(1);
    const Spread<T> x = SpreadTo(features, rows, columns, "features"), want = SpreadTo(labels, rows, columns, "labels");
    if (int64_t(loss.size()) != rows) Invalid("the loss must have one element for each of the " + tw::text(rows) + " rows");
    if (backprop.size() == 0) {
      std::fill(loss.data(), loss.data() + rows, T(0));
      return;
    }
    // Repeated axes need memory of their own, whose allocation may fail; a parallel part must not
    // fail.
    if (!x.dense(columns) || !want.dense(columns)) {
      tw::TempVector<T> row(std::is_same_v<T, float> ? size_t(columns) : 0, frame);
      return Entropy(tables_, x, want, loss.data(), backprop.data(), 0, rows, columns, row.data());
    }
    ParallelFor(frame.f, rows, Cost(columns, kElementCost), [&](int64_t begin, int64_t end) {
      Entropy(tables_, x, want, loss.data(), backprop.data(), begin, end, columns, static_cast<T*>(nullptr));
    });
  }

 private:
  RowTables tables_;
};

template <class I>
void SparseEntropy(const RowTables& t, const float* features, const I* labels, float* loss, float* backprop, int64_t begin, int64_t end,
                   int64_t columns) {
  const int64_t together = RowsTogether(columns);
  for (int64_t r = begin; r < end; r += together) {
    const int64_t rows = std::min(together, end - r);
    float sums[kRowBlock], log_sums[kRowBlock], chosen[kRowBlock];
    float* to = backprop + r * columns;
    t.vector->shift_rows(features + r * columns, to, rows, columns);
    for (int64_t i = 0; i < rows; ++i) chosen[i] = to[i * columns + int64_t(labels[r + i])];
    ExpRows(t, to, sums, log_sums, rows, columns);
    t.vector->normalise_rows(to, to, rows, columns);
    for (int64_t i = 0; i < rows; ++i) {
      loss[r + i] = log_sums[i] - chosen[i];
      to[i * columns + int64_t(labels[r + i])] -= 1;
    }
  }
}

template <class T, class I>
void SparseEntropy(const RowTables&, const T* features, const I* labels, T* loss, T* backprop, int64_t begin, int64_t end,
                   int64_t columns) {
  const Spread<T> x{features, columns, 1};
  for (int64_t r = begin; r < end; ++r) {
    Wide<T> most, sum;
    RowFacts(x, r, columns, &most, &sum);
    const int64_t label = int64_t(labels[r]);
    loss[r] = T(std::log(sum) - (Wide<T>(x(r, label)) - most));
    for (int64_t c = 0; c < columns; ++c) backprop[r * columns + c] = T(std::exp(Wide<T>(x(r, c)) - most) / sum - Wide<T>(c == label));
  }
}

template <class T, class I>
class SparseCrossEntropy {
 public:
  explicit SparseCrossEntropy(const tw::Node& n) : tables_(RowTablesFor(n.host())) {}

  void operator()(tw::Frame frame, tw::In<T> features, tw::In<I> labels, tw::Out<T> loss, tw::Out<T> backprop) const {
    if (features.rank() != 2 || labels.rank() != 1 || labels.dim(0) != features.dim(0))
      Invalid("features " + DimsText(features.v) + " must be a matrix and labels " + DimsText(labels.v) +
              " have one entry for each of its rows");
    const int64_t rows = features.dim(0), columns = features.dim(1);
    for (int64_t r = 0; r < rows; ++r)
      if (labels[uint64_t(r)] < 0 || int64_t(labels[uint64_t(r)]) >= columns)
        Invalid("labels[" + tw::text(r) + "] is " + tw::text(int64_t(labels[uint64_t(r)])) + ", outside [0, " + tw::text(columns) +
                "), the classes that features " + DimsText(features.v) + " has");
    ParallelFor(frame.f, rows, Cost(columns, kElementCost), [&](int64_t begin, int64_t end) {
      SparseEntropy(tables_, features.data(), labels.data(), loss.data(), backprop.data(), begin, end, columns);
    });
  }

 private:
  RowTables tables_;
};

}  // namespace

void register_cross_entropy(tw::Plugin& p) {
  p.kernel<CrossEntropy<float>, CrossEntropy<double>, CrossEntropy<half>, CrossEntropy<bfloat16>>(
      "SoftmaxCrossEntropyWithLogits @CPU; inplace backprop=features");
  constexpr const char* kSparse = "SparseSoftmaxCrossEntropyWithLogits @CPU; inplace backprop=features";
  p.kernel<SparseCrossEntropy<float, int32_t>, SparseCrossEntropy<double, int32_t>>(kSparse);
  p.kernel<SparseCrossEntropy<half, int32_t>, SparseCrossEntropy<bfloat16, int32_t>>(kSparse);
  p.kernel<SparseCrossEntropy<float, int64_t>, SparseCrossEntropy<double, int64_t>>(kSparse);
  p.kernel<SparseCrossEntropy<half, int64_t>, SparseCrossEntropy<bfloat16, int64_t>>(kSparse);
}

}  // namespace thalweg::cpu
