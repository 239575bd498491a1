// One call of attention or of its gradient, as passed to a vendor's library.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_ATTENTION_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_ATTENTION_H_

#include "kernels/layout.h"

namespace thalweg::opencl {

struct AttentionCall {
  uint32_t type;
  Size heads;  // number of matrices along the last axis before queries and keys, if there are several; `batch` counts all matrices
  Size batch, queries, keys, depth, width;
  double scale;
  bool causal;
  Place query, key, value, output, logsumexp;
  Place grad_output, grad_query, grad_key, grad_value;  // for gradients only
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_ATTENTION_H_
