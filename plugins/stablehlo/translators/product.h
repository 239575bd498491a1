// Sums of products over axes. Threads: those of Translation.
#pragma once
#include <cstdint>
#include <vector>

#include "common.h"

namespace thalweg::stablehlo {

struct ProductAxes {
  std::vector<int64_t> lhs_batch, rhs_batch, lhs_sum, rhs_sum;
};

// As stablehlo.dot_general: the result has the batch axes, the other axes of lhs, then those of rhs. dtype: of the result, in which the
// products are summed. Half and bfloat16 are summed in float.
Value Product(Translation& t, const Op& op, const Value& lhs, const Value& rhs, const ProductAxes& axes, uint32_t dtype);
// The type in which products of this type are computed.
uint32_t WorkingType(uint32_t dtype);

}  // namespace thalweg::stablehlo
