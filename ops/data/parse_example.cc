// ParseExampleV2 reads serialized tf.train.Example messages.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void ParseRule(const tw::Shape& s) {
  const tw_attr* dense = s.find("dense_shapes");
  const auto sparse = uint32_t(s.i("num_sparse"));
  const uint32_t n_dense = dense->count, n_ragged = s.find("ragged_value_types")->count;
  if (s.find("sparse_types")->count != sparse)
    Fail("'num_sparse' is " + std::to_string(sparse) + ", but 'sparse_types' has " + std::to_string(s.find("sparse_types")->count) +
         " types");
  if (s.find("Tdense")->count != n_dense)
    Fail("'dense_shapes' has " + std::to_string(n_dense) + " shapes for " + std::to_string(s.find("Tdense")->count) + " dense features");
  if (s.find("ragged_split_types")->count != n_ragged) Fail("'ragged_value_types' and 'ragged_split_types' differ in length");
  if (s.known(0) && s.rank(0) > 1) Fail("'serialized' is " + Text(In(s, 0)) + "; it must be a scalar or a vector");
  const bool known = s.known(0), one = known && s.rank(0) == 0;
  for (uint32_t k = 0; k < sparse && known; ++k) {
    s.out(k, {-1, one ? 1 : 2});
    s.out(sparse + k, {-1});
    s.out(2 * sparse + k, {one ? 1 : 2});
  }
  const auto* shapes = static_cast<const tw_shape*>(dense->data);
  for (uint32_t k = 0; k < n_dense && known; ++k) {
    if (shapes[k].rank < 0) continue;
    std::vector<int64_t> dims;
    if (!one) dims.push_back(s.dim(0, 0));
    dims.insert(dims.end(), shapes[k].dims, shapes[k].dims + shapes[k].rank);
    s.out(3 * sparse + k, dims);
  }
  for (uint32_t k = 0; k < n_ragged && known; ++k) {
    s.out(3 * sparse + n_dense + k, {-1});
    s.out(3 * sparse + n_dense + n_ragged + k, {one ? 0 : s.calc('+', s.dim(0, 0), 1)});
  }
}

}  // namespace

void register_parse_example(tw::Plugin& p) {
  p.op<nullptr, ParseRule>(R"(
      ParseExampleV2(serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, dense_defaults: Tdense) ->
      (sparse_indices: int64 * num_sparse, sparse_values: sparse_types, sparse_shapes: int64 * num_sparse, dense_values: Tdense,
      ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types); Tdense: list(type) >= 0; num_sparse: int >= 0;
      sparse_types: list(type) >= 0; ragged_value_types: list(type) >= 0; ragged_split_types: list(type) >= 0; dense_shapes: list(shape) >= 0;
      no_gradient "stored bytes have no derivative"; doc "the features of serialized tf.train.Example messages, as tensors")");
}

}  // namespace thalweg::ops
