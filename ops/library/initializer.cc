// First values of weights.
#include <algorithm>
#include <cmath>

#include "ops/library/layer.h"
#include "ops/library/orthogonal.h"
#include "thalweg/op.h"

using namespace thalweg::library;

void tw_initializer_init(tw_initializer* initializer) {
  if (initializer) *initializer = {sizeof(tw_initializer), 0, TW_INITIALIZER_GLOROT_UNIFORM, 0, 1, 0};
}

namespace {

// The standard deviation of a standard normal distribution that is cut at two standard deviations.
constexpr double kCutNormal = 0.87962566103423978;

struct Fans {
  double in = 1, out = 1;
};

Fans FansOf(const int64_t* dims, int32_t rank) {
  if (rank == 0) return {};
  if (rank == 1) return {double(dims[0]), double(dims[0])};
  double window = 1;
  for (int32_t i = 0; i < rank - 2; ++i) window *= double(dims[i]);
  return {window * double(dims[rank - 2]), window * double(dims[rank - 1])};
}

// Draws with mean 0: evenly from [-1, 1), or normally with standard deviation 1.
tw_output Draw(tw_scope* scope, const char* type, uint32_t dtype, const std::vector<int64_t>& dims, int64_t seed) {
  OpenOp op(scope, type);
  tw_op_add_input(op, Longs(scope, dims));
  tw_op_set_type(op, "dtype", dtype);
  tw_op_set_int(op, "seed", seed);
  tw_op_set_int(op, "seed2", seed ? 1 : 0);
  return op.End();
}

tw_output Scaled(tw_scope* scope, uint32_t dtype, tw_output drawn, double by) {
  return tw_scope_op2(scope, "Mul", drawn, tw_scope_scalar(scope, dtype, by));
}

tw_output Evenly(tw_scope* scope, uint32_t dtype, const std::vector<int64_t>& dims, double reach, int64_t seed) {
  const tw_output drawn = Draw(scope, "RandomUniform", dtype, dims, seed);
  return tw_scope_op2(scope, "Sub", Scaled(scope, dtype, drawn, 2 * reach), tw_scope_scalar(scope, dtype, reach));
}

// scale times an orthonormal matrix, in the shape of the weights. Bits of float suffice for the shorter types.
tw_output Orthogonal(tw_scope* scope, uint32_t dtype, const std::vector<int64_t>& dims, double scale, int64_t seed) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
  const int64_t columns = dims.back();
  const uint32_t exact = dtype == TW_DOUBLE ? TW_DOUBLE : TW_FLOAT;
  const tw_output normal = Draw(scope, "RandomStandardNormal", exact, {std::min(rows, columns), std::max(rows, columns)}, seed);
  const tw_output matrix = Orthonormal(scope, normal, exact, rows, columns);
  return CastTo(scope, tw_scope_op2(scope, "Reshape", Scaled(scope, exact, matrix, scale), Longs(scope, dims)), dtype);
}

}  // namespace

tw_output tw_initializer_value(tw_scope* scope, const tw_initializer* initializer, uint32_t dtype, const int64_t* dims, int32_t rank) {
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_initializer_value";
    const tw_initializer how = ReadOptions(scope, "tw_initializer", initializer, tw_initializer_init);
    if (!IsReal(dtype)) FailIn(scope, kFunction, "dtype is " + std::to_string(dtype) + "; weights are half, bfloat16, float or double");
    if (rank < 0 || (rank > 0 && !dims)) FailIn(scope, kFunction, "rank is " + std::to_string(rank) + (dims ? "" : " and dims is NULL"));
    if (!std::isfinite(how.scale)) FailIn(scope, kFunction, "scale is " + Text(how.scale) + "; it must be finite");
    if (!Good(scope)) return 0;
    const std::vector<int64_t> sizes(dims, dims + rank);
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t d) { return d < 0; })) {
      FailIn(scope, kFunction, "the shape is " + ShapeText({dims, rank, 0}) + "; every size must be known");
      return 0;
    }
    const Fans fans = FansOf(dims, rank);
    const double in = std::max(fans.in, 1.0), mean = std::max((fans.in + fans.out) / 2, 1.0);
    const auto evenly = [&](double fan, double gain) {
      return Evenly(scope, dtype, sizes, how.scale * std::sqrt(3 * gain / fan), how.seed);
    };
    const auto normally = [&](double fan, double gain) {
      const tw_output drawn = Draw(scope, "TruncatedNormal", dtype, sizes, how.seed);
      return Scaled(scope, dtype, drawn, how.scale * std::sqrt(gain / fan) / kCutNormal);
    };
    switch (how.kind) {
      case TW_INITIALIZER_DEFAULT:
      case TW_INITIALIZER_GLOROT_UNIFORM: return evenly(mean, 1);
      case TW_INITIALIZER_GLOROT_NORMAL: return normally(mean, 1);
      case TW_INITIALIZER_HE_UNIFORM: return evenly(in, 2);
      case TW_INITIALIZER_HE_NORMAL: return normally(in, 2);
      case TW_INITIALIZER_LECUN_UNIFORM: return evenly(in, 1);
      case TW_INITIALIZER_LECUN_NORMAL: return normally(in, 1);
      case TW_INITIALIZER_UNIFORM: return Evenly(scope, dtype, sizes, how.scale, how.seed);
      case TW_INITIALIZER_NORMAL: return Scaled(scope, dtype, Draw(scope, "RandomStandardNormal", dtype, sizes, how.seed), how.scale);
      case TW_INITIALIZER_TRUNCATED_NORMAL: return Scaled(scope, dtype, Draw(scope, "TruncatedNormal", dtype, sizes, how.seed), how.scale);
      case TW_INITIALIZER_ORTHOGONAL:
        if (rank >= 2) return Orthogonal(scope, dtype, sizes, how.scale, how.seed);
        FailIn(scope, kFunction, "the shape is " + ShapeText({dims, rank, 0}) + "; an orthogonal matrix has at least two axes");
        return 0;
      case TW_INITIALIZER_CONSTANT: return tw_scope_op2(scope, "Fill", Longs(scope, sizes), tw_scope_scalar(scope, dtype, how.scale));
      default: FailIn(scope, kFunction, "kind is " + std::to_string(how.kind) + "; it must be a TW_INITIALIZER_*"); return 0;
    }
  });
}
