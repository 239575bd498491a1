// Clipping of gradients.
#include "thalweg/clip.h"

#include "ops/library/build.h"
#include "ops/library/options.h"

using namespace thalweg::library;

namespace {

tw_output Op(tw_scope* scope, const char* type, tw_output a, tw_output b) { return tw_scope_op2(scope, type, a, b); }

// Returns the sum of squares as a double; 16-bit types are squared in float.
tw_output SquareSum(tw_scope* scope, tw_output values) {
  const uint32_t dtype = Describe(scope, values).dtype;
  const tw_output wide = dtype == TW_HALF || dtype == TW_BFLOAT16 ? CastTo(scope, values, TW_FLOAT) : values;
  return Op(scope, "Mul", CastTo(scope, tw_scope_op1(scope, "L2Loss", wide), TW_DOUBLE), tw_scope_scalar(scope, TW_DOUBLE, 2));
}

// Returns values * max_norm / max(norm, max_norm). The factor is at most 1, and NaN for a norm that
// is not finite, so that training does not go on with scaled infinities.
tw_output Shorten(tw_scope* scope, tw_output values, tw_output norm, double max_norm) {
  const tw_output limit = tw_scope_scalar(scope, TW_DOUBLE, max_norm);
  const tw_output zero = Op(scope, "Sub", norm, norm);  // NaN for infinity, too
  const tw_output scale = Op(scope, "Add", Op(scope, "Div", limit, Op(scope, "Maximum", norm, limit)), zero);
  return Op(scope, "Mul", values, CastTo(scope, scale, Describe(scope, values).dtype));
}

// Calls change(values) for each existing gradient.
template <class F>
void ForGradients(tw_scope* scope, const char* function, tw_gradient* gradients, uint32_t n, F&& change) {
  if (n > 0 && !gradients) Fail(scope, TW_INVALID_ARGUMENT, std::string(function) + ": gradients is NULL");
  for (uint32_t i = 0; i < n && Good(scope); ++i) {
    if (gradients[i].values == 0) continue;
    const tw_output values = change(gradients[i].values);
    if (Good(scope)) gradients[i].values = values;
  }
}

// Each row is named once then, because bounds are for the sum of what it gets.
void SumRows(tw_scope* scope, tw_gradient* gradients, uint32_t n) {
  for (uint32_t i = 0; gradients && i < n && Good(scope); ++i) {
    if (gradients[i].values == 0) continue;
    const tw_gradient unique = UniqueRows(scope, gradients[i]);
    if (Good(scope)) gradients[i] = unique;
  }
}

}  // namespace

void tw_clip_by_value(tw_scope* scope, tw_gradient* gradients, uint32_t n, double low, double high) {
  Protect(scope, [&] {
    if (!(low <= high)) {
      Fail(scope, TW_INVALID_ARGUMENT, "tw_clip_by_value: low is " + Text(low) + ", high " + Text(high) + "; low must not be above high");
    }
    SumRows(scope, gradients, n);
    ForGradients(scope, "tw_clip_by_value", gradients, n, [&](tw_output values) {
      const uint32_t dtype = Describe(scope, values).dtype;
      const tw_output below = Op(scope, "Minimum", values, tw_scope_scalar(scope, dtype, high));
      return Op(scope, "Maximum", below, tw_scope_scalar(scope, dtype, low));
    });
    return 0;
  });
}

void tw_clip_by_norm(tw_scope* scope, tw_gradient* gradients, uint32_t n, double max_norm) {
  Protect(scope, [&] {
    CheckAbove0(scope, "tw_clip_by_norm: max_norm", max_norm);
    SumRows(scope, gradients, n);
    ForGradients(scope, "tw_clip_by_norm", gradients, n,
                 [&](tw_output values) { return Shorten(scope, values, tw_scope_op1(scope, "Sqrt", SquareSum(scope, values)), max_norm); });
    return 0;
  });
}

tw_output tw_clip_by_global_norm(tw_scope* scope, tw_gradient* gradients, uint32_t n, double max_norm) {
  return Protect(scope, [&]() -> tw_output {
    CheckAbove0(scope, "tw_clip_by_global_norm: max_norm", max_norm);
    SumRows(scope, gradients, n);
    std::vector<tw_output> sums;
    ForGradients(scope, "tw_clip_by_global_norm", gradients, n, [&](tw_output values) {
      sums.push_back(SquareSum(scope, values));
      return values;
    });
    if (Good(scope) && sums.empty()) return tw_scope_scalar(scope, TW_DOUBLE, 0);
    const tw_output norm = tw_scope_op1(scope, "Sqrt", tw_scope_op(scope, "AddN", sums.data(), uint32_t(sums.size())));
    ForGradients(scope, "tw_clip_by_global_norm", gradients, n, [&](tw_output values) { return Shorten(scope, values, norm, max_norm); });
    return Good(scope) ? norm : 0;
  });
}
