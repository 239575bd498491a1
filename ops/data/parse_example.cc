// ParseExampleV2, ParseExample and ParseSingleExample read serialized tf.train.Example messages. They
// differ in where the keys stand: in vectors, in scalars, and in attributes.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Refuses counts of features that differ.
void WantCount(const char* a, int64_t n, const char* b, int64_t other) {
  if (n != other) Fail("'" + std::string(a) + "' is for " + tw::text(n) + " features, '" + b + "' for " + tw::text(other));
}

// Sets the shapes of the outputs for sparse and dense features, which come first. known: whether it
// is known if there is one message, without a batch. Returns the number of these outputs.
uint32_t SparseAndDense(const tw::Shape& s, bool known, bool one) {
  const uint32_t sparse = s.at("sparse_types").count, n_dense = s.at("dense_shapes").count;
  WantCount("dense_shapes", n_dense, "Tdense", s.at("Tdense").count);
  for (uint32_t k = 0; k < sparse && known; ++k) {
    s.out(k, {-1, one ? 1 : 2});
    s.out(sparse + k, {-1});
    s.out(2 * sparse + k, {one ? 1 : 2});
  }
  const auto* shapes = static_cast<const tw_shape*>(s.at("dense_shapes").data);
  for (uint32_t k = 0; k < n_dense && known; ++k) {
    if (shapes[k].rank < 0) continue;
    Dims dims;
    if (!one) dims.push_back(s.known(0) ? s.dim(0, 0) : -1);
    dims.insert(dims.end(), shapes[k].dims, shapes[k].dims + shapes[k].rank);
    s.out(3 * sparse + k, dims);
  }
  return 3 * sparse + n_dense;
}

void V2Rule(const tw::Shape& s) {
  WantCount("num_sparse", s.i("num_sparse"), "sparse_types", s.at("sparse_types").count);
  const uint32_t n_ragged = s.at("ragged_value_types").count;
  WantCount("ragged_value_types", n_ragged, "ragged_split_types", s.at("ragged_split_types").count);
  if (s.known(0) && s.rank(0) > 1) Fail("'serialized' is " + Text(In(s, 0)) + "; it must be a scalar or a vector");
  const bool known = s.known(0), one = known && s.rank(0) == 0;
  const uint32_t first = SparseAndDense(s, known, one);
  for (uint32_t k = 0; k < n_ragged && known; ++k) {
    s.out(first + k, {-1});
    s.out(first + n_ragged + k, {one ? 0 : s.calc('+', s.dim(0, 0), 1)});
  }
}

void BatchRule(const tw::Shape& s) {
  WantCount("Nsparse", s.i("Nsparse"), "sparse_types", s.at("sparse_types").count);
  WantCount("Ndense", s.i("Ndense"), "Tdense", s.at("Tdense").count);
  WantVector(s, 0, "serialized");
  WantVector(s, 1, "names");
  for (uint32_t a : {2u, 3u})
    for (uint32_t k = 0; k < s.many(a); ++k) WantScalar(s, s.first(a) + k, a == 2 ? "sparse_keys" : "dense_keys");
  SparseAndDense(s, true, false);
}

void SingleRule(const tw::Shape& s) {
  WantCount("num_sparse", s.i("num_sparse"), "sparse_types", s.at("sparse_types").count);
  WantCount("num_sparse", s.i("num_sparse"), "sparse_keys", s.at("sparse_keys").count);
  WantCount("Tdense", s.at("Tdense").count, "dense_keys", s.at("dense_keys").count);
  WantScalar(s, 0, "serialized");
  SparseAndDense(s, true, true);
}

#define FEATURE_TYPES "list({float, int64, string}) >= 0"
#define PARSED "(sparse_indices: int64 * num_sparse, sparse_values: sparse_types, sparse_shapes: int64 * num_sparse, dense_values: Tdense"
#define NO_GRADIENT "no_gradient \"stored bytes have no derivative\"; "

}  // namespace

void register_parse_example(tw::Plugin& p) {
  p.op<nullptr, V2Rule>(R"(
      ParseExampleV2(serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, dense_defaults: Tdense) ->
      (sparse_indices: int64 * num_sparse, sparse_values: sparse_types, sparse_shapes: int64 * num_sparse, dense_values: Tdense,
      ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types); Tdense: list(type) >= 0; num_sparse: int >= 0;
      sparse_types: list(type) >= 0; ragged_value_types: list(type) >= 0; ragged_split_types: list(type) >= 0; dense_shapes: list(shape) >= 0;
      no_gradient "stored bytes have no derivative"; doc "the features of serialized tf.train.Example messages, as tensors")");
  p.op<nullptr, BatchRule>(
      "ParseExample(serialized: string, names: string, sparse_keys: string * Nsparse, dense_keys: string * Ndense, dense_defaults: Tdense) "
      "-> "
      "(sparse_indices: int64 * Nsparse, sparse_values: sparse_types, sparse_shapes: int64 * Nsparse, dense_values: Tdense); Nsparse: int "
      ">= "
      "0; Ndense: int >= 0; sparse_types: " FEATURE_TYPES "; Tdense: " FEATURE_TYPES "; dense_shapes: list(shape) >= 0; " NO_GRADIENT
      "doc \"the features of a vector of serialized tf.train.Example messages; the keys are scalars\"");
  p.op<nullptr, SingleRule>("ParseSingleExample(serialized: string, dense_defaults: Tdense) -> " PARSED
                            "); num_sparse: int >= 0; sparse_keys: list(string) >= 0; "
                            "dense_keys: list(string) >= 0; sparse_types: " FEATURE_TYPES "; Tdense: " FEATURE_TYPES
                            "; dense_shapes: list(shape) >= 0; " NO_GRADIENT
                            "doc \"the features of one serialized tf.train.Example message; the keys are attributes\"");
}

}  // namespace thalweg::ops
