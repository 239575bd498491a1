// SparseFillEmptyRows and its gradient, SparseReshape, SparseCross and SparseCrossV2. Hashes are
// FarmHash's Fingerprint64, combined as TensorFlow's FingerprintCat64 does, so that stored models
// find their buckets.
#include <farmhash.h>

#include <algorithm>
#include <string>

#include "kernels/common/arithmetic.h"
#include "kernels/common/copy.h"
#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Refuses places that do not lie in the sizes.
void CheckSparsePlaces(const tw::In<int64_t>& indices, const tw::In<int64_t>& sizes, const std::string& name) {
  if (indices.rank() != 2 || sizes.rank() != 1 || indices.dim(1) != sizes.dim(0))
    Invalid(name + " " + DimsText(indices.v) + " must be a matrix with a column for each of the sizes, which are " + DimsText(sizes.v));
  const int64_t rank = sizes.dim(0);
  for (int64_t k = 0; k < rank; ++k)
    if (sizes[uint64_t(k)] < 0)
      Invalid("the size of axis " + std::to_string(k) + " is " + std::to_string(sizes[uint64_t(k)]) + ", below 0");
  for (uint64_t i = 0; i < indices.size(); ++i) {
    const int64_t at = indices[i], size = sizes[i % uint64_t(rank)];
    if (at < 0 || at >= size)
      Invalid(name + PositionText(indices.v, i) + " is " + std::to_string(at) + "; it must be in [0, " + std::to_string(size) + ")");
  }
}

// ---- Rows without elements ----

void FillRows(tw::Frame f, tw::In<int64_t> indices, tw::In<tw::Any> values, tw::In<int64_t> sizes, tw::In<tw::Any> default_value,
              tw::Out<int64_t> out_indices, tw::Out<tw::Any> out_values, tw::Out<bool> empty, tw::Out<int64_t> back) {
  CheckSparsePlaces(indices, sizes, "indices");
  const int64_t n = indices.dim(0), rank = sizes.dim(0);
  if (rank == 0) Invalid("dense_shape is empty; rows need at least one axis");
  if (values.rank() != 1 || values.dim(0) != n) Invalid("values " + DimsText(values.v) + " must be a vector of " + std::to_string(n));
  if (default_value.v->count != 1) Invalid("default_value " + DimsText(default_value.v) + " must be a scalar");
  const int64_t rows = sizes[0];
  Allocate(empty, &rows, 1);
  Allocate(back, &n, 1);
  // next[r]: the place of the next element of row r in the output.
  tw::TempVector<int64_t> next(size_t(rows), 0, f);
  for (int64_t i = 0; i < n; ++i) ++next[size_t(indices[uint64_t(i * rank)])];
  int64_t total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t& count = next[size_t(row)];
    empty[uint64_t(row)] = count == 0;
    const int64_t taken = std::max<int64_t>(1, count);
    count = total;
    total += taken;
  }
  const int64_t pairs[] = {total, rank};
  Allocate(out_indices, pairs, 2);
  Allocate(out_values, &total, 1);
  CheckMovable(values.v->dtype);
  for (int64_t row = 0; row < rows; ++row) {
    if (!empty[uint64_t(row)]) continue;
    const int64_t to = next[size_t(row)];
    std::fill_n(out_indices.data() + to * rank, rank, 0);
    out_indices[uint64_t(to * rank)] = row;
    CopyRun(f.f, default_value.v, 0, out_values.v(), to, 1);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t to = next[size_t(indices[uint64_t(i * rank)])]++;
    std::copy_n(indices.data() + i * rank, rank, out_indices.data() + to * rank);
    CopyRun(f.f, values.v, i, out_values.v(), to, 1);
    back[uint64_t(i)] = to;
  }
}

template <class T>
void FillRowsGrad(tw::Frame f, tw::In<int64_t> back, tw::In<T> grads, tw::Out<T> values, tw::Out<T> rest) {
  tw::TempVector<char> taken(grads.size(), 0, f);
  for (uint64_t i = 0; i < back.size(); ++i) {
    const int64_t at = back[i];
    if (at < 0 || at >= int64_t(grads.size()))
      Invalid("reverse_index_map[" + std::to_string(i) + "] is " + std::to_string(at) + "; it must be in [0, " +
              std::to_string(grads.size()) + ")");
    values[i] = grads[uint64_t(at)];
    taken[size_t(at)] = 1;
  }
  // Floats of 16 bits are added in float.
  Wide<T> sum{};
  for (uint64_t i = 0; i < grads.size(); ++i)
    if (!taken[i]) sum = Plus(sum, Wide<T>(grads[i]));
  rest[0] = T(sum);
}

// ---- Other shapes ----

void SparseReshape(tw::Frame, tw::In<int64_t> indices, tw::In<int64_t> sizes, tw::In<int64_t> wanted, tw::Out<int64_t> out_indices,
                   tw::Out<int64_t> out_sizes) {
  CheckSparsePlaces(indices, sizes, "input_indices");
  const int64_t n = indices.dim(0), rank = sizes.dim(0), out_rank = int64_t(wanted.size());
  const auto product = [](int64_t a, int64_t b) {
    int64_t c;
    if (__builtin_mul_overflow(a, b, &c)) Invalid("the sizes of a dense tensor of this shape overflow 64 bits");
    return c;
  };
  int64_t elements = 1, given = 1, open = -1;
  for (uint64_t k = 0; k < sizes.size(); ++k) elements = product(elements, sizes[k]);
  Allocate(out_sizes, &out_rank, 1);
  for (int64_t k = 0; k < out_rank; ++k) {
    const int64_t size = out_sizes[uint64_t(k)] = wanted[uint64_t(k)];
    if (size < -1 || (size == -1 && open >= 0))
      Invalid("new_shape[" + std::to_string(k) + "] is " + std::to_string(size) + "; entries are sizes, and at most one is -1");
    if (size == -1)
      open = k;
    else
      given = product(given, size);
  }
  if (open >= 0) {
    if (given == 0 || elements % given != 0)
      Invalid("new_shape leaves one size open, but " + std::to_string(elements) + " elements are no multiple of " + std::to_string(given));
    out_sizes[uint64_t(open)] = elements / given;
  } else if (given != elements) {
    Invalid("new_shape has " + std::to_string(given) + " elements, input_shape has " + std::to_string(elements));
  }
  const int64_t pairs[] = {n, out_rank};
  Allocate(out_indices, pairs, 2);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    for (int64_t k = 0; k < rank; ++k) at = at * sizes[uint64_t(k)] + indices[uint64_t(i * rank + k)];
    for (int64_t k = out_rank; k-- > 0;) {
      out_indices[uint64_t(i * out_rank + k)] = at % out_sizes[uint64_t(k)];
      at /= out_sizes[uint64_t(k)];
    }
  }
}

// ---- Crosses ----

uint64_t ShiftMix(uint64_t v) { return v ^ (v >> 47); }

uint64_t CombineHashes(uint64_t a, uint64_t b) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  uint64_t v = a ^ kMultiplier;
  v ^= ShiftMix(b * kMultiplier) * kMultiplier;
  v *= kMultiplier;
  v = ShiftMix(v) * kMultiplier;
  return ShiftMix(v);
}

// The features of each row: those of a sparse matrix or all of a dense one.
class Features {
 public:
  Features(const tw_view* values, tw::TempVector<int64_t> begins) : values_(values), begins_(std::move(begins)) {}
  Features(const tw_view* values, tw::Frame f) : values_(values), begins_(f), columns_(values->dims[1]) {}
  int64_t count(int64_t row) const { return columns_ >= 0 ? columns_ : begins_[size_t(row) + 1] - begins_[size_t(row)]; }
  uint64_t At(int64_t row, int64_t k) const { return uint64_t((columns_ >= 0 ? row * columns_ : begins_[size_t(row)]) + k); }
  uint64_t Hash(int64_t row, int64_t k) const {
    const uint64_t i = At(row, k);
    if (values_->dtype != TW_STRING) return uint64_t(IndexAt(values_, i));
    const std::string_view text = View(StringAt(values_, i));
    return util::Fingerprint64(text.data(), text.size());
  }
  template <class Text>
  void AppendTo(Text* out, int64_t row, int64_t k) const {
    const uint64_t i = At(row, k);
    if (values_->dtype == TW_STRING)
      *out += View(StringAt(values_, i));
    else
      *out += std::to_string(IndexAt(values_, i));
  }

 private:
  const tw_view* values_;
  tw::TempVector<int64_t> begins_;  // of the rows of a sparse matrix
  int64_t columns_ = -1;            // of a dense one
};

struct CrossInputs {
  const tw::Many<int64_t>& indices;
  const tw::Many<tw::Any>& values;
  const tw::Many<int64_t>& shapes;
  const tw::Many<tw::Any>& dense;
};

// The features of all inputs, and the number of rows.
class Crossed {
 public:
  Crossed(tw::Frame f, const CrossInputs& in) {
    if (in.values.size() != in.indices.size() || in.shapes.size() != in.indices.size() || in.indices.size() + in.dense.size() == 0)
      Invalid("SparseCross needs inputs, with indices, values and a shape for each sparse one");
    for (uint32_t k = 0; k < in.shapes.size(); ++k) AddSparse(f, in, k);
    for (uint32_t k = 0; k < in.dense.size(); ++k) {
      const tw_view* v = in.dense[k].v;
      if (v->rank != 2) Invalid("dense_inputs " + std::to_string(k) + " " + DimsText(v) + " must be a matrix");
      MergeRows(v->dims[0], "dense_inputs " + std::to_string(k));
      columns_.emplace_back(v, f);
    }
  }
  int64_t rows() const { return rows_; }
  const std::vector<Features>& columns() const { return columns_; }

  int64_t Combinations(int64_t row) const {
    int64_t n = 1;
    for (const Features& c : columns_)
      if (__builtin_mul_overflow(n, c.count(row), &n)) Invalid("row " + std::to_string(row) + " has too many combinations of features");
    return n;
  }

  // Calls made(chosen features of all inputs) for each combination of the row; the last input's
  // features run fastest.
  template <class F>
  void ForEach(int64_t row, std::vector<int64_t>* chosen, F&& made) const {
    const int64_t n = Combinations(row);
    for (int64_t k = 0; k < n; ++k) {
      int64_t rest = k;
      for (size_t c = columns_.size(); c-- > 0;) {
        (*chosen)[c] = rest % columns_[c].count(row);
        rest /= columns_[c].count(row);
      }
      made();
    }
  }

 private:
  void AddSparse(tw::Frame f, const CrossInputs& in, uint32_t k) {
    const std::string name = "indices " + std::to_string(k);
    if (in.shapes[k].size() != 2) Invalid("shapes " + std::to_string(k) + " must have two entries; sparse inputs must be matrices");
    CheckSparsePlaces(in.indices[k], in.shapes[k], name);
    const int64_t n = in.indices[k].dim(0), rows = in.shapes[k][0];
    if (int64_t(in.values[k].size()) != n)
      Invalid(name + " has " + std::to_string(n) + " places, but there are " + std::to_string(in.values[k].size()) + " values");
    MergeRows(rows, "shapes " + std::to_string(k));
    constexpr int64_t kMostRows = int64_t(PTRDIFF_MAX / sizeof(int64_t)) - 1;
    if (rows > kMostRows)
      Invalid("shapes " + std::to_string(k) + " has " + std::to_string(rows) + " rows; more than " + std::to_string(kMostRows) +
              " have no room in memory");
    tw::TempVector<int64_t> begins(size_t(rows) + 1, 0, f);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = in.indices[k][uint64_t(2 * i)];
      if (i > 0 && row < in.indices[k][uint64_t(2 * i - 2)])
        Invalid(name + "[" + std::to_string(i) + ", 0] is " + std::to_string(row) +
                ", below the row before; places must be sorted by rows");
      ++begins[size_t(row) + 1];
    }
    for (int64_t row = 0; row < rows; ++row) begins[size_t(row) + 1] += begins[size_t(row)];
    columns_.emplace_back(in.values[k].v, std::move(begins));
  }
  void MergeRows(int64_t rows, const std::string& name) {
    if (!columns_.empty() && rows != rows_)
      Invalid(name + " has " + std::to_string(rows) + " rows, the inputs before have " + std::to_string(rows_));
    rows_ = rows;
  }

  std::vector<Features> columns_;
  int64_t rows_ = 0;
};

// Writes all combinations; value(place) gives the output at a place the value of the features chosen.
template <class Value>
void WriteCrosses(const Crossed& crossed, std::vector<int64_t>* chosen, const tw::Out<int64_t>& indices, const tw::Out<tw::Any>& values,
                  const tw::Out<int64_t>& shape, Value&& value) {
  int64_t n = 0, most = 0;
  for (int64_t row = 0; row < crossed.rows(); ++row) {
    const int64_t count = crossed.Combinations(row);
    if (__builtin_add_overflow(n, count, &n)) Invalid("there are too many combinations of features");
    most = std::max(most, count);
  }
  const int64_t pairs[] = {n, 2}, two = 2;
  Allocate(indices, pairs, 2);
  Allocate(values, &n, 1);
  Allocate(shape, &two, 1);
  shape[0] = crossed.rows();
  shape[1] = most;
  uint64_t to = 0;
  for (int64_t row = 0; row < crossed.rows(); ++row) {
    int64_t k = 0;
    crossed.ForEach(row, chosen, [&] {
      indices[2 * to] = row;
      indices[2 * to + 1] = k++;
      value(row, to++);
    });
  }
}

template <class Text>
void JoinFeatures(const Crossed& crossed, int64_t row, const std::vector<int64_t>& chosen, std::string_view separator, Text* text) {
  text->clear();
  for (size_t c = 0; c < chosen.size(); ++c) {
    if (c > 0) *text += separator;
    crossed.columns()[c].AppendTo(text, row, chosen[c]);
  }
}

class Cross {
 public:
  explicit Cross(const tw::Node& n)
      : hashed_(n.b("hashed_output")), buckets_(uint64_t(n.i("num_buckets"))), key_(uint64_t(n.i("hash_key"))) {
    const bool number = n.type("out_type") == TW_INT64;
    if (number != hashed_)
      Invalid(hashed_ ? "hashed_output is true and out_type is string; it must be int64"
                      : "hashed_output is false and out_type is int64; it must be string");
  }

  void operator()(tw::Frame f, tw::Many<int64_t> indices, tw::Many<tw::Any> values, tw::Many<int64_t> shapes, tw::Many<tw::Any> dense,
                  tw::Out<int64_t> out_indices, tw::Out<tw::Any> out_values, tw::Out<int64_t> out_shape) const {
    const Crossed crossed(f, {indices, values, shapes, dense});
    std::vector<int64_t> chosen(crossed.columns().size());
    tw::TempString text(f);
    WriteCrosses(crossed, &chosen, out_indices, out_values, out_shape, [&](int64_t row, uint64_t to) {
      if (!hashed_) {
        JoinFeatures(crossed, row, chosen, "_X_", &text);
        out_values.set(to, text);
        return;
      }
      uint64_t hash = key_;
      for (size_t c = 0; c < chosen.size(); ++c) hash = CombineHashes(hash, crossed.columns()[c].Hash(row, chosen[c]));
      reinterpret_cast<int64_t*>(out_values.data())[to] = int64_t(hash % (buckets_ ? buckets_ : uint64_t(INT64_MAX)));
    });
  }

 private:
  bool hashed_;
  uint64_t buckets_, key_;
};

void CrossV2(tw::Frame f, tw::Many<int64_t> indices, tw::Many<tw::Any> values, tw::Many<int64_t> shapes, tw::Many<tw::Any> dense,
             tw::In<tw_string> sep, tw::Out<int64_t> out_indices, tw::Out<tw::Any> out_values, tw::Out<int64_t> out_shape) {
  if (sep.size() != 1) Invalid("sep " + DimsText(sep.v) + " must be a scalar");
  const Crossed crossed(f, {indices, values, shapes, dense});
  std::vector<int64_t> chosen(crossed.columns().size());
  tw::TempString text(f);
  WriteCrosses(crossed, &chosen, out_indices, out_values, out_shape, [&](int64_t row, uint64_t to) {
    JoinFeatures(crossed, row, chosen, View(sep[0]), &text);
    out_values.set(to, text);
  });
}

}  // namespace

void register_sparse_rows(tw::Plugin& p) {
  p.kernel<FillRows>("SparseFillEmptyRows @CPU");
  p.kernel<FillRowsGrad<float>, FillRowsGrad<double>, FillRowsGrad<half>, FillRowsGrad<bfloat16>, FillRowsGrad<int8_t>,
           FillRowsGrad<int16_t>, FillRowsGrad<int32_t>, FillRowsGrad<int64_t>, FillRowsGrad<uint8_t>, FillRowsGrad<uint16_t>,
           FillRowsGrad<uint32_t>, FillRowsGrad<uint64_t>, FillRowsGrad<complex64>, FillRowsGrad<complex128>>(
      "SparseFillEmptyRowsGrad @CPU");
  p.kernel<SparseReshape>("SparseReshape @CPU");
  p.kernel<Cross>("SparseCross @CPU");
  p.kernel<CrossV2>("SparseCrossV2 @CPU");
}

}  // namespace thalweg::cpu
