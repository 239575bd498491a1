// Helpers that the metrics of thalweg/metric.h share.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/library/layer.h"
#include "thalweg/metric.h"

namespace thalweg::library {

// Clears *out and calls body(), which returns the metric. Fails the scope for a NULL name or out.
template <class F>
void MakeMetric(tw_scope* scope, const char* function, const char* name, tw_metric* out, F&& body) {
  if (out) *out = {sizeof(tw_metric), 0, 0, nullptr, nullptr};
  Protect(scope, [&]() -> int {
    if (!name || !out) FailIn(scope, function, !name ? "name is NULL" : "out_metric is NULL");
    if (!Good(scope)) return 0;
    const tw_metric made = body();
    if (Good(scope)) *out = made;
    return 0;
  });
}

// A sum over batches: a variable `name`/`part` of doubles that starts at 0.
struct Sum {
  tw_output variable = 0, value = 0;
  std::vector<int64_t> dims;
};
Sum MakeSum(tw_scope* scope, const char* name, const char* part, const std::vector<int64_t>& dims);

// A metric whose update adds added[i] to sums[i].
tw_metric FromSums(tw_scope* scope, tw_output value, const std::vector<Sum>& sums, const std::vector<tw_output>& added);

// The sum of all elements, as a scalar. REQUIRES: x is double.
tw_output Total(tw_scope* scope, tw_output x);

// The weights of examples as doubles of the shape of `like`; ones where weights is 0.
tw_output WeightsLike(tw_scope* scope, const char* function, tw_output weights, tw_output like);

// The weighted mean of values; both are doubles of one shape.
tw_metric Mean(tw_scope* scope, const char* name, tw_output values, tw_output weights);

// Fails the scope unless x is of an integer type; answers it as int64.
tw_output Classes(tw_scope* scope, const char* function, const char* what, tw_output x);

// The classes that predictions stand for, as int64: those of the largest scores, or the predictions themselves.
tw_output Predicted(tw_scope* scope, const char* function, tw_output predictions);

// x with a shape equal to that of `like`. Fails the scope where the shapes are known to differ; else a step with other shapes fails.
tw_output SameShape(tw_scope* scope, const char* function, const char* what, tw_output x, tw_output like);

// Numbers in [0, count) as they are; a step with another number fails.
tw_output Below(tw_scope* scope, tw_output numbers, int64_t count);

}  // namespace thalweg::library
