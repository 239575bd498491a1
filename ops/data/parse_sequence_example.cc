// ParseSequenceExample, ParseSequenceExampleV2 and ParseSingleSequenceExample read serialized
// tf.train.SequenceExample messages. They differ in where the keys stand.
#include <string>
#include <vector>

#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The outputs follow each other in the order of the schemas; the numbers of each kind are those of
// the lists of types.
class Outputs {
 public:
  Outputs(const tw::Shape& s, bool known, bool one) : s_(s), known_(known), one_(one) {}

  // For `n` sparse features: matrices of places with a column for each axis, vectors of values,
  // and vectors of sizes.
  void Sparse(uint32_t n, int64_t axes) {
    const int64_t rank = axes + (one_ ? 0 : 1);
    for (uint32_t k = 0; k < n; ++k) Next({-1, rank});
    for (uint32_t k = 0; k < n; ++k) Next({-1});
    for (uint32_t k = 0; k < n; ++k) Next({rank});
  }
  // For each shape: the batch, `before` it, and the shape.
  void Dense(const tw_attr& shapes, const Dims& before) {
    const auto* at = static_cast<const tw_shape*>(shapes.data);
    for (uint32_t k = 0; k < shapes.count; ++k) {
      if (at[k].rank < 0) {
        ++o_;
        continue;
      }
      Next(Join(Join(Rows(), before), Dims(at[k].dims, at[k].dims + at[k].rank)));
    }
  }
  void Each(uint32_t n, const Dims& dims) {
    for (uint32_t k = 0; k < n; ++k) Next(dims);
  }
  // The axis of the batch, if there is one.
  Dims Rows() const { return known_ && !one_ ? Dims{s_.dim(0, 0)} : Dims{}; }
  Dims Splits() const { return known_ && !one_ ? Dims{s_.calc('+', s_.dim(0, 0), 1)} : Dims{0}; }

 private:
  void Next(const Dims& dims) {
    if (known_) s_.out(o_, dims);
    ++o_;
  }

  const tw::Shape& s_;
  const bool known_, one_;
  uint32_t o_ = 0;
};

void WantCounts(const tw::Shape& s, const char* a, int64_t n, const char* b) {
  const int64_t other = s.at(b).count;
  if (n != other)
    Fail("'" + std::string(a) + "' has " + tw::text(n) + " and '" + b + "' has " + tw::text(other) +
         " entries; both describe the same features");
}

// Checks that counts, types and shapes of the features fit each other.
void WantFeatures(const tw::Shape& s) {
  WantCounts(s, "Ncontext_sparse", s.i("Ncontext_sparse"), "context_sparse_types");
  WantCounts(s, "Tcontext_dense", s.at("Tcontext_dense").count, "context_dense_shapes");
  WantCounts(s, "Nfeature_list_sparse", s.i("Nfeature_list_sparse"), "feature_list_sparse_types");
  WantCounts(s, "Nfeature_list_dense", s.i("Nfeature_list_dense"), "feature_list_dense_types");
  WantCounts(s, "feature_list_dense_types", s.at("feature_list_dense_types").count, "feature_list_dense_shapes");
}

// kRagged: V2, which has ragged features. kSingle: the op for one message, which has no lengths.
template <bool kRagged, bool kSingle>
void Rule(const tw::Shape& s) {
  WantFeatures(s);
  if (s.find("Ncontext_dense")) WantCounts(s, "Ncontext_dense", s.i("Ncontext_dense"), "Tcontext_dense");
  const bool known = kSingle || s.known(0), one = kSingle || (known && s.rank(0) == 0);
  if (s.known(0)) {
    if (kSingle)
      WantScalar(s, 0, "serialized");
    else if (!kRagged)
      WantVector(s, 0, "serialized");
    else if (s.rank(0) > 1)
      Fail("'serialized' is " + Text(In(s, 0)) + "; it must be a scalar or a vector");
  }
  Outputs out(s, known, one);
  out.Sparse(s.at("context_sparse_types").count, 1);
  out.Dense(s.at("context_dense_shapes"), {});
  if constexpr (kRagged) {
    const uint32_t n = s.at("context_ragged_value_types").count;
    WantCounts(s, "context_ragged_value_types", n, "context_ragged_split_types");
    out.Each(n, {-1});
    out.Each(n, out.Splits());
  }
  out.Sparse(s.at("feature_list_sparse_types").count, 2);
  out.Dense(s.at("feature_list_dense_shapes"), {-1});
  if constexpr (!kSingle) out.Each(s.at("feature_list_dense_types").count, out.Rows());
  if constexpr (kRagged) {
    const uint32_t n = s.at("feature_list_ragged_value_types").count;
    WantCounts(s, "feature_list_ragged_value_types", n, "feature_list_ragged_split_types");
    out.Each(n, {-1});
    out.Each(n, out.Splits());
    out.Each(n, {-1});
  }
}

#define TYPES "list({float, int64, string}) >= 0 = []"
#define SPLITS "list({int32, int64}) >= 0 = []"
#define SHAPES "list(shape) >= 0 = []"
#define CONTEXT                                                                                                            \
  "(context_sparse_indices: int64 * Ncontext_sparse, context_sparse_values: context_sparse_types, context_sparse_shapes: " \
  "int64 * Ncontext_sparse, context_dense_values: Tcontext_dense, "
#define LISTS                                                                                                          \
  "feature_list_sparse_indices: int64 * Nfeature_list_sparse, feature_list_sparse_values: feature_list_sparse_types, " \
  "feature_list_sparse_shapes: int64 * Nfeature_list_sparse, feature_list_dense_values: feature_list_dense_types"
#define LENGTHS ", feature_list_dense_lengths: int64 * Nfeature_list_dense"
#define NO_GRADIENT "no_gradient \"stored bytes have no derivative\"; "

}  // namespace

void register_parse_sequence_example(tw::Plugin& p) {
  p.op<nullptr, Rule<false, false>>(
      "ParseSequenceExample(serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense) -> " CONTEXT LISTS LENGTHS
      "); feature_list_dense_missing_assumed_empty: list(string) >= 0; context_sparse_keys: list(string) >= 0; context_dense_keys: "
      "list(string) >= 0; feature_list_sparse_keys: list(string) >= 0; feature_list_dense_keys: list(string) >= 0; "
      "Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; "
      "context_sparse_types: " TYPES "; Tcontext_dense: " TYPES "; feature_list_dense_types: " TYPES "; context_dense_shapes: " SHAPES
      "; feature_list_sparse_types: " TYPES "; feature_list_dense_shapes: " SHAPES "; " NO_GRADIENT
      "doc \"the features of serialized tf.train.SequenceExample messages; the keys are attributes\"");
  p.op<nullptr, Rule<true, false>>(
      "ParseSequenceExampleV2(serialized: string, debug_name: string, context_sparse_keys: string, context_dense_keys: string, "
      "context_ragged_keys: string, feature_list_sparse_keys: string, feature_list_dense_keys: string, feature_list_ragged_keys: string, "
      "feature_list_dense_missing_assumed_empty: bool, context_dense_defaults: Tcontext_dense) -> " CONTEXT
      "context_ragged_values: context_ragged_value_types, context_ragged_row_splits: context_ragged_split_types, " LISTS LENGTHS
      ", feature_list_ragged_values: feature_list_ragged_value_types, feature_list_ragged_outer_splits: feature_list_ragged_split_types, "
      "feature_list_ragged_inner_splits: feature_list_ragged_split_types); Ncontext_sparse: int >= 0 = 0; Tcontext_dense: " TYPES
      "; context_sparse_types: " TYPES "; context_ragged_value_types: " TYPES "; context_ragged_split_types: " SPLITS
      "; context_dense_shapes: " SHAPES
      "; Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; "
      "feature_list_dense_types: " TYPES "; feature_list_sparse_types: " TYPES "; feature_list_ragged_value_types: " TYPES
      "; feature_list_ragged_split_types: " SPLITS "; feature_list_dense_shapes: " SHAPES "; " NO_GRADIENT
      "doc \"the features of serialized tf.train.SequenceExample messages\"");
  p.op<nullptr, Rule<false, true>>(
      "ParseSingleSequenceExample(serialized: string, feature_list_dense_missing_assumed_empty: string, context_sparse_keys: string * "
      "Ncontext_sparse, context_dense_keys: string * Ncontext_dense, feature_list_sparse_keys: string * Nfeature_list_sparse, "
      "feature_list_dense_keys: string * Nfeature_list_dense, context_dense_defaults: Tcontext_dense, debug_name: string) -> " CONTEXT LISTS
      "); Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = "
      "0; "
      "context_sparse_types: " TYPES "; Tcontext_dense: " TYPES "; feature_list_dense_types: " TYPES "; context_dense_shapes: " SHAPES
      "; feature_list_sparse_types: " TYPES "; feature_list_dense_shapes: " SHAPES "; " NO_GRADIENT
      "doc \"the features of one serialized tf.train.SequenceExample message\"");
}

}  // namespace thalweg::ops
